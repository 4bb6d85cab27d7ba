//! Callers that stand and wait for a job, and get a receipt when it takes too long.

use crate::fixture::*;
use futures_util::FutureExt;
use std::time::Duration;
use tidings::{ActRefused, Enqueue, Millis, Outcome, Receipt, Tidings, WAITERS_MAX, Waited};

on_both_stores![
    a_waiter_gets_the_end_state_when_the_job_settles,
    a_wait_that_takes_too_long_gives_the_receipt,
    sixty_four_wait_and_the_next_gets_its_receipt_at_once,
    a_waiter_whose_caller_leaves_gives_its_place_back,
    nobody_waits_for_a_job_that_is_not_there,
];

/// Woken, not polled: the poll of a waiter is a second, and all of it is sooner.
async fn a_waiter_gets_the_end_state_when_the_job_settles(db: Database) {
    let script = Script::new([Outcome::Accepted, Outcome::discard("410"), Outcome::unknown("?")]);
    let builder = || Tidings::builder().kind::<Letter, _, _, _>(script.clone(), play);
    let tidings = db.held(builder()).await;
    for expected in ["completed", "discarded", "unknown"] {
        let id = tidings.enqueue(Letter::new("a")).await.unwrap().id;
        let (waited, _) = futures_util::future::join(settled(&tidings, id), tidings.drain()).await;
        assert_eq!(waited.state.name().as_str(), expected, "held is settled, too");
        assert_eq!(settled(&tidings, id).await, waited, "also for who comes later");
    }
}

async fn a_wait_that_takes_too_long_gives_the_receipt(db: Database) {
    let tidings = db.held(Tidings::builder().kind::<Note, _, _, _>(Script::accepting(), play)).await;
    let later = Enqueue::new(Note::new("a")).run_at(NOW + Millis(1));
    let id = tidings.enqueue(later).await.unwrap().id;
    let waited = tidings.wait(id, Duration::from_millis(10)).await.unwrap();
    let Waited::Receipt(receipt) = waited else { panic!("{waited:?}") };
    assert_eq!(receipt, Receipt { id, existing: true });
    assert_eq!(state(&tidings, receipt.id).await, "pending", "its state can be read");
}

async fn sixty_four_wait_and_the_next_gets_its_receipt_at_once(db: Database) {
    let tidings = db.held(Tidings::builder().kind::<Note, _, _, _>(Script::accepting(), play)).await;
    let id = tidings.enqueue(Note::new("a")).await.unwrap().id;
    // A wait beyond what a clock can say is one without end.
    let wait = || tidings.wait(id, Duration::MAX);
    let mut waiting = futures_util::future::join_all((0..WAITERS_MAX).map(|_| wait()));
    assert!((&mut waiting).now_or_never().is_none(), "each has its place from its first step on");
    let (next, waiting) = match futures_util::future::select(Box::pin(wait()), waiting).await {
        futures_util::future::Either::Left(first) => first,
        futures_util::future::Either::Right(_) => panic!("nothing has settled yet"),
    };
    assert!(matches!(next.unwrap(), Waited::Receipt(_)));
    let (_, settled) =
        futures_util::future::join(tidings.drain(), soon("64 waiters are woken", waiting)).await;
    for waited in settled {
        assert!(matches!(waited.unwrap(), Waited::Settled(job) if job.id == id));
    }
    let after = tidings.wait(id, Duration::MAX).await.unwrap();
    assert!(matches!(after, Waited::Settled(_)), "the places are free again");
}

async fn a_waiter_whose_caller_leaves_gives_its_place_back(db: Database) {
    let tidings = db.held(Tidings::builder().kind::<Note, _, _, _>(Script::accepting(), play)).await;
    let id = tidings.enqueue(Note::new("a")).await.unwrap().id;
    for _ in 0..WAITERS_MAX + 1 {
        let mut wait = Box::pin(tidings.wait(id, Duration::MAX));
        assert!((&mut wait).now_or_never().is_none());
    }
    let mut wait = Box::pin(tidings.wait(id, Duration::MAX));
    assert!((&mut wait).now_or_never().is_none(), "it waits, and got no receipt");
    tidings.drain().await;
    assert!(matches!(soon("the waiter is woken", wait).await.unwrap(), Waited::Settled(_)));
}

async fn nobody_waits_for_a_job_that_is_not_there(db: Database) {
    let tidings = db.held(Tidings::builder().kind::<Note, _, _, _>(Script::accepting(), play)).await;
    let nobody = tidings::random::job_id(NOW);
    let refused = tidings.wait(nobody, Duration::MAX).await.unwrap_err();
    assert!(matches!(refused, ActRefused::NoSuchJob(id) if id == nobody));
}
