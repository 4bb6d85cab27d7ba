//! Callers that stand and wait for a fan-out, and wake-ups between processes.

use super::open;
use crate::fixture::{
    Index, NEVER, Place, Seen, declare, fanned_out, index_of_notes, keep, note, record, relay, soon,
};
use futures_util::FutureExt;
use std::time::Duration;
use tidings::core::event::EventId;
use tidings::{Builder, EventReceipt, FannedOut, RecordRefused, Settings, Tidings, WAITERS_MAX};

fn builder() -> Builder {
    Tidings::builder().kind(Seen::<Index>::default(), keep)
}

async fn started(place: &Place) -> Tidings {
    let tidings = place.tidings(builder());
    declare(&tidings, &[index_of_notes()]).await;
    tidings
}

/// B7: told, not polled; the poll of a waiter is a second, and all of it is sooner.
#[tokio::test]
async fn a_waiter_gets_the_jobs_when_the_event_is_fanned_out() {
    let place = open().await;
    let tidings = started(&place).await;
    for n in 0..10 {
        let id = record(&tidings, note(n)).await;
        let wait = tidings.await_fanout(id, Duration::MAX);
        let (waited, _) = futures_util::future::join(soon("the waiter is told", wait), relay(&tidings)).await;
        let FannedOut::Jobs(jobs) = waited.unwrap() else { panic!("no jobs") };
        assert!(tidings.job(jobs[0]).await.unwrap().is_some());
        assert_eq!(fanned_out(&tidings, id).await, jobs, "also for who comes later");
    }
}

#[tokio::test]
async fn a_wait_that_takes_too_long_gives_the_events_receipt() {
    let place = open().await;
    let tidings = started(&place).await;
    let id = record(&tidings, note(1)).await;
    let waited = tidings.await_fanout(id, Duration::from_millis(10)).await.unwrap();
    assert_eq!(waited, FannedOut::Receipt(EventReceipt { id, existing: true }));
}

#[tokio::test]
async fn nobody_waits_for_an_event_that_is_not_there() {
    let place = open().await;
    let tidings = started(&place).await;
    let nobody = EventId(tidings::random::job_id(tidings.now()).0);
    let refused = tidings.await_fanout(nobody, Duration::MAX).await.unwrap_err();
    assert!(matches!(refused, RecordRefused::NoSuchEvent(id) if id == nobody), "{refused}");
}

#[tokio::test]
async fn sixty_four_wait_and_the_next_gets_its_receipt_at_once() {
    let place = open().await;
    let tidings = started(&place).await;
    let id = record(&tidings, note(1)).await;
    let wait = || tidings.await_fanout(id, Duration::MAX);
    let mut waiting = futures_util::future::join_all((0..WAITERS_MAX).map(|_| wait()));
    assert!((&mut waiting).now_or_never().is_none(), "each has its place from its first step on");
    let (next, waiting) = match futures_util::future::select(Box::pin(wait()), waiting).await {
        futures_util::future::Either::Left(first) => first,
        futures_util::future::Either::Right(_) => panic!("nothing is fanned out yet"),
    };
    assert!(matches!(next.unwrap(), FannedOut::Receipt(_)));
    let (_, told) = futures_util::future::join(relay(&tidings), soon("64 waiters are told", waiting)).await;
    assert!(told.into_iter().all(|waited| matches!(waited, Ok(FannedOut::Jobs(jobs)) if jobs.len() == 1)));
    assert!(matches!(wait().await.unwrap(), FannedOut::Jobs(_)), "the places are free again");
}

/// One process records and waits, another one fans out and carries out.
async fn across_processes(place: &Place, poll: Duration) {
    let settings = || Settings { poll, ..Settings::default() };
    let app = place.process(builder().settings(settings())).await;
    let server = place.process(builder().settings(settings())).await;
    declare(&app, &[index_of_notes()]).await;
    let workers = server.work().await.unwrap();
    for n in 0..5 {
        let id = record(&app, note(n)).await;
        let jobs = fanned_out(&app, id).await;
        let waited = app.wait(jobs[0], NEVER).await.unwrap();
        assert!(matches!(waited, tidings::Waited::Settled(_)), "{waited:?}");
    }
    workers.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_poll_alone_suffices_for_a_relay_in_another_process() {
    let place = open().await;
    across_processes(&place, Duration::from_millis(50)).await;
}

/// On Postgres another process is told by a notification: a poll of an hour would come too late.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_in_another_process_is_told_where_the_database_can_tell() {
    let place = open().await;
    if place.store.listen().is_some() {
        across_processes(&place, Duration::from_secs(3_600)).await;
    }
}
