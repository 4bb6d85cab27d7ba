//! Jobs, terms and changes made by hand, with hand-held times.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};
use tidings::core::decide::{Command, Ended};
use tidings::core::evidence::Evidence;
use tidings::core::fact::Act;
use tidings::core::id::WorkerId;
use tidings::core::job::{Counters, Job, Priority, State, Wait};
use tidings::core::outcome::{Effect, Outcome};
use tidings::core::policy::{Draw, JitterData, OnUnknown, Policy, PolicyData};
use tidings::core::time::{Millis, Time};
use tidings::core::unique::{KeyHash, Unique, UniqueStates};
use tidings::random;
use tidings::store::{Change, Idempotency, NewJob, Take, Terms, TermsOfKinds};

/// When most tests happen.
pub const NOW: Time = Time(1_800_000_000_000);
pub const LEASE: Millis = Millis(60_000);
/// When a lease of a job that was taken at [`NOW`] is over.
pub const LEASE_OVER: Time = Time(NOW.0 + LEASE.0);

/// 3 attempts, 2 crashes, 1 s doubling without jitter.
pub static POLICY: LazyLock<Policy> = LazyLock::new(|| {
    let data = PolicyData {
        attempts: Some(3),
        crashes_max: Some(2),
        jitter: Some(JitterData::None),
        ..PolicyData::default()
    };
    data.check("test").unwrap()
});

/// A pending job of kind `demo` in queue `default`, due at [`NOW`].
pub fn job() -> NewJob {
    let job = Job {
        id: random::job_id(NOW),
        version: 0,
        kind: "demo".into(),
        queue: "default".into(),
        priority: Priority::NORMAL,
        tenant: String::new(),
        enqueued_at: NOW,
        run_at: NOW,
        unique: None,
        state: State::Waiting { why: Wait::Fresh, due_at: NOW },
        counters: Counters::default(),
    };
    NewJob { job, args: Arc::from("{}"), idempotency: None }
}

pub fn jobs(count: usize) -> Vec<NewJob> {
    (0..count).map(|_| job()).collect()
}

/// Changes one thing of a job that is not inserted yet.
pub trait Draft {
    fn kind(self, kind: &str) -> Self;
    fn queue(self, queue: &str) -> Self;
    fn tenant(self, tenant: &str) -> Self;
    fn priority(self, priority: i64) -> Self;
    fn due(self, at: Time) -> Self;
    fn args(self, args: &str) -> Self;
    fn unique(self, key: &str, states: UniqueStates) -> Self;
    fn once(self, key: &str, call: &str) -> Self;
}

impl Draft for NewJob {
    fn kind(mut self, kind: &str) -> NewJob {
        self.job.kind = kind.into();
        self
    }

    fn queue(mut self, queue: &str) -> NewJob {
        self.job.queue = queue.into();
        self
    }

    fn tenant(mut self, tenant: &str) -> NewJob {
        self.job.tenant = tenant.into();
        self
    }

    fn priority(mut self, priority: i64) -> NewJob {
        self.job.priority = priority.try_into().unwrap();
        self
    }

    fn due(mut self, at: Time) -> NewJob {
        self.job.run_at = at;
        self.job.state = State::Waiting { why: Wait::Fresh, due_at: at };
        self
    }

    fn args(mut self, args: &str) -> NewJob {
        self.args = Arc::from(args);
        self
    }

    fn unique(mut self, key: &str, states: UniqueStates) -> NewJob {
        self.job.unique = Some(Unique { key_hash: KeyHash::of(key), states });
        self
    }

    /// With an idempotency key; `call` is what was asked for with it.
    fn once(mut self, key: &str, call: &str) -> NewJob {
        let (key_hash, fingerprint) = (KeyHash::of(key), KeyHash::of(call));
        self.idempotency = Some(Idempotency { key_hash, fingerprint, expires_at: NOW + Millis(1_000) });
        self
    }
}

/// The terms of these kinds. A job whose arguments say `hold` is held if its outcome is unknown.
pub fn terms(kinds: &[&str]) -> Arc<TermsOfKinds> {
    let on_unknown = |policy: &Policy, args: &str| {
        if args.contains("hold") { OnUnknown::Hold } else { policy.on_unknown() }
    };
    let terms = Terms { policy: Arc::new(POLICY.clone()), lease: LEASE, on_unknown };
    let by_kind: HashMap<String, Terms> = kinds.iter().map(|kind| ((*kind).into(), terms.clone())).collect();
    Arc::new(TermsOfKinds::new(by_kind, || Draw::MIDDLE))
}

/// Takes jobs of kind `demo` from queue `default`, at [`NOW`].
pub fn take(limit: usize) -> Take {
    let (worker, terms) = (random::worker_id(), terms(&["demo"]));
    Take { now: NOW, queue: "default".into(), limit, worker, terms }
}

pub fn worker(number: u128) -> WorkerId {
    WorkerId(uuid::Uuid::from_u128(number))
}

pub fn act() -> Act {
    Act { actor: "ann".into(), reason: "because".into() }
}

pub fn report(attempt: i64, outcome: Outcome) -> Command<'static> {
    Command::Report {
        attempt,
        ended: Ended::Returned(outcome),
        evidence: Evidence::plain(Effect::Possible, None),
        policy: &POLICY,
        draw: Draw::MIDDLE,
    }
}

/// What the attempt that runs now came to, a millisecond after [`NOW`].
pub fn ended(job: &Job, outcome: Outcome) -> Change {
    Change::decide(job, report(job.counters.claims, outcome), NOW + Millis(1)).unwrap()
}

pub fn sweep_of(job: &Job) -> Change {
    Change::decide(job, Command::Sweep { policy: &POLICY, draw: Draw::MIDDLE }, LEASE_OVER).unwrap()
}
