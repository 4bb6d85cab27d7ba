//! Recording and enqueuing in a transaction of sqlx: the same as by the other doors.

use crate::fixture::{
    Index, Place, Seen, all_jobs, declare, drain, event, index_of_notes, keep, note, postgres, relay,
};
use sqlx_core::connection::Connection;
use sqlx_core::query::query;
use sqlx_postgres::{PgConnection, Postgres};
use tidings::core::event::EventId;
use tidings::store::StoreError;
use tidings::{
    Attempt, Declaration, Enqueue, EnqueueRefused, Kind, Millis, Outcome, Record, RecordRefused, Tidings,
};

/// A job with a key of its own.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct Once {
    of: String,
}

impl Kind for Once {
    const DECLARATION: Declaration = Declaration::new("once");

    fn unique_key(&self) -> Option<String> {
        Some(self.of.clone())
    }
}

async fn accept((): (), _: Attempt<Once>) -> Outcome {
    Outcome::Accepted
}

async fn started(place: &Place) -> (Tidings, PgConnection) {
    let tidings = place.tidings(Tidings::builder().kind(Seen::<Index>::default(), keep).kind((), accept));
    declare(&tidings, &[index_of_notes()]).await;
    let mut app = PgConnection::connect(&place.address).await.unwrap();
    query::<Postgres>("CREATE TABLE note (text TEXT)").execute(&mut app).await.unwrap();
    (tidings, app)
}

fn once(of: &str) -> Once {
    Once { of: of.into() }
}

#[tokio::test]
async fn an_event_and_a_job_share_the_end_of_a_transaction_of_sqlx() {
    let place = postgres().await;
    let (tidings, mut app) = started(&place).await;
    let mut tx = app.begin().await.unwrap();
    let gone = tidings.record_in_sqlx(&mut tx, note(1)).await.unwrap();
    tidings.enqueue_in_sqlx(&mut tx, once("a")).await.unwrap();
    tx.rollback().await.unwrap();
    assert!(tidings.event(gone).await.unwrap().is_none());
    assert!(all_jobs::<Once>(&tidings, "once").await.is_empty());

    let mut tx = app.begin().await.unwrap();
    query::<Postgres>("INSERT INTO note VALUES ('a')").execute(&mut *tx).await.unwrap();
    let at = tidings.now() - Millis::from_hours(1);
    let said =
        Record::json("note.changed", r#"{"n": 0.1e1}"#).subject("note/1").tenant("acme").occurred_at(at);
    let id = tidings.record_in_sqlx(&mut tx, said).await.unwrap();
    let job = tidings.enqueue_in_sqlx(&mut tx, once("a")).await.unwrap();
    assert_eq!(tidings.enqueue_in_sqlx(&mut tx, once("a")).await.unwrap(), job, "its own unique key");
    tx.commit().await.unwrap();
    let stored = event(&tidings, id).await;
    assert_eq!(
        (&*stored.event.subject, &*stored.event.tenant, stored.event.occurred_at),
        ("note/1", "acme", at)
    );
    assert_eq!(stored.event.data, r#"{"n": 0.1e1}"#, "byte for byte");
    // The database's clock recorded and enqueued; the clock in the hand has to go by it.
    place.clock.set(stored.recorded_at + Millis(60_000));
    assert_eq!((relay(&tidings).await, drain(&tidings).await), (1, 2));
}

#[tokio::test]
async fn the_same_call_through_sqlx_and_the_library_is_one_and_refusals_are_the_same() {
    let place = postgres().await;
    let (tidings, mut app) = started(&place).await;
    let first = tidings.record(note(1).key("k")).await.unwrap().id;
    let mut tx = app.begin().await.unwrap();
    assert_eq!(tidings.record_in_sqlx(&mut tx, note(1).key("k")).await.unwrap(), first);
    tx.commit().await.unwrap();
    for (bad, says) in [
        (note(2).key("k"), "the key was used for another event"),
        (Record::json("no.such.type", "1"), "`no.such.type` is not declared"),
        (Record::json("note.changed", r#""\ud800""#), "surrogate"),
    ] {
        let mut tx = app.begin().await.unwrap();
        let refused = tidings.record_in_sqlx(&mut tx, bad).await.unwrap_err();
        assert!(refused.to_string().contains(says), "{refused}");
        let reused = matches!(refused, RecordRefused::KeyReused(id) if id == first);
        assert!(reused || matches!(refused, RecordRefused::Store(StoreError::Refused(_))), "{refused:?}");
    }
    let mut tx = app.begin().await.unwrap();
    let call = |of: &str| Enqueue::new(once(of)).idempotency_key("k");
    let job = tidings.enqueue_in_sqlx(&mut tx, call("a")).await.unwrap();
    assert_eq!(tidings.enqueue_in_sqlx(&mut tx, call("a")).await.unwrap(), job);
    let refused = tidings.enqueue_in_sqlx(&mut tx, call("b")).await.unwrap_err();
    assert!(matches!(refused, EnqueueRefused::KeyReused(id) if id == job), "{refused}");
    let nobody: Result<EventId, RecordRefused> = tidings.record_in_sqlx(&mut tx, note(3)).await;
    let aborted = nobody.unwrap_err().to_string();
    assert!(aborted.contains("25P02"), "a transaction that failed takes nothing more: {aborted}");
}
