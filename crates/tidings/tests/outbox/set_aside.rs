//! Events that cannot be fanned out: they wait with a reason, then they are set aside,
//! and nobody else is stopped by them.

use super::open;
use crate::fixture::{
    Index, Place, Seen, all_jobs, declare, drain, event, index_of_notes, jobs, keep, note, record, relay,
    waiting,
};
use tidings::core::relay::RelayState;
use tidings::core::route::{Subscription, Test};
use tidings::store::outbox::EventFilter;
use tidings::{Millis, Record, RecordRefused, Tidings, testing};

fn of_unknown_kind() -> Subscription {
    Subscription::to_job("broken", "other.*", "not.yet").unwrap()
}

async fn started(place: &Place) -> Tidings {
    let tidings = place.tidings(Tidings::builder().kind(Seen::<Index>::default(), keep));
    declare(&tidings, &[index_of_notes(), of_unknown_kind()]).await;
    tidings
}

fn bad() -> Record {
    Record::json("other.thing", "{}")
}

/// B4.
#[tokio::test]
async fn an_unknown_kind_is_waited_for_longer_each_time_and_the_event_is_set_aside_after_ten_failures() {
    let place = open().await;
    let tidings = started(&place).await;
    let id = record(&tidings, bad()).await;
    let mut waits = Vec::new();
    for failures in 1..=9 {
        assert_eq!(relay(&tidings).await, 0);
        let (due_at, failed, reason) = waiting(&tidings, id).await.unwrap();
        assert_eq!(failed, failures);
        let reason = reason.unwrap();
        assert!(
            reason.contains("`broken` makes jobs of kind `not.yet`, which no program carries out"),
            "{reason}"
        );
        waits.push(due_at.since(tidings.now()));
        place.clock.set(due_at - Millis(1));
        relay(&tidings).await;
        assert_eq!(waiting(&tidings, id).await.unwrap().1, failures, "not before it is due");
        assert!(tidings.incidents(true, 10).await.unwrap().is_empty(), "nothing to bother a person with yet");
        place.clock.set(due_at);
    }
    for (wait, expected_s) in waits.iter().zip([2, 4, 8, 16, 32, 60, 60, 60, 60]) {
        let expected = expected_s * 1_000;
        assert!((expected * 9 / 10..=expected * 11 / 10).contains(&wait.0), "{waits:?}");
    }
    relay(&tidings).await;
    let state = event(&tidings, id).await.state;
    assert!(matches!(&state, RelayState::Poisoned { reason, .. } if reason.contains("not.yet")), "{state:?}");
    let open = tidings.incidents(false, 10).await.unwrap();
    let [incident] = &open[..] else { panic!("{open:?}") };
    assert_eq!((&*incident.source, &incident.subject, incident.times), ("event", &id.to_string(), 1));
    place.clock.advance(Millis::from_days(1));
    assert_eq!(relay(&tidings).await, 0, "nobody looks at it any more");
    assert_eq!(tidings.backlog().await.unwrap().poisoned, 1);
}

async fn set_aside(place: &Place, tidings: &Tidings) -> tidings::core::event::EventId {
    let id = record(tidings, bad()).await;
    while let Some((due_at, ..)) = waiting(tidings, id).await {
        place.clock.set(due_at);
        relay(tidings).await;
    }
    id
}

#[tokio::test]
async fn an_event_that_is_put_back_is_fanned_out_when_its_cause_is_mended_and_its_incident_closes() {
    let place = open().await;
    let tidings = started(&place).await;
    let id = set_aside(&place, &tidings).await;
    tidings.requeue(id).await.unwrap();
    assert_eq!(waiting(&tidings, id).await, Some((tidings.now(), 0, None)), "with all its tries");
    assert!(tidings.incidents(false, 10).await.unwrap().is_empty());
    let mended = Subscription::to_job("broken", "other.*", "search.index").unwrap();
    tidings.declare(&[], &[mended]).await.unwrap();
    assert_eq!(relay(&tidings).await, 1);
    assert_eq!(jobs(&tidings, id).await.len(), 1);
    assert_eq!(drain(&tidings).await, 1);
    let closed = tidings.incidents(true, 10).await.unwrap();
    assert!(closed.len() == 1 && closed[0].closed_at.is_some(), "{closed:?}");
}

#[tokio::test]
async fn only_what_is_set_aside_can_be_put_back() {
    let place = open().await;
    let tidings = started(&place).await;
    let waits = record(&tidings, note(1)).await;
    let refused = tidings.requeue(waits).await.unwrap_err();
    assert!(matches!(refused, RecordRefused::NotPoisoned(id) if id == waits), "{refused}");
    relay(&tidings).await;
    let refused = tidings.requeue(waits).await.unwrap_err();
    assert!(refused.to_string().contains("there is nothing to put back"), "{refused}");
    let nobody = tidings::core::event::EventId(tidings::random::job_id(tidings.now()).0);
    assert!(matches!(tidings.requeue(nobody).await, Err(RecordRefused::NoSuchEvent(id)) if id == nobody));
    let poisoned = set_aside(&place, &tidings).await;
    let (one, two) = futures_util::future::join(tidings.requeue(poisoned), tidings.requeue(poisoned)).await;
    assert_eq!(usize::from(one.is_ok()) + usize::from(two.is_ok()), 1, "once: {one:?}, {two:?}");
}

/// B4: 199 of 200 go on, whatever the one is.
#[tokio::test]
async fn one_bad_event_in_a_batch_of_two_hundred_keeps_no_other() {
    let place = open().await;
    let tidings = started(&place).await;
    let batch = |bad_at: usize| (0..1_000).map(move |n| if n == bad_at { bad() } else { note(n) }).collect();
    let ids: Vec<_> = tidings.record_all(batch(77)).await.unwrap().iter().map(|receipt| receipt.id).collect();
    assert_eq!(relay(&tidings).await, 999, "all that is due, in one go");
    assert_eq!(waiting(&tidings, ids[77]).await.map(|(_, failures, _)| failures), Some(1));
    let filter = EventFilter { state: "waiting".into(), limit: 10, ..EventFilter::default() };
    assert_eq!(tidings.events(&filter).await.unwrap().len(), 1);
    assert_eq!(all_jobs::<Index>(&tidings, "search.index").await.len(), 999);
}

/// A whole batch that fails is in nobody's way either.
#[tokio::test]
async fn two_hundred_bad_events_keep_none_of_those_behind_them() {
    let place = open().await;
    let tidings = started(&place).await;
    let batch = (0..400).map(|n| if n < 200 { bad() } else { note(n) }).collect();
    tidings.record_all(batch).await.unwrap();
    assert_eq!(relay(&tidings).await, 200);
    assert_eq!(tidings.backlog().await.unwrap().waiting, 200);
}

/// What a filter keeps out cannot fail.
#[tokio::test]
async fn a_subscription_fails_only_the_events_that_it_would_get() {
    let place = open().await;
    let tidings = started(&place).await;
    let paid = of_unknown_kind().only("status", Test::Equals("paid".into()));
    tidings.declare(&[], &[paid]).await.unwrap();
    record(&tidings, Record::json("other.thing", r#"{"status":"open"}"#)).await;
    assert_eq!(relay(&tidings).await, 1);
}

/// UP1: the program that carries the kind out starts, and what waited for it goes.
#[tokio::test]
async fn an_event_that_waits_for_a_kind_goes_when_a_program_that_has_it_starts() {
    let place = open().await;
    let without = place.tidings(Tidings::builder());
    declare(&without, &[index_of_notes()]).await;
    let id = record(&without, note(1)).await;
    relay(&without).await;
    let (due_at, ..) = waiting(&without, id).await.expect("it waits");
    let with = place.tidings(Tidings::builder().kind(Seen::<Index>::default(), keep));
    with.work().await.unwrap().stop().await;
    place.clock.set(due_at);
    assert_eq!(relay(&without).await, 1, "also by a program that only knows of it");
    assert_eq!(drain(&with).await, 1);
}

/// UP2: through the relay.
#[tokio::test]
async fn a_row_that_does_not_read_as_an_event_is_set_aside_with_an_incident_and_stops_nobody() {
    let place = open().await;
    let tidings = started(&place).await;
    let damaged = record(&tidings, note(1)).await;
    record(&tidings, note(2)).await;
    damage(&place).await;
    record(&tidings, note(3)).await;
    assert_eq!(relay(&tidings).await, 1, "the one that was recorded after it");
    let open = tidings.incidents(false, 10).await.unwrap();
    assert_eq!(open.len(), 2);
    assert!(open.iter().any(|incident| incident.subject == damaged.to_string()), "{open:?}");
    tidings.requeue(damaged).await.unwrap();
    assert_eq!(relay(&tidings).await, 1);
    testing::drain(&tidings).await.unwrap();
}

/// Makes every row that waits unreadable, in a way that no constraint sees.
async fn damage(place: &Place) {
    if let Some(path) = place.address.strip_prefix("sqlite:") {
        let db = rusqlite::Connection::open(path).unwrap();
        db.execute("UPDATE tidings_event SET failures = -1 WHERE state = 'waiting'", []).unwrap();
        return;
    }
    let (client, connection) = tokio_postgres::connect(&place.address, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.execute("UPDATE tidings.event SET failures = -1 WHERE state = 'waiting'", &[]).await.unwrap();
}
