//! Real workers: who they take and how many, what stops a handler, what wakes them.

use crate::fixture::*;
use std::sync::Arc;
use std::time::Duration;
use tidings::core::outcome::{AttemptOutcome, FailureKind};
use tidings::core::policy::PolicyData;
use tidings::{Attempt, Millis, Outcome, Settings, Tidings, WorkRefused};
use tokio::sync::Semaphore;

on_both_stores![
    a_queue_that_is_blocked_starves_no_other,
    a_queue_has_as_many_in_flight_as_it_has_workers,
    a_job_starts_at_once_without_a_poll,
    a_retry_starts_when_it_is_due_without_a_poll,
    a_running_job_that_is_cancelled_loses_its_handler,
    a_time_limit_ends_the_handler_before_the_next_attempt_begins,
    a_panic_takes_no_worker_with_it,
    a_thousand_jobs_of_many_callers_run_once_each,
    a_policy_that_changed_without_its_version_is_refused,
    a_queue_without_workers_is_refused,
];

/// Nothing is found by looking again: only signals, and due times that were seen.
fn without_poll() -> Settings {
    Settings {
        poll: Duration::from_secs(3_600),
        sweep_every: Duration::from_secs(3_600),
        ..Settings::default()
    }
}

async fn a_queue_that_is_blocked_starves_no_other(db: Database) {
    let gate = Gate::default();
    let builder = Tidings::builder()
        .kind::<Letter, _, _, _>(gate.clone(), wait_at_gate)
        .kind::<Note, _, _, _>(Script::accepting(), play)
        .workers("mail", 1)
        .workers("default", 2);
    let tidings = db.open(builder).await;
    let workers = tidings.work().await.unwrap();
    let letters = tidings.enqueue_all(["a", "b"].map(Letter::new)).await.unwrap();
    gate.begun().await;
    for n in 0..20 {
        let note = tidings.enqueue(Note::new(&n.to_string())).await.unwrap().id;
        assert_eq!(settled(&tidings, note).await.state.name().as_str(), "completed");
    }
    assert_eq!(state(&tidings, letters[0].id).await, "running");
    assert_eq!(state(&tidings, letters[1].id).await, "pending", "the one worker of its queue is busy");
    assert_eq!(workers.ready(), Ok(()));
    gate.open();
    gate.begun().await;
    gate.open();
    for letter in letters {
        settled(&tidings, letter.id).await;
    }
    workers.stop().await;
}

async fn a_queue_has_as_many_in_flight_as_it_has_workers(db: Database) {
    /// Counts who is in, and remembers the most.
    async fn count(inside: Arc<(Semaphore, std::sync::Mutex<usize>)>, _: Attempt<Note>) -> Outcome {
        let _place = inside.0.acquire().await;
        let now_in = 100 - inside.0.available_permits();
        {
            let mut most = inside.1.lock().unwrap();
            *most = now_in.max(*most);
        }
        tokio::task::yield_now().await;
        Outcome::Accepted
    }
    let inside = Arc::new((Semaphore::new(100), std::sync::Mutex::new(0)));
    let tidings = db.open(Tidings::builder().kind(Arc::clone(&inside), count).workers("default", 3)).await;
    let receipts = tidings.enqueue_all((0..60).map(|n| Note::new(&n.to_string()))).await.unwrap();
    let workers = tidings.work().await.unwrap();
    for receipt in receipts {
        settled(&tidings, receipt.id).await;
    }
    workers.stop().await;
    let most = *inside.1.lock().unwrap();
    assert!((1..=3).contains(&most), "{most} at once");
}

async fn a_job_starts_at_once_without_a_poll(db: Database) {
    let tidings = db
        .open(Tidings::builder().settings(without_poll()).kind::<Note, _, _, _>(Script::accepting(), play))
        .await;
    let workers = tidings.work().await.unwrap();
    for n in 0..20 {
        let id = tidings.enqueue(Note::new(&n.to_string())).await.unwrap().id;
        assert_eq!(settled(&tidings, id).await.state.name().as_str(), "completed");
    }
    workers.stop().await;
}

async fn a_retry_starts_when_it_is_due_without_a_poll(db: Database) {
    let backoff = tidings::core::policy::BackoffData::Steps { steps_ms: vec![30] };
    let policy = PolicyData { backoff: Some(backoff), ..PolicyData::default() }.check("soon").unwrap();
    let script = Script::new([Outcome::retryable("503"), Outcome::retryable("503"), Outcome::Accepted]);
    let builder = Tidings::builder().settings(without_poll()).kind::<Note, _, _, _>(script, play);
    let tidings = db.open(builder.policy("note", policy)).await;
    let workers = tidings.work().await.unwrap();
    let id = tidings.enqueue(Note::new("a")).await.unwrap().id;
    assert_eq!(settled(&tidings, id).await.state.name().as_str(), "completed");
    let attempts = view(&tidings, id).await.attempts;
    let ends: Vec<_> = attempts.iter().map(|attempt| attempt.end.as_ref().unwrap().at).collect();
    for (end, next) in ends.iter().zip(&attempts[1..]) {
        assert!(next.started_at.since(*end) >= Millis(27), "not before its time");
    }
    workers.stop().await;
}

async fn a_running_job_that_is_cancelled_loses_its_handler(db: Database) {
    let gate = Gate::default();
    let tidings = db.open(Tidings::builder().kind::<Note, _, _, _>(gate.clone(), wait_at_gate)).await;
    let workers = tidings.work().await.unwrap();
    let id = tidings.enqueue(Note::new("a")).await.unwrap().id;
    gate.begun().await;
    tidings.cancel(id, &act("stop")).await.unwrap();
    gate.dropped().await;
    assert_eq!(settled(&tidings, id).await.state.name().as_str(), "cancelled");
    let end = last_end(&tidings, id).await;
    assert_eq!(
        (end.outcome, &*end.reason),
        (AttemptOutcome::Cancelled, "the job was cancelled while it ran")
    );
    assert_eq!(job(&tidings, id).await.counters.attempts, 0, "it was not the job's fault");
    tidings.retry(id, &act("go on")).await.unwrap();
    gate.begun().await;
    gate.open();
    assert_eq!(settled(&tidings, id).await.state.name().as_str(), "completed");
    workers.stop().await;
}

/// A7: the handler's future, and with it its connection, is gone before the next begins.
async fn a_time_limit_ends_the_handler_before_the_next_attempt_begins(db: Database) {
    /// The first attempt hangs with the only place; the second needs it.
    async fn hang_once(only: Arc<Semaphore>, attempt: Attempt<Swift>) -> Outcome {
        let Ok(_place) = only.try_acquire() else { return Outcome::discard("the first one is still here") };
        if attempt.number == 1 {
            std::future::pending::<()>().await;
        }
        Outcome::Accepted
    }
    let backoff = tidings::core::policy::BackoffData::Steps { steps_ms: vec![1] };
    let policy = PolicyData { backoff: Some(backoff), ..PolicyData::default() }.check("soon").unwrap();
    let builder = Tidings::builder().kind(Arc::new(Semaphore::new(1)), hang_once).policy("swift", policy);
    let tidings = db.open(builder).await;
    let workers = tidings.work().await.unwrap();
    let id = tidings.enqueue(Swift::new("a")).await.unwrap().id;
    settled(&tidings, id).await;
    let expected = [(1, Some(AttemptOutcome::Unknown)), (2, Some(AttemptOutcome::Accepted))];
    assert_eq!(outcomes(&tidings, id).await, expected);
    let first = view(&tidings, id).await.attempts.remove(0).end.unwrap();
    assert_eq!(first.evidence.failure_kind, Some(FailureKind::TimeLimit));
    workers.stop().await;
}

async fn a_panic_takes_no_worker_with_it(db: Database) {
    async fn panics(_: (), attempt: Attempt<Note>) -> Outcome {
        assert!(attempt.args.text != "bad", "a bug");
        Outcome::Accepted
    }
    let policy = PolicyData { attempts: Some(1), ..PolicyData::default() }.check("once").unwrap();
    let builder = Tidings::builder().kind((), panics).policy("note", policy).workers("default", 1);
    let tidings = db.open(builder).await;
    let workers = tidings.work().await.unwrap();
    for _ in 0..5 {
        let bad = tidings.enqueue(Note::new("bad")).await.unwrap().id;
        assert_eq!(settled(&tidings, bad).await.state.name().as_str(), "discarded");
    }
    let good = tidings.enqueue(Note::new("good")).await.unwrap().id;
    assert_eq!(settled(&tidings, good).await.state.name().as_str(), "completed");
    workers.stop().await;
}

async fn a_thousand_jobs_of_many_callers_run_once_each(db: Database) {
    let script = Script::accepting();
    let tidings =
        db.open(Tidings::builder().kind::<Note, _, _, _>(script.clone(), play).workers("default", 50)).await;
    let workers = tidings.work().await.unwrap();
    let calls = (0..1_000).map(|n| {
        let tidings = tidings.clone();
        async move { tidings.enqueue(Note::new(&n.to_string())).await.unwrap().id }
    });
    let mut ids = futures_util::future::join_all(calls).await;
    for id in &ids {
        settled(&tidings, *id).await;
    }
    workers.stop().await;
    let mut came = script.jobs();
    came.sort();
    ids.sort();
    assert_eq!(came, ids);
}

async fn a_policy_that_changed_without_its_version_is_refused(db: Database) {
    let named = |attempts: u32, version: u32| {
        let data = PolicyData { attempts: Some(attempts), version: Some(version), ..PolicyData::default() };
        let builder = Tidings::builder().kind::<Note, _, _, _>(Script::accepting(), play);
        builder.policy("note", data.check("mine").unwrap())
    };
    for (attempts, version, accepted) in
        [(3, 1, true), (3, 1, true), (4, 1, false), (4, 2, true), (3, 1, true)]
    {
        let tidings = db.open(named(attempts, version)).await;
        match tidings.work().await {
            Ok(workers) => {
                assert!(accepted);
                workers.stop().await;
            }
            Err(refused) => {
                assert!(
                    !accepted
                        && matches!(&refused, WorkRefused::PolicyChanged { label } if label == "mine@1")
                );
                assert!(refused.to_string().ends_with("raise the policy's `version`"), "{refused}");
            }
        }
    }
}

async fn a_queue_without_workers_is_refused(db: Database) {
    let builder = Tidings::builder().kind::<Note, _, _, _>(Script::accepting(), play).workers("default", 0);
    let refused = db.open(builder).await.work().await.err().map(|refused| refused.to_string());
    let expected = "queue `default` has 0 workers; leave it out, or give it at least 1";
    assert_eq!(refused.as_deref(), Some(expected));
}
