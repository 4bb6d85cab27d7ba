//! Recording in the application's own transaction on the SQLite file.

use crate::fixture::{
    Index, Place, Seen, declare, drain, index_of_notes, internal, keep, note, relay, sqlite,
};
use tidings::store::outbox::EventFilter;
use tidings::testing::{assert_enqueued, refute_enqueued, throw_away};
use tidings::{Record, RecordRefused, Tidings};

async fn started(place: &Place) -> (Tidings, rusqlite::Connection) {
    let tidings = place.tidings(Tidings::builder().kind(Seen::<Index>::default(), keep));
    declare(&tidings, &[index_of_notes()]).await;
    let app = rusqlite::Connection::open(place.address.strip_prefix("sqlite:").unwrap()).unwrap();
    app.execute_batch("CREATE TABLE note (text TEXT UNIQUE)").unwrap();
    (tidings, app)
}

fn notes(app: &rusqlite::Connection) -> i64 {
    app.query_row("SELECT count(*) FROM note", [], |row| row.get(0)).unwrap()
}

async fn events(tidings: &Tidings) -> usize {
    tidings.events(&EventFilter { limit: 100, ..EventFilter::default() }).await.unwrap().len()
}

fn job() -> Index {
    Index { id: String::new(), subject: "note/1".into(), data: serde_json::Value::Null }
}

/// LO4, LO5.
#[tokio::test]
async fn change_event_and_job_commit_together_or_vanish_together() {
    let place = sqlite().await;
    let (tidings, mut app) = started(&place).await;
    let tx = app.transaction().unwrap();
    tx.execute("INSERT INTO note VALUES ('a')", []).unwrap();
    tidings.record_in_sqlite(&tx, note(1).key("k")).unwrap();
    tidings.enqueue_in_sqlite(&tx, job()).unwrap();
    tx.rollback().unwrap();
    assert_eq!((notes(&app), events(&tidings).await, relay(&tidings).await), (0, 0, 0));
    refute_enqueued::<Index>(&tidings).await;

    let tx = app.transaction().unwrap();
    tx.execute_batch("INSERT INTO note VALUES ('a'); SAVEPOINT part").unwrap();
    tidings.record_in_sqlite(&tx, note(2)).unwrap();
    tx.execute_batch("ROLLBACK TO part; RELEASE part").unwrap();
    let receipt = tidings.record_in_sqlite(&tx, note(1).key("k")).unwrap();
    assert!(!receipt.existing, "the key went with the transaction that was rolled back");
    tidings.enqueue_in_sqlite(&tx, job()).unwrap();
    assert_eq!(events(&tidings).await, 0, "not to be seen before the commit");
    tx.commit().unwrap();
    assert_eq!((notes(&app), relay(&tidings).await), (1, 1));
    assert_enqueued(&tidings, &job()).await;
    assert_eq!(drain(&tidings).await, 2);
}

#[tokio::test]
async fn a_throw_away_database_knows_what_its_builder_declares() {
    let builder = Tidings::builder().kind(Seen::<Index>::default(), keep);
    let app = throw_away(builder.event_type(internal("note.changed")).subscribe(index_of_notes())).await;
    app.record(note(1)).await.unwrap();
    assert_eq!((relay(&app).await, drain(&app).await), (1, 1), "without workers that were ever started");
}

#[tokio::test]
async fn what_is_refused_leaves_the_transaction_to_its_owner() {
    let place = sqlite().await;
    let (tidings, mut app) = started(&place).await;
    let tx = app.transaction().unwrap();
    tx.execute("INSERT INTO note VALUES ('a')", []).unwrap();
    let refused = tidings.record_in_sqlite(&tx, Record::json("no.such.type", "{}")).unwrap_err();
    assert!(refused.to_string().contains("`no.such.type` is not declared"), "{refused}");
    tx.execute("INSERT INTO note VALUES ('a')", []).unwrap_err();
    let first = tidings.record_in_sqlite(&tx, note(1).key("k")).unwrap();
    assert!(tidings.record_in_sqlite(&tx, note(1).key("k")).unwrap().existing);
    let refused = tidings.record_in_sqlite(&tx, note(2).key("k")).unwrap_err();
    assert!(matches!(refused, RecordRefused::KeyReused(id) if id == first.id), "{refused}");
    tx.commit().unwrap();
    assert_eq!((notes(&app), relay(&tidings).await), (1, 1));
}
