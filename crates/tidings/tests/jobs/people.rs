//! What people do to jobs: cancel, retry, resolve; and what their deeds leave behind.

use crate::fixture::*;
use tidings::core::decide::Refusal;
use tidings::core::outcome::AttemptOutcome;
use tidings::inspect::Event;
use tidings::testing::{perform_stored, take_one};
use tidings::{Act, ActRefused, Enqueue, Millis, Outcome, Resolution, Tidings};

on_both_stores![
    a_waiting_job_that_is_cancelled_never_runs,
    a_running_job_that_is_cancelled_is_not_tried_again,
    cancel_and_finish_leave_one_end_in_either_order,
    a_discarded_or_cancelled_job_comes_back_with_all_its_attempts,
    every_retry_by_hand_is_an_attempt_of_its_own,
    a_retry_by_hand_while_one_is_scheduled_is_the_scheduled_one_sooner,
    two_clicks_are_one_retry,
    an_unknown_outcome_is_resolved_three_ways,
    every_deed_names_its_actor_and_reason,
    what_cannot_be_done_is_refused_with_the_reason,
];

async fn a_waiting_job_that_is_cancelled_never_runs(db: Database) {
    let script = Script::new([Outcome::retryable("503")]);
    let tidings = db.held(Tidings::builder().kind::<Note, _, _, _>(script.clone(), play)).await;
    let fresh = tidings.enqueue(Enqueue::new(Note::new("a")).run_at(NOW + Millis(1))).await.unwrap().id;
    let failed = tidings.enqueue(Note::new("b")).await.unwrap().id;
    tidings.drain().await;
    for id in [fresh, failed] {
        tidings.cancel(id, &act("not needed")).await.unwrap();
        tidings.cancel(id, &act("again")).await.unwrap();
        assert_eq!((state(&tidings, id).await, view(&tidings, id).await.events.len()), ("cancelled", 1));
    }
    tidings.clock.advance(Millis::from_days(1));
    assert_eq!((tidings.drain().await, script.jobs()), (0, vec![failed]));
}

async fn a_running_job_that_is_cancelled_is_not_tried_again(db: Database) {
    let script = Script::new([Outcome::retryable("503")]);
    let tidings = db.held(Tidings::builder().kind::<Note, _, _, _>(script, play)).await;
    let id = tidings.enqueue(Note::new("a")).await.unwrap().id;
    let running = take_one(&tidings).await.unwrap().expect("a due job");
    let asked = tidings.cancel(id, &act("stop")).await.unwrap();
    assert_eq!(asked.state.name().as_str(), "running", "it is asked to stop");
    perform_stored(&tidings, running).await.unwrap();
    assert_eq!(state(&tidings, id).await, "cancelled");
    assert_eq!(outcomes(&tidings, id).await, [(1, Some(AttemptOutcome::RetryableFailure))], "as it was");
}

/// CW11: one end state whoever comes first, and the loser is in the history.
async fn cancel_and_finish_leave_one_end_in_either_order(db: Database) {
    let tidings = db.held(Tidings::builder().kind::<Note, _, _, _>(Script::accepting(), play)).await;
    for round in 0..20 {
        let id = tidings.enqueue(Note::new("a")).await.unwrap().id;
        let running = take_one(&tidings).await.unwrap().expect("a due job");
        let deed = act("");
        let cancel = tidings.cancel(id, &deed);
        let finish = perform_stored(&tidings, running);
        let (cancelled, finished) = if round % 2 == 0 {
            futures_util::future::join(cancel, finish).await
        } else {
            let (finished, cancelled) = futures_util::future::join(finish, cancel).await;
            (cancelled, finished)
        };
        finished.unwrap();
        assert_eq!(state(&tidings, id).await, "completed", "it was accepted, whoever came first");
        match cancelled {
            Ok(_) => assert_eq!(view(&tidings, id).await.events.len(), 1),
            Err(refused) => assert!(matches!(refused, ActRefused::Refused(Refusal::Finished)), "{refused}"),
        }
    }
}

async fn a_discarded_or_cancelled_job_comes_back_with_all_its_attempts(db: Database) {
    let failures = std::iter::repeat_n(Outcome::retryable("503"), 19);
    let script = Script::new([Outcome::discard("410")].into_iter().chain(failures));
    let tidings = db.held(Tidings::builder().kind::<Note, _, _, _>(script.clone(), play)).await;
    let id = tidings.enqueue(Note::new("a")).await.unwrap().id;
    tidings.drain().await;
    assert_eq!(state(&tidings, id).await, "discarded");
    tidings.retry(id, &act("the address is right now")).await.unwrap();
    tidings.cancel(id, &act("wait")).await.unwrap();
    tidings.retry(id, &act("now")).await.unwrap();
    while job(&tidings, id).await.state.due_at().is_some() {
        tidings.drain_when_due(id).await;
    }
    assert_eq!(script.attempts(), (1..=11).collect::<Vec<_>>(), "ten more attempts, counted on");
    assert_eq!(view(&tidings, id).await.attempts.len(), 11);
}

/// UI1.
async fn every_retry_by_hand_is_an_attempt_of_its_own(db: Database) {
    let script = Script::new([Outcome::discard("410")]);
    let tidings = db.held(Tidings::builder().kind::<Note, _, _, _>(script.clone(), play)).await;
    let id = tidings.enqueue(Note::new("a")).await.unwrap().id;
    tidings.drain().await;
    for minutes in 1..=2 {
        tidings.clock.advance(Millis::from_minutes(minutes));
        tidings.retry(id, &act("again")).await.unwrap();
        assert_eq!(tidings.drain().await, 1);
    }
    assert_eq!(script.attempts(), [1, 2, 3]);
}

/// UI2.
async fn a_retry_by_hand_while_one_is_scheduled_is_the_scheduled_one_sooner(db: Database) {
    let script = Script::new([Outcome::retryable("503"), Outcome::retryable("503"), Outcome::Accepted]);
    let tidings = db.held(Tidings::builder().kind::<Hook, _, _, _>(script.clone(), play)).await;
    let id = tidings.enqueue(Hook::new("a")).await.unwrap().id;
    tidings.drain().await;
    tidings.drain_when_due(id).await;
    assert!(job(&tidings, id).await.state.due_at().unwrap() > tidings.now() + Millis::from_minutes(4));
    tidings.retry(id, &act("they are up again")).await.unwrap();
    assert_eq!(tidings.drain().await, 1);
    tidings.clock.advance(Millis::from_days(6));
    assert_eq!(tidings.drain().await, 0, "the scheduled one was this one");
    assert_eq!((script.attempts(), job(&tidings, id).await.counters.attempts), (vec![1, 2, 3], 3));
}

/// UI13.
async fn two_clicks_are_one_retry(db: Database) {
    let script = Script::new([Outcome::discard("410"), Outcome::Accepted]);
    let one = db.held(Tidings::builder().kind::<Note, _, _, _>(script.clone(), play)).await;
    let two = db.held_by(&one.clock, Tidings::builder().kind::<Note, _, _, _>(script.clone(), play)).await;
    let id = one.enqueue(Note::new("a")).await.unwrap().id;
    one.drain().await;
    let deed = act("again");
    let (first, second) = futures_util::future::join(one.retry(id, &deed), two.retry(id, &deed)).await;
    assert_eq!(first.unwrap().state, second.unwrap().state, "both get the same answer");
    assert_eq!(one.drain().await + two.drain().await, 1);
    assert_eq!((script.attempts(), view(&one, id).await.events.len()), (vec![1, 2], 1));
}

async fn an_unknown_outcome_is_resolved_three_ways(db: Database) {
    let script = Script::new([Outcome::unknown("no answer")]);
    let tidings = db.held(Tidings::builder().kind::<Letter, _, _, _>(script.clone(), play)).await;
    for (resolution, expected, attempts) in [
        (Resolution::Accepted, "completed", 1),
        (Resolution::GiveUp, "discarded", 1),
        (Resolution::Retry, "unknown", 2),
    ] {
        let id = tidings.enqueue(Letter::new("a")).await.unwrap().id;
        tidings.drain().await;
        assert_eq!((state(&tidings, id).await, job(&tidings, id).await.state.due_at()), ("unknown", None));
        tidings.resolve(id, resolution, &act("they told us")).await.unwrap();
        tidings.drain().await;
        assert_eq!(
            (state(&tidings, id).await, view(&tidings, id).await.attempts.len()),
            (expected, attempts)
        );
        let events = view(&tidings, id).await.events;
        assert!(
            matches!(&events[0].what, Event::Resolved(done, who) if *done == resolution && who.actor == "ann")
        );
    }
}

async fn every_deed_names_its_actor_and_reason(db: Database) {
    let tidings = db.held(Tidings::builder().kind::<Note, _, _, _>(Script::accepting(), play)).await;
    let id = tidings.enqueue(Note::new("a")).await.unwrap().id;
    let deed = Act { actor: format!("eve\u{1b}[31m{}", "x".repeat(500)), reason: "a\nb".repeat(1_000) };
    tidings.cancel(id, &deed).await.unwrap();
    tidings.clock.advance(Millis(5));
    tidings.retry(id, &act("no, go on")).await.unwrap();
    let events = view(&tidings, id).await.events;
    let Event::Cancelled(kept) = &events[0].what else { panic!("{events:?}") };
    assert!(kept.actor.starts_with("eve\u{fffd}[31mxxx") && kept.actor.len() <= 128, "{kept:?}");
    assert!(kept.reason.starts_with("a ba b") && kept.reason.len() <= 1_024, "{kept:?}");
    assert_eq!((events[0].at, events[1].at), (NOW, NOW + Millis(5)));
    assert!(matches!(&events[1].what, Event::Revived(who) if *who == act("no, go on")));
}

async fn what_cannot_be_done_is_refused_with_the_reason(db: Database) {
    let tidings = db.held(Tidings::builder().kind::<Note, _, _, _>(Script::accepting(), play)).await;
    let done = tidings.enqueue(Note::new("a")).await.unwrap().id;
    tidings.drain().await;
    let running = tidings.enqueue(Note::new("b")).await.unwrap().id;
    take_one(&tidings).await.unwrap().expect("a due job");
    let nobody = tidings::random::job_id(NOW);
    let deed = act("");
    let said = [
        tidings.retry(done, &deed).await.unwrap_err().to_string(),
        tidings.cancel(done, &deed).await.unwrap_err().to_string(),
        tidings.resolve(done, Resolution::Retry, &deed).await.unwrap_err().to_string(),
        tidings.retry(running, &deed).await.unwrap_err().to_string(),
        tidings.retry(nobody, &deed).await.unwrap_err().to_string(),
    ];
    let expected = [
        "the job was accepted; it never runs again. Enqueue a new one".to_owned(),
        "the job has already finished".to_owned(),
        "the job's last outcome is not unknown, so there is nothing to resolve".to_owned(),
        "an attempt is in flight; wait for it to end, or cancel the job".to_owned(),
        format!("there is no job {nobody}; finished jobs are kept for a time only"),
    ];
    assert_eq!(said, expected);
}
