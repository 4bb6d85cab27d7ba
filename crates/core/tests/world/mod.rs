//! Jobs in every state and every command, for the tests that walk them.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "each test file uses its part of it, and may stop at a surprise"
)]

use std::sync::LazyLock;
use tidings_core::decide::{Command, Ended};
use tidings_core::evidence::Evidence;
use tidings_core::fact::{Act, Resolution};
use tidings_core::id::{JobId, WorkerId};
use tidings_core::job::{Claim, Counters, Job, Priority, State, Wait};
use tidings_core::outcome::{Effect, Outcome, SnoozeSource};
use tidings_core::policy::{Draw, OnUnknown, Policy, PolicyData};
use tidings_core::time::{Millis, Time};
use uuid::Uuid;

pub const NOW: Time = Time(1_000_000);
pub const WORKER: WorkerId = WorkerId(Uuid::from_u128(7));
pub const LEASE: Millis = Millis(45_000);

/// 3 attempts, 2 crashes, 1 s doubling without jitter.
pub static POLICY: LazyLock<Policy> = LazyLock::new(|| {
    let data: PolicyData =
        toml::from_str("attempts = 3\ncrashes_max = 2\njitter = \"none\"\nsnoozes_max = 1000000").unwrap();
    data.check("test").unwrap()
});

pub fn act() -> Act {
    Act { actor: "ann".into(), reason: "because".into() }
}

pub fn job(state: State, counters: Counters) -> Job {
    Job {
        id: JobId(Uuid::from_u128(1)),
        version: 0,
        kind: "demo".into(),
        queue: "default".into(),
        priority: Priority::NORMAL,
        tenant: String::new(),
        enqueued_at: Time(0),
        run_at: Time(0),
        unique: None,
        state,
        counters,
    }
}

pub fn fresh() -> Job {
    job(State::Waiting { why: Wait::Fresh, due_at: Time(0) }, Counters::default())
}

pub fn claim(number: i64, lease_until: Time, on_unknown: OnUnknown) -> Claim {
    Claim {
        number,
        worker: WORKER,
        started_at: NOW - Millis(60_000),
        lease_until,
        from: Wait::Fresh,
        on_unknown,
    }
}

pub fn states() -> Vec<(&'static str, Job)> {
    let later = NOW + Millis(10_000);
    let past = NOW - Millis(1);
    let counters = |claims, attempts| Counters { claims, attempts, ..Counters::default() };
    let waiting = |why, due_at| job(State::Waiting { why, due_at }, counters(1, 1));
    let running = |claim, cancel_requested, accepted_late, counters| {
        job(State::Running { claim, cancel_requested, accepted_late }, counters)
    };
    let retried = |lease_until| claim(1, lease_until, OnUnknown::Retry);
    let last = |lease_until| claim(3, lease_until, OnUnknown::Retry);
    let crashed = Counters { crashes: 1, ..counters(1, 0) };
    vec![
        ("pending, not due", job(State::Waiting { why: Wait::Fresh, due_at: later }, Counters::default())),
        ("pending, due", fresh()),
        ("retryable, not due", waiting(Wait::Retry, later)),
        ("snoozed, due", waiting(Wait::Snooze, NOW)),
        ("unknown, retry not due", waiting(Wait::Unknown, later)),
        ("unknown, held", job(State::Held, counters(1, 1))),
        ("running", running(retried(later), false, false, counters(1, 0))),
        ("running, holds unknowns", running(claim(1, later, OnUnknown::Hold), false, false, counters(1, 0))),
        ("running, last attempt (number 3)", running(last(later), false, false, counters(3, 2))),
        ("running, cancel requested", running(retried(later), true, false, counters(1, 0))),
        (
            "running attempt 2, attempt 1 accepted late",
            running(claim(2, later, OnUnknown::Retry), false, true, counters(2, 1)),
        ),
        ("running, lease over", running(retried(past), false, false, counters(1, 0))),
        (
            "running, lease over, holds unknowns",
            running(claim(1, past, OnUnknown::Hold), false, false, counters(1, 0)),
        ),
        ("running, lease over, last attempt (number 3)", running(last(past), false, false, counters(3, 2))),
        ("running, lease over, last crash", running(retried(past), false, false, crashed)),
        ("running, lease over, cancel requested", running(retried(past), true, false, counters(1, 0))),
        ("completed", job(State::Completed { at: past }, counters(1, 1))),
        ("completed by attempt 2", job(State::Completed { at: past }, counters(2, 2))),
        ("discarded", job(State::Discarded { at: past }, counters(1, 3))),
        ("cancelled", job(State::Cancelled { at: past }, counters(1, 0))),
    ]
}

pub fn report(attempt: i64, ended: Ended, effect: Effect) -> Command<'static> {
    let evidence = Evidence::plain(effect, None);
    Command::Report { attempt, ended, evidence, policy: &POLICY, draw: Draw(0) }
}

pub fn outcomes() -> Vec<(&'static str, Outcome, Effect)> {
    vec![
        ("accepted", Outcome::Accepted, Effect::Done),
        ("retryable", Outcome::retryable("503"), Effect::Possible),
        ("snooze", Outcome::snooze(NOW + Millis(5_000), "not now"), Effect::None),
        ("discard", Outcome::discard("410"), Effect::None),
        ("unknown", Outcome::unknown("no answer"), Effect::Possible),
    ]
}

pub fn commands() -> Vec<(String, Command<'static>)> {
    let mut all = vec![
        ("start".to_owned(), Command::Start { worker: WORKER, lease: LEASE, on_unknown: OnUnknown::Retry }),
        ("sweep".to_owned(), Command::Sweep { policy: &POLICY, draw: Draw(0) }),
        ("release attempt 1".to_owned(), Command::Release { attempt: 1 }),
        ("cancel".to_owned(), Command::Cancel(act())),
        ("retry".to_owned(), Command::Retry(act())),
        ("resolve: accepted".to_owned(), Command::Resolve(Resolution::Accepted, act())),
        ("resolve: retry".to_owned(), Command::Resolve(Resolution::Retry, act())),
        ("resolve: give up".to_owned(), Command::Resolve(Resolution::GiveUp, act())),
    ];
    for (name, outcome, effect) in outcomes() {
        all.push((format!("report 1: {name}"), report(1, Ended::Returned(outcome), effect)));
    }
    all.push(("report 1: stopped by cancel".to_owned(), report(1, Ended::Cancelled, Effect::Possible)));
    all.push((
        "report 3: retryable".to_owned(),
        report(3, Ended::Returned(Outcome::retryable("503")), Effect::Possible),
    ));
    all
}

pub fn retry_after_snooze(until: Time) -> Ended {
    Ended::Returned(Outcome::Snooze { until, source: SnoozeSource::RetryAfter, reason: "429".into() })
}
