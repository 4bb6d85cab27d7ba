//! Helpers for tests of an application's own jobs: no workers, no sleeping.
//!
//! [`perform`] runs one handler as a worker would. [`drain`] carries out what is
//! due on the database, by a clock that the test holds. [`assert_enqueued`] looks.
//! [`throw_away`] gives a database to do it on.

#[cfg(feature = "sqlite")]
mod throw_away;

#[cfg(feature = "sqlite")]
pub use throw_away::{TEST_BEGINS, TestTidings, throw_away};

use crate::attempt::{self, Reins};
use crate::client::Tidings;
use crate::kind::{Kind, Report};
use crate::random;
use crate::relay;
use crate::store::{JobFilter, StoreError, Stored, Take, Told, tell};
use crate::ticker;
use std::sync::Arc;
use tidings_core::decide::{Command, Ended};
use tidings_core::id::JobId;
use tidings_core::job::{Claim, Counters, Job, Priority, State, Wait};
use tidings_core::outcome::Outcome;
use tidings_core::policy::OnUnknown;
use tokio::sync::{Notify, watch};

/// Jobs that one [`drain`] carries out at most: a job that is due again at once
/// for ever is a fault of the test.
const DRAIN_MAX: usize = 100_000;

/// Runs the handler of `args`' kind once, as a worker would: arguments through
/// JSON, time limit, panics caught. No database is touched.
///
/// # Panics
/// When the kind is not registered, or its arguments do not become JSON.
pub async fn perform<K: Kind>(tidings: &Tidings, args: K) -> Report {
    let name = K::DECLARATION.name;
    let kind = tidings.registry().get(name).unwrap_or_else(|| panic!("kind `{name}` is not registered"));
    let args =
        serde_json::to_string(&args).unwrap_or_else(|error| panic!("`{name}` does not become JSON: {error}"));
    let now = tidings.now();
    let lease_until = now + kind.time_limit;
    let claim = Claim {
        number: 1,
        worker: random::worker_id(),
        started_at: now,
        lease_until,
        from: Wait::Fresh,
        on_unknown: OnUnknown::Retry,
    };
    let job = Job {
        id: random::job_id(now),
        version: 1,
        kind: name.to_owned(),
        queue: kind.queue.clone(),
        priority: Priority::NORMAL,
        tenant: String::new(),
        enqueued_at: now,
        run_at: now,
        unique: None,
        state: State::Running { claim, cancel_requested: false, accepted_late: false },
        counters: Counters { claims: 1, ..Counters::default() },
    };
    let end = attempt::execute(kind, &Stored { job, args: Arc::from(args) }, loose()).await;
    match end.ended {
        Ended::Returned(outcome) => Report { outcome, evidence: end.evidence },
        Ended::Cancelled => Report { outcome: Outcome::unknown("cancelled"), evidence: end.evidence },
    }
}

/// Carries out every job that is due, and those that become due by it, until none
/// is; one after the other, most urgent and oldest first. How many attempts were made.
///
/// # Errors
/// When the database cannot be read or written.
///
/// # Panics
/// When it does not come to an end.
pub async fn drain(tidings: &Tidings) -> Result<usize, StoreError> {
    let mut attempts = 0;
    while let Some(stored) = take_one(tidings).await? {
        perform_stored(tidings, stored).await?;
        attempts += 1;
        assert!(attempts < DRAIN_MAX, "{DRAIN_MAX} attempts and still something is due");
    }
    Ok(attempts)
}

/// Takes one due job of any queue and leaves it running, as a worker that then dies would.
///
/// # Errors
/// When the database cannot be read or written.
pub async fn take_one(tidings: &Tidings) -> Result<Option<Stored>, StoreError> {
    let parts = &tidings.parts;
    for queue in &parts.queues {
        let take = Take {
            now: parts.clock.now(),
            queue: queue.clone(),
            limit: 1,
            worker: random::worker_id(),
            terms: Arc::clone(&parts.terms),
        };
        if let Some(stored) = parts.store.take_due(&take).await?.started.pop() {
            return Ok(Some(stored));
        }
    }
    Ok(None)
}

/// Runs the handler of a job that was taken, and records how it ended, as a worker
/// would: also when it is late, or when the job has been changed since.
///
/// # Errors
/// When the database cannot be read or written.
///
/// # Panics
/// When the kind is not registered.
pub async fn perform_stored(tidings: &Tidings, stored: Stored) -> Result<Told, StoreError> {
    let parts = &tidings.parts;
    let name = &stored.job.kind;
    let kind = parts.registry.get(name).unwrap_or_else(|| panic!("kind `{name}` is not registered"));
    let end = attempt::execute(kind, &stored, loose()).await;
    let report = Command::Report {
        attempt: stored.job.counters.claims,
        ended: end.ended,
        evidence: end.evidence,
        policy: &kind.policy,
        draw: parts.terms.draw(),
    };
    let told = tell(&*parts.store, stored.job.id, report, parts.clock.now()).await?;
    if let Told::Done(job) = &told {
        attempt::announce(parts, job, &job.state);
    }
    Ok(told)
}

/// Fans out every event that is due, as the relay of any process would; how many. The
/// kinds of `tidings` count as carried out, as if its workers had been started.
///
/// # Errors
/// When the database cannot be read or written.
pub async fn relay(tidings: &Tidings) -> Result<usize, StoreError> {
    tidings.parts.store.keep_kinds(&tidings.registry().kept()).await?;
    relay::pass(&tidings.parts).await
}

/// Looks at the backlog of events, as every process does now and then.
///
/// # Errors
/// When the database cannot be read or written.
pub async fn watch_backlog(tidings: &Tidings) -> Result<(), StoreError> {
    relay::watch_backlog(&tidings.parts).await
}

/// Ends every attempt whose lease is over, as the sweep of any process would.
///
/// # Errors
/// When the database cannot be read or written.
pub async fn sweep(tidings: &Tidings) -> Result<usize, StoreError> {
    ticker::sweep(&tidings.parts).await
}

/// Removes what is older than retention keeps, as the hourly housekeeping would.
///
/// # Errors
/// When the database cannot be read or written.
pub async fn keep_house(tidings: &Tidings) -> Result<(), StoreError> {
    ticker::keep_house(&tidings.parts).await
}

/// Asserts that a job of `args`' kind with just these arguments is enqueued and
/// not finished; its id.
///
/// # Panics
/// When there is none, with those of its kind that there are.
pub async fn assert_enqueued<K: Kind>(tidings: &Tidings, args: &K) -> JobId {
    let name = K::DECLARATION.name;
    let wanted =
        serde_json::to_value(args).unwrap_or_else(|error| panic!("`{name}` does not become JSON: {error}"));
    let found = enqueued(tidings, name).await;
    let there = || found.iter().map(|(_, args)| args.to_string()).collect::<Vec<_>>().join("\n  ");
    found.iter().find(|(_, args)| *args == wanted).map_or_else(
        || panic!("no job `{name}` with {wanted} is enqueued; there are:\n  {}", there()),
        |(id, _)| *id,
    )
}

/// Asserts that no job of the kind is enqueued.
///
/// # Panics
/// When there is one.
pub async fn refute_enqueued<K: Kind>(tidings: &Tidings) {
    let name = K::DECLARATION.name;
    let found = enqueued(tidings, name).await;
    assert!(found.is_empty(), "jobs `{name}` are enqueued: {found:?}");
}

async fn enqueued(tidings: &Tidings, kind: &str) -> Vec<(JobId, serde_json::Value)> {
    let filter = JobFilter { kind: kind.to_owned(), limit: DRAIN_MAX, ..JobFilter::default() };
    let jobs = tidings.jobs(&filter).await.unwrap_or_else(|error| panic!("{error}"));
    let ids: Vec<JobId> =
        jobs.iter().filter(|job| job.state.finished_at().is_none()).map(|job| job.id).collect();
    let stored = tidings.store().load(&ids).await.unwrap_or_else(|error| panic!("{error}"));
    stored
        .into_iter()
        .flatten()
        .map(|stored| {
            let args = serde_json::from_str(&stored.args).unwrap_or_else(|error| panic!("{error}"));
            (stored.job.id, args)
        })
        .collect()
}

/// Reins that nobody pulls. The sender of a dropped channel never says stop.
fn loose() -> Reins {
    Reins { cancelled: Arc::new(Notify::new()), stopped: watch::channel(false).1 }
}
