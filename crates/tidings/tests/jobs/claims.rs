//! Who gets which job when: claims, leases, fences, queues, priorities, due times.

use crate::fixture::*;
use std::sync::Arc;
use tidings::core::job::{Priority, State};
use tidings::store::Told;
use tidings::testing::{drain, perform_stored, sweep, take_one};
use tidings::{Enqueue, Millis, Outcome, Tidings};

on_both_stores![
    a_claim_is_committed_before_the_handler_runs,
    a_job_is_taken_by_one_only,
    a_worker_whose_lease_is_over_changes_nothing_but_its_evidence_is_kept,
    a_claim_number_is_never_used_twice,
    the_most_urgent_and_then_the_oldest_goes_first,
    nothing_runs_before_its_time,
    a_due_job_is_taken_whoever_left_it_behind,
    a_paused_queue_is_left_alone_until_it_is_resumed,
    what_is_due_and_cannot_be_taken_does_not_make_a_worker_spin,
];

/// What stands in the database while the handler runs is the durable "in flight".
async fn a_claim_is_committed_before_the_handler_runs(db: Database) {
    let gate = Gate::default();
    let tidings = db.open(Tidings::builder().kind::<Note, _, _, _>(gate.clone(), wait_at_gate)).await;
    let workers = tidings.work().await.unwrap();
    let id = tidings.enqueue(Note::new("a")).await.unwrap().id;
    gate.begun().await;
    let other = db.open(Tidings::builder().kind::<Note, _, _, _>((), never::<Note>)).await;
    let seen = view(&other, id).await;
    let State::Running { claim, .. } = &seen.job.state else { panic!("{seen:?}") };
    assert_eq!((claim.number, claim.lease_until.since(claim.started_at)), (1, Millis::from_seconds(45)));
    assert_eq!(outcomes(&other, id).await, [(1, None)]);
    gate.open();
    assert_eq!(settled(&tidings, id).await.state.name().as_str(), "completed");
    workers.stop().await;
}

async fn a_job_is_taken_by_one_only(db: Database) {
    let script = Script::accepting();
    let one = db.held(Tidings::builder().kind::<Note, _, _, _>(script.clone(), play)).await;
    let two = db.held_by(&one.clock, Tidings::builder().kind::<Note, _, _, _>(script.clone(), play)).await;
    let jobs = (0..200).map(|n| Note::new(&n.to_string()));
    let ids: Vec<_> = one.enqueue_all(jobs).await.unwrap().iter().map(|receipt| receipt.id).collect();
    let (first, second) = futures_util::future::join(drain(&one), drain(&two)).await;
    assert_eq!(first.unwrap() + second.unwrap(), 200);
    let mut came = script.jobs();
    came.sort();
    assert_eq!(came, ids, "each once");
}

/// DU10, CW13: a worker that was stopped for three leases and then goes on.
async fn a_worker_whose_lease_is_over_changes_nothing_but_its_evidence_is_kept(db: Database) {
    let script = Script::new([Outcome::retryable("503"), Outcome::Accepted]);
    let tidings = db.held(Tidings::builder().kind::<Note, _, _, _>(script, play)).await;
    let id = tidings.enqueue(Note::new("a")).await.unwrap().id;
    let stale = take_one(&tidings).await.unwrap().expect("a due job");
    tidings.clock.advance(Millis::from_seconds(3 * 45));
    assert_eq!(sweep(&tidings).await.unwrap(), 1);
    tidings.clock.advance(Millis::from_minutes(1));
    let current = take_one(&tidings).await.unwrap().expect("due again");
    let before = job(&tidings, id).await;

    let told = perform_stored(&tidings, stale).await.unwrap();
    assert!(matches!(&told, Told::Done(job) if job.counters == before.counters), "{told:?}");
    let after = job(&tidings, id).await;
    assert_eq!(
        (&after.state, after.counters),
        (&before.state, before.counters),
        "the second attempt goes on"
    );
    let kept = &view(&tidings, id).await.events;
    assert!(
        matches!(&kept[..], [event] if matches!(&event.what,
        tidings::inspect::Event::ReportedLate(late) if late.attempt == 1 && late.reason == "503" && !late.settles)),
        "{kept:?}"
    );

    perform_stored(&tidings, current).await.unwrap();
    assert_eq!(state(&tidings, id).await, "completed");
}

async fn a_claim_number_is_never_used_twice(db: Database) {
    let script = Script::new([Outcome::retryable("503"), Outcome::discard("410"), Outcome::Accepted]);
    let tidings = db.held(Tidings::builder().kind::<Note, _, _, _>(script.clone(), play)).await;
    let id = tidings.enqueue(Note::new("a")).await.unwrap().id;
    tidings.drain().await;
    tidings.drain_when_due(id).await;
    tidings.retry(id, &act("again")).await.unwrap();
    tidings.drain().await;
    assert_eq!(script.attempts(), [1, 2, 3], "also after a person brought it back");
    assert_eq!(state(&tidings, id).await, "completed");
}

async fn the_most_urgent_and_then_the_oldest_goes_first(db: Database) {
    let script = Script::accepting();
    let tidings = db.held(Tidings::builder().kind::<Note, _, _, _>(script.clone(), play)).await;
    let mut ids = Vec::new();
    for priority in [4, 2, 1, 2, 4, 3] {
        let priority = Priority::try_from(priority).unwrap();
        let job = Enqueue::new(Note::new("a")).priority(priority);
        ids.push(tidings.enqueue(job).await.unwrap().id);
        tidings.clock.advance(Millis(1));
    }
    tidings.drain().await;
    assert_eq!(script.jobs(), [2, 1, 3, 5, 0, 4].map(|place| ids[place]));
}

async fn nothing_runs_before_its_time(db: Database) {
    let script = Script::accepting();
    let tidings = db.held(Tidings::builder().kind::<Note, _, _, _>(script.clone(), play)).await;
    let later = Enqueue::new(Note::new("later")).run_at(NOW + Millis(1));
    let past = Enqueue::new(Note::new("past")).run_at(NOW - Millis::from_days(1));
    let later = tidings.enqueue(later).await.unwrap().id;
    let past = tidings.enqueue(past).await.unwrap().id;
    tidings.drain().await;
    assert_eq!(script.jobs(), [past], "a time that has passed means now");
    tidings.clock.advance(Millis(1));
    tidings.drain().await;
    assert_eq!(script.jobs(), [past, later]);
}

/// RT13: one worker, then three, then another one; what is due is always found.
async fn a_due_job_is_taken_whoever_left_it_behind(db: Database) {
    let script = Script::new([Outcome::retryable("503")]);
    let builder = || Tidings::builder().kind::<Note, _, _, _>(script.clone(), play);
    let first = db.held(builder()).await;
    let id = first.enqueue(Note::new("a")).await.unwrap().id;
    first.drain().await;
    for _round in 0..2 {
        for _worker in 0..3 {
            db.held_by(&first.clock, builder()).await.drain_when_due(id).await;
        }
    }
    let second = db.held_by(&first.clock, builder()).await;
    while job(&second, id).await.state.due_at().is_some() {
        second.drain_when_due(id).await;
    }
    assert_eq!(script.attempts(), (1..=10).collect::<Vec<_>>());
    assert_eq!(state(&second, id).await, "discarded");
}

async fn a_paused_queue_is_left_alone_until_it_is_resumed(db: Database) {
    let script = Script::accepting();
    let builder = || {
        let builder = Tidings::builder().kind::<Note, _, _, _>(script.clone(), play);
        builder.kind::<Letter, _, _, _>(script.clone(), play)
    };
    let tidings = db.held(builder()).await;
    let note = tidings.enqueue(Note::new("a")).await.unwrap().id;
    let letter = tidings.enqueue(Letter::new("a")).await.unwrap().id;
    tidings.pause("mail", &act("the server moves")).await.unwrap();
    // Also by a process that comes later.
    let other = db.held_by(&tidings.clock, builder()).await;
    other.drain().await;
    assert_eq!(script.jobs(), [note], "the other queue goes on");
    let paused = other.paused().await.unwrap();
    assert_eq!(
        (paused.len(), &*paused[0].queue, paused[0].paused_at, &*paused[0].act.reason),
        (1, "mail", NOW, "the server moves")
    );
    other.resume("mail").await.unwrap();
    tidings.drain().await;
    assert_eq!(script.jobs(), [note, letter]);
    assert_eq!(state(&tidings, letter).await, "completed");
    let refused = tidings.pause("post", &act("")).await.unwrap_err().to_string();
    assert_eq!(refused, "there is no queue `post`; known queues are: default, mail");
}

/// A job of a paused queue stays due. A worker that took "due" for "look at once"
/// would ask the database a thousand times a second.
async fn what_is_due_and_cannot_be_taken_does_not_make_a_worker_spin(db: Database) {
    let tidings = db.held(Tidings::builder().kind::<Note, _, _, _>((), never::<Note>)).await;
    tidings.enqueue(Note::new("due")).await.unwrap();
    tidings.enqueue(Enqueue::new(Note::new("later")).run_at(NOW + Millis(5))).await.unwrap();
    tidings.pause("default", &act("")).await.unwrap();
    let take = tidings::store::Take {
        now: tidings.now(),
        queue: "default".into(),
        limit: 10,
        worker: tidings::random::worker_id(),
        terms: Arc::new(tidings.registry().terms()),
    };
    let taken = tidings.store().take_due(&take).await.unwrap();
    assert!(taken.started.is_empty());
    assert_eq!(taken.next_due, Some(NOW + Millis(5)), "the one that is due already is left to the poll");
}

async fn never<K>(_state: (), _attempt: tidings::Attempt<K>) -> Outcome {
    unreachable!("nobody works here")
}
