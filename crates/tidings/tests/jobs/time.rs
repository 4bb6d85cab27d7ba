//! Clocks that jump, and times that do not fit where others kept them.

use crate::fixture::*;
use tidings::testing::{perform_stored, sweep, take_one};
use tidings::{Enqueue, EnqueueRefused, Millis, Outcome, Tidings};

on_both_stores![
    a_clock_that_jumps_back_and_forth_loses_no_job_and_runs_none_twice,
    an_attempt_never_ends_before_it_started,
    a_due_time_far_ahead_is_kept_exactly,
    a_change_is_compared_by_version_and_not_by_time,
];

/// TM1, TM8: what is due by the clock is due, and nothing waits for the time that was jumped over.
async fn a_clock_that_jumps_back_and_forth_loses_no_job_and_runs_none_twice(db: Database) {
    let script = Script::new([Outcome::retryable("503"), Outcome::Accepted]);
    let tidings = db.held(Tidings::builder().kind::<Note, _, _, _>(script.clone(), play)).await;
    let first = tidings.enqueue(Note::new("a")).await.unwrap().id;
    tidings.clock.advance(Millis::from_days(365));
    tidings.drain().await;
    tidings.clock.advance(Millis::from_days(-365));
    assert_eq!(tidings.drain().await, 0, "its retry is due in the year that was jumped over");
    let second = tidings.enqueue(Note::new("b")).await.unwrap().id;
    assert_eq!(tidings.drain().await, 1, "new work goes on");
    assert_eq!(state(&tidings, second).await, "completed");
    tidings.retry(first, &act("the clock was wrong")).await.unwrap();
    assert_eq!(tidings.drain().await, 1);
    for hours in [2, -2, -12] {
        tidings.clock.advance(Millis::from_hours(hours));
        let id = tidings.enqueue(Note::new("c")).await.unwrap().id;
        assert_eq!((tidings.drain().await, state(&tidings, id).await), (1, "completed"));
    }
    assert_eq!(state(&tidings, first).await, "completed");
    assert_eq!(sweep(&tidings).await.unwrap(), 0);
}

/// TM2: the clock was set back by ten seconds while a job ran.
async fn an_attempt_never_ends_before_it_started(db: Database) {
    let tidings = db.held(Tidings::builder().kind::<Note, _, _, _>(Script::accepting(), play)).await;
    let id = tidings.enqueue(Note::new("a")).await.unwrap().id;
    let running = take_one(&tidings).await.unwrap().expect("a due job");
    tidings.clock.advance(Millis::from_seconds(-10));
    perform_stored(&tidings, running).await.unwrap();
    let attempt = view(&tidings, id).await.attempts.remove(0);
    assert_eq!(attempt.end.unwrap().at.since(attempt.started_at), Millis(0), "a duration is never negative");
    assert_eq!(state(&tidings, id).await, "completed");
    tidings.enqueue(Note::new("b")).await.unwrap();
    assert_eq!(tidings.drain().await, 1, "and it goes on");
}

/// TM7.
async fn a_due_time_far_ahead_is_kept_exactly(db: Database) {
    let script = Script::accepting();
    let tidings = db.held(Tidings::builder().kind::<Note, _, _, _>(script.clone(), play)).await;
    for days in [60, 365 * 100] {
        let run_at = NOW + Millis::from_days(days);
        let id = tidings.enqueue(Enqueue::new(Note::new("a")).run_at(run_at)).await.unwrap().id;
        assert_eq!(job(&tidings, id).await.state.due_at(), Some(run_at));
    }
    assert_eq!(tidings.drain().await, 0, "not at once");
    let beyond = Enqueue::new(Note::new("a")).run_at(tidings::Time(i64::MAX));
    assert!(matches!(tidings.enqueue(beyond).await, Err(EnqueueRefused::BadField { field: "run_at", .. })));
    tidings.clock.advance(Millis::from_days(60));
    assert_eq!(tidings.drain().await, 1);
}

/// TM4: two changes in the same millisecond are two versions.
async fn a_change_is_compared_by_version_and_not_by_time(db: Database) {
    let tidings = db.held(Tidings::builder().kind::<Note, _, _, _>(Script::accepting(), play)).await;
    let id = tidings.enqueue(Note::new("a")).await.unwrap().id;
    let before = job(&tidings, id).await;
    let cancel = |job| {
        let command = tidings::core::decide::Command::Cancel(act("now"));
        tidings::store::Change::decide(job, command, NOW).unwrap()
    };
    let stale = cancel(&before);
    tidings.cancel(id, &act("now")).await.unwrap();
    tidings.retry(id, &act("now")).await.unwrap();
    assert_eq!(tidings.store().save(vec![stale]).await.unwrap(), [tidings::store::Saved::Conflict]);
    assert_eq!(state(&tidings, id).await, "pending");
}
