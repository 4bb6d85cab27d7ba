//! Workers that die, go silent or come back late: sweeps, holds, crash budgets, and
//! the races around them.

use crate::fixture::*;
use std::sync::Arc;
use tidings::core::decide::Command;
use tidings::core::fact::{DiscardWhy, EndedBy, Next};
use tidings::core::outcome::{AttemptOutcome, Effect, FailureKind};
use tidings::inspect::Event;
use tidings::store::{Change, Saved, Told};
use tidings::testing::{perform_stored, sweep, take_one};
use tidings::{Declaration, JobId, Kind, Millis, Outcome, Resolution, Tidings};

on_both_stores![
    a_worker_that_died_leaves_an_unknown_outcome_that_the_policy_decides_about,
    a_process_that_died_is_an_attempt_like_an_error,
    a_job_that_kills_its_workers_runs_out_of_crashes_before_attempts,
    a_late_accepted_settles_an_unknown_job,
    a_late_failure_changes_nothing_and_is_kept,
    a_late_accepted_makes_the_attempt_in_flight_the_last_one,
    every_stale_lease_is_ended_in_one_sweep,
    a_sweep_leaves_kinds_alone_that_it_does_not_know,
    a_lease_goes_by_its_own_kind,
    a_sweep_that_comes_second_changes_nothing,
    sweeps_and_finishes_at_the_same_time_leave_one_end_each,
    a_job_that_waits_is_never_swept,
];

async fn a_worker_that_died_leaves_an_unknown_outcome_that_the_policy_decides_about(db: Database) {
    let builder = Tidings::builder().kind::<Note, _, _, _>(Script::accepting(), play);
    let tidings = db.held(builder.kind::<Letter, _, _, _>(Script::accepting(), play)).await;
    let note = tidings.enqueue(Note::new("a")).await.unwrap().id;
    let letter = tidings.enqueue(Letter::new("a")).await.unwrap().id;
    while take_one(&tidings).await.unwrap().is_some() {}
    tidings.clock.advance(Millis(44_999));
    assert_eq!(sweep(&tidings).await.unwrap(), 0, "the leases are not over");
    tidings.clock.advance(Millis(1));
    assert_eq!(sweep(&tidings).await.unwrap(), 2);
    for (id, held) in [(note, false), (letter, true)] {
        let end = last_end(&tidings, id).await;
        assert_eq!((end.outcome, end.ended_by), (AttemptOutcome::Unknown, EndedBy::Sweep));
        assert_eq!(
            (end.evidence.effect, end.evidence.failure_kind),
            (Effect::Possible, Some(FailureKind::WorkerLost))
        );
        assert_eq!(end.next == Next::Held, held);
        assert_eq!(state(&tidings, id).await, "unknown");
    }
    tidings.drain_when_due(note).await;
    assert_eq!(
        outcomes(&tidings, note).await,
        [(1, Some(AttemptOutcome::Unknown)), (2, Some(AttemptOutcome::Accepted))]
    );
    tidings.resolve(letter, Resolution::Retry, &act("nothing arrived")).await.unwrap();
    tidings.drain().await;
    assert_eq!(state(&tidings, letter).await, "completed");
}

/// CL17.
async fn a_process_that_died_is_an_attempt_like_an_error(db: Database) {
    let script = Script::new([Outcome::retryable("503")]);
    let tidings = db.held(Tidings::builder().kind::<Note, _, _, _>(script, play)).await;
    let died = tidings.enqueue(Note::new("a")).await.unwrap().id;
    take_one(&tidings).await.unwrap().expect("a due job");
    tidings.clock.advance(Millis::from_seconds(45));
    sweep(&tidings).await.unwrap();
    let failed = tidings.enqueue(Note::new("b")).await.unwrap().id;
    tidings.drain().await;
    let (died, failed) = (last_end(&tidings, died).await, last_end(&tidings, failed).await);
    for end in [&died, &failed] {
        assert!((900..=1_100).contains(&end.delay_ms.unwrap()), "the policy's first delay: {end:?}");
        assert_eq!(end.policy, "default@1");
    }
    let reason = "the worker was not heard of within its lease of 45 s: its process died or hung";
    assert_eq!(died.reason, reason);
}

async fn a_job_that_kills_its_workers_runs_out_of_crashes_before_attempts(db: Database) {
    let tidings = db.held(Tidings::builder().kind::<Note, _, _, _>(Script::accepting(), play)).await;
    let id = tidings.enqueue(Note::new("a")).await.unwrap().id;
    let mut deaths = 0;
    while let Some(due_at) = job(&tidings, id).await.state.due_at() {
        tidings.clock.set(due_at);
        match take_one(&tidings).await.unwrap() {
            Some(_) => deaths += 1,
            None => assert_eq!(sweep(&tidings).await.unwrap(), 1),
        }
    }
    assert_eq!(deaths, 5);
    let job = job(&tidings, id).await;
    assert_eq!((job.state.name().as_str(), job.counters.crashes, job.counters.attempts), ("discarded", 5, 5));
    assert_eq!(last_end(&tidings, id).await.next, Next::Discarded { why: DiscardWhy::CrashesUsedUp });
    tidings.retry(id, &act("the host has more memory now")).await.unwrap();
    tidings.drain().await;
    assert_eq!(state(&tidings, id).await, "completed", "brought back, it has its crashes again");
}

/// A job whose worker went silent, was swept, and reports after all.
async fn late(tidings: &Held) -> JobId {
    let id = tidings.enqueue(Note::new("a")).await.unwrap().id;
    let stale = take_one(tidings).await.unwrap().expect("a due job");
    tidings.clock.advance(Millis::from_seconds(45));
    sweep(tidings).await.unwrap();
    assert_eq!(state(tidings, id).await, "unknown");
    perform_stored(tidings, stale).await.unwrap();
    id
}

async fn a_late_accepted_settles_an_unknown_job(db: Database) {
    let script = Script::accepting();
    let tidings = db.held(Tidings::builder().kind::<Note, _, _, _>(script.clone(), play)).await;
    let id = late(&tidings).await;
    assert_eq!(state(&tidings, id).await, "completed");
    tidings.clock.advance(Millis::from_days(1));
    assert_eq!(tidings.drain().await, 0, "it never runs again");
    assert_eq!(outcomes(&tidings, id).await, [(1, Some(AttemptOutcome::Unknown))], "as it was recorded");
    let events = view(&tidings, id).await.events;
    assert!(
        matches!(&events[..], [event] if matches!(&event.what, Event::ReportedLate(late) if late.settles))
    );
}

async fn a_late_failure_changes_nothing_and_is_kept(db: Database) {
    let script = Script::new([Outcome::discard("410"), Outcome::Accepted]);
    let tidings = db.held(Tidings::builder().kind::<Note, _, _, _>(script.clone(), play)).await;
    let id = late(&tidings).await;
    assert_eq!((state(&tidings, id).await, job(&tidings, id).await.counters.attempts), ("unknown", 1));
    let events = view(&tidings, id).await.events;
    assert!(matches!(&events[..], [event] if matches!(&event.what,
        Event::ReportedLate(late) if !late.settles && late.outcome == AttemptOutcome::PermanentFailure)));
    tidings.drain_when_due(id).await;
    assert_eq!(state(&tidings, id).await, "completed");
}

async fn a_late_accepted_makes_the_attempt_in_flight_the_last_one(db: Database) {
    let script = Script::new([Outcome::Accepted, Outcome::retryable("a duplicate")]);
    let tidings = db.held(Tidings::builder().kind::<Note, _, _, _>(script, play)).await;
    let id = tidings.enqueue(Note::new("a")).await.unwrap().id;
    let stale = take_one(&tidings).await.unwrap().expect("a due job");
    tidings.clock.advance(Millis::from_seconds(45));
    sweep(&tidings).await.unwrap();
    tidings.clock.advance(Millis::from_minutes(1));
    let second = take_one(&tidings).await.unwrap().expect("due again");
    perform_stored(&tidings, stale).await.unwrap();
    assert_eq!(state(&tidings, id).await, "running");
    perform_stored(&tidings, second).await.unwrap();
    assert_eq!(last_end(&tidings, id).await.next, Next::Completed { by_late_report: true });
    assert_eq!(state(&tidings, id).await, "completed");
}

/// ST1, ST5: found by the lease of the attempt, whoever the worker was; more than one
/// batch of the sweep.
async fn every_stale_lease_is_ended_in_one_sweep(db: Database) {
    let builder = Tidings::builder().kind::<Note, _, _, _>(Script::accepting(), play);
    let tidings = db.held(builder.kind::<Hook, _, _, _>(Script::accepting(), play)).await;
    tidings.enqueue_all((0..450).map(|n| Note::new(&n.to_string()))).await.unwrap();
    tidings.enqueue_all((0..3).map(|n| Hook::new(&n.to_string()))).await.unwrap();
    for queue in ["default", "hooks"] {
        let take = tidings::store::Take {
            now: tidings.now(),
            queue: queue.into(),
            limit: 1_000,
            worker: tidings::random::worker_id(),
            terms: Arc::new(tidings.registry().terms()),
        };
        tidings.store().take_due(&take).await.unwrap();
    }
    tidings.clock.advance(Millis::from_seconds(45));
    assert_eq!(sweep(&tidings).await.unwrap(), 453);
    assert_eq!(sweep(&tidings).await.unwrap(), 0);
}

/// MT4, ST2: what a process may not move does not stand in the way of what it may.
async fn a_sweep_leaves_kinds_alone_that_it_does_not_know(db: Database) {
    let both = db
        .held(
            Tidings::builder()
                .kind::<Note, _, _, _>(Script::accepting(), play)
                .kind::<Swift, _, _, _>(Script::accepting(), play),
        )
        .await;
    let swift = both.enqueue_all((0..300).map(|n| Swift::new(&n.to_string()))).await.unwrap();
    let note = both.enqueue(Note::new("a")).await.unwrap().id;
    while take_one(&both).await.unwrap().is_some() {}
    both.clock.advance(Millis::from_minutes(1));
    let notes_only =
        db.held_by(&both.clock, Tidings::builder().kind::<Note, _, _, _>(Script::accepting(), play)).await;
    assert_eq!(sweep(&notes_only).await.unwrap(), 1, "the one behind 300 that are older");
    assert_eq!(state(&both, note).await, "unknown");
    assert_eq!(state(&both, swift[0].id).await, "running", "nobody here knows how to go on with it");
    assert_eq!(sweep(&both).await.unwrap(), 300);
}

/// ST4.
async fn a_lease_goes_by_its_own_kind(db: Database) {
    /// Two minutes.
    #[derive(serde::Serialize, serde::Deserialize)]
    struct Slow;
    impl Kind for Slow {
        const DECLARATION: Declaration = Declaration::new("slow").time_limit(Millis::from_minutes(2));
    }
    let builder = Tidings::builder().kind::<Note, _, _, _>(Script::accepting(), play);
    let tidings = db.held(builder.kind::<Slow, _, _, _>(Script::accepting(), play)).await;
    let slow = tidings.enqueue(Slow).await.unwrap().id;
    let running = take_one(&tidings).await.unwrap().expect("a due job");
    tidings.clock.advance(Millis::from_seconds(90));
    assert_eq!(sweep(&tidings).await.unwrap(), 0);
    perform_stored(&tidings, running).await.unwrap();
    assert_eq!(state(&tidings, slow).await, "completed");
}

/// CW1: the sweep decided, and before it wrote the job was finished, or taken again.
async fn a_sweep_that_comes_second_changes_nothing(db: Database) {
    let script = Script::accepting();
    let tidings = db.held(Tidings::builder().kind::<Note, _, _, _>(script, play)).await;
    let id = tidings.enqueue(Note::new("a")).await.unwrap().id;
    let running = take_one(&tidings).await.unwrap().expect("a due job");
    let policy = &tidings.registry().declared()[0].policy;
    let swept = || Command::Sweep { policy, draw: tidings::random::draw() };
    let over = tidings.now() + Millis::from_seconds(45);
    let decided = Change::decide(&running.job, swept(), over).unwrap();
    perform_stored(&tidings, running).await.unwrap();
    assert_eq!(tidings.store().save(vec![decided]).await.unwrap(), [Saved::Conflict]);
    assert_eq!(state(&tidings, id).await, "completed");

    let id = tidings.enqueue(Note::new("b")).await.unwrap().id;
    let first = take_one(&tidings).await.unwrap().expect("a due job");
    let over = tidings.now() + Millis::from_seconds(45);
    let decided = Change::decide(&first.job, swept(), over).unwrap();
    tidings.clock.set(over);
    sweep(&tidings).await.unwrap();
    tidings.clock.advance(Millis::from_minutes(1));
    let second = take_one(&tidings).await.unwrap().expect("due again").job;
    assert_eq!(tidings.store().save(vec![decided]).await.unwrap(), [Saved::Conflict]);
    assert_eq!(job(&tidings, id).await, second, "the second attempt is untouched");
}

/// CW2: sweeps and reports race over the same jobs.
async fn sweeps_and_finishes_at_the_same_time_leave_one_end_each(db: Database) {
    let script = Script::accepting();
    let builder = || Tidings::builder().kind::<Note, _, _, _>(script.clone(), play);
    let (worker, sweeper) = {
        let worker = db.held(builder()).await;
        let sweeper = db.held_by(&worker.clock, builder()).await;
        (worker, sweeper)
    };
    let jobs = (0..300).map(|n| Note::new(&n.to_string()));
    let ids: Vec<_> = worker.enqueue_all(jobs).await.unwrap().iter().map(|receipt| receipt.id).collect();
    let mut running = Vec::new();
    while let Some(stored) = take_one(&worker).await.unwrap() {
        running.push(stored);
    }
    worker.clock.advance(Millis::from_seconds(45));
    let finishes =
        futures_util::future::join_all(running.into_iter().map(|stored| perform_stored(&worker, stored)));
    let (swept, told) = futures_util::future::join(sweep(&sweeper), finishes).await;
    assert!(told.iter().all(|told| matches!(told, Ok(Told::Done(_)))));
    assert!(swept.unwrap() <= 300);
    for id in ids {
        let view = view(&worker, id).await;
        assert_eq!(view.job.state.name().as_str(), "completed");
        assert_eq!(
            (view.attempts.len(), view.events.len()),
            (1, 1),
            "swept once, and accepted late: {view:?}"
        );
    }
}

/// DU22: a backlog, a retry and a snooze are not lost work.
async fn a_job_that_waits_is_never_swept(db: Database) {
    let script = Script::new([
        Outcome::retryable("503"),
        Outcome::snooze(NOW + Millis::from_days(3), "later"),
        Outcome::Accepted,
    ]);
    let tidings = db.held(Tidings::builder().kind::<Note, _, _, _>(script.clone(), play)).await;
    let first = tidings.enqueue(Note::new("a")).await.unwrap().id;
    tidings.drain().await;
    let second = tidings.enqueue(Note::new("b")).await.unwrap().id;
    tidings.drain().await;
    let third = tidings.enqueue(Note::new("c")).await.unwrap().id;
    tidings.clock.advance(Millis::from_days(2));
    assert_eq!(sweep(&tidings).await.unwrap(), 0);
    for (id, expected) in [(first, "retryable"), (second, "snoozed"), (third, "pending")] {
        assert_eq!(state(&tidings, id).await, expected);
    }
    tidings.drain().await;
    assert_eq!(script.attempts().len(), 5, "each attempt once");
}
