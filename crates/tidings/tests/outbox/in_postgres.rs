//! Recording in the application's own transaction on Postgres, and what is Postgres's
//! alone: transactions that commit in another order than they wrote, and commits that are none.

use crate::fixture::{
    Index, Place, Seen, declare, drain, event, index_of_notes, jobs, keep, note, postgres, relay, soon,
};
use tidings::core::route::Subscription;
use tidings::store::outbox::EventFilter;
use tidings::testing::{assert_enqueued, refute_enqueued};
use tidings::transaction::{self, TransactionError, in_transaction};
use tidings::{Record, RecordRefused, Tidings};
use tokio_postgres::Client;

async fn connect(place: &Place) -> Client {
    let (client, connection) = tokio_postgres::connect(&place.address, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn started(place: &Place) -> (Tidings, Client) {
    let tidings = place.tidings(Tidings::builder().kind(Seen::<Index>::default(), keep));
    declare(&tidings, &[index_of_notes()]).await;
    let app = connect(place).await;
    app.batch_execute("CREATE TABLE note (text TEXT UNIQUE)").await.unwrap();
    (tidings, app)
}

async fn notes(app: &Client) -> i64 {
    app.query_one("SELECT count(*) FROM note", &[]).await.unwrap().get(0)
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
    let place = postgres().await;
    let (tidings, mut app) = started(&place).await;
    let tx = app.transaction().await.unwrap();
    tx.execute("INSERT INTO note VALUES ('a')", &[]).await.unwrap();
    tidings.record_in_postgres(&tx, note(1).key("k")).await.unwrap();
    tidings.enqueue_in_postgres(&tx, job()).await.unwrap();
    tx.rollback().await.unwrap();
    assert_eq!((notes(&app).await, events(&tidings).await, relay(&tidings).await), (0, 0, 0));
    refute_enqueued::<Index>(&tidings).await;

    let mut tx = app.transaction().await.unwrap();
    tx.execute("INSERT INTO note VALUES ('a')", &[]).await.unwrap();
    let savepoint = tx.savepoint("part").await.unwrap();
    tidings.record_in_postgres(&savepoint, note(2)).await.unwrap();
    savepoint.rollback().await.unwrap();
    let receipt = tidings.record_in_postgres(&tx, note(1).key("k")).await.unwrap();
    assert!(!receipt.existing, "the key went with the transaction that was rolled back");
    tidings.enqueue_in_postgres(&tx, job()).await.unwrap();
    assert_eq!((events(&tidings).await, relay(&tidings).await), (0, 0), "not to be seen before the commit");
    transaction::commit(tx).await.unwrap();
    assert_eq!((notes(&app).await, events(&tidings).await, relay(&tidings).await), (1, 1, 1));
    assert_enqueued(&tidings, &job()).await;
    assert_eq!(drain(&tidings).await, 2);
}

/// LO2, B3: no cursor.
#[tokio::test]
async fn an_event_that_was_written_first_and_commits_last_is_fanned_out_too() {
    let place = postgres().await;
    let (tidings, mut slow) = started(&place).await;
    let mut quick = connect(&place).await;
    let slow_tx = slow.transaction().await.unwrap();
    let lower = tidings.record_in_postgres(&slow_tx, note(1)).await.unwrap().id;
    // One that is rolled back leaves a gap in between.
    let gap = quick.transaction().await.unwrap();
    tidings.record_in_postgres(&gap, note(2)).await.unwrap();
    gap.rollback().await.unwrap();
    let quick_tx = quick.transaction().await.unwrap();
    let higher = tidings.record_in_postgres(&quick_tx, note(3)).await.unwrap().id;
    quick_tx.commit().await.unwrap();
    assert_eq!(relay(&tidings).await, 1, "the one that is there");
    slow_tx.commit().await.unwrap();
    assert_eq!(relay(&tidings).await, 1, "and the one that came late");
    let (lower, higher) = (event(&tidings, lower).await, event(&tidings, higher).await);
    assert!(lower.seq < higher.seq);
    assert!(lower.became.is_some() && higher.became.is_some());
    assert_eq!(drain(&tidings).await, 2);
}

/// A relay passes by what another transaction holds, and comes back.
#[tokio::test]
async fn an_event_that_somebody_has_locked_keeps_no_other_from_being_fanned_out() {
    let place = postgres().await;
    let (tidings, mut app) = started(&place).await;
    tidings.record_all((0..3).map(note).collect()).await.unwrap();
    let tx = app.transaction().await.unwrap();
    tx.execute("SELECT 1 FROM tidings.event ORDER BY seq LIMIT 1 FOR UPDATE", &[]).await.unwrap();
    assert_eq!(relay(&tidings).await, 2);
    tx.rollback().await.unwrap();
    assert_eq!(relay(&tidings).await, 1);
}

/// The driver's trap: `COMMIT` of a failed transaction is answered with `ROLLBACK`, and that is no error.
#[tokio::test]
async fn a_statement_error_that_was_dropped_cannot_end_in_a_reported_success() {
    let place = postgres().await;
    let (tidings, mut app) = started(&place).await;
    app.execute("INSERT INTO note VALUES ('taken')", &[]).await.unwrap();

    // So that this test says when the driver begins to look: then the check is not needed any more.
    let tx = app.transaction().await.unwrap();
    let _dropped = tx.execute("INSERT INTO note VALUES ('taken')", &[]).await.unwrap_err();
    tx.commit().await.expect("the driver's own commit reports a success, and nothing was done");

    let tx = app.transaction().await.unwrap();
    tidings.record_in_postgres(&tx, note(1)).await.unwrap();
    let _dropped = tx.execute("INSERT INTO note VALUES ('taken')", &[]).await.unwrap_err();
    let refused = transaction::commit(tx).await.unwrap_err();
    assert_eq!(refused.code().map(tokio_postgres::error::SqlState::code), Some("25P02"), "{refused}");

    let door = tidings.clone();
    let ended: Result<(), RecordRefused> = in_transaction(&mut app, async move |tx| {
        let _dropped = tx.execute("INSERT INTO note VALUES ('taken')", &[]).await;
        let _dropped = door.record_in_postgres(tx, note(1)).await;
        Ok(())
    })
    .await;
    let refused = ended.unwrap_err();
    assert!(
        refused.to_string().contains("current transaction is aborted") && !refused.is_conflict(),
        "{refused}"
    );
    assert_eq!((events(&tidings).await, notes(&app).await), (0, 1));
}

/// A recording that the database refuses fails the caller's whole transaction.
#[tokio::test]
async fn a_recording_that_the_database_refuses_takes_the_change_with_it() {
    let place = postgres().await;
    let (tidings, mut app) = started(&place).await;
    let refuse = "ALTER TABLE tidings.event ADD CONSTRAINT no_more CHECK (subject <> 'note/7')";
    app.batch_execute(refuse).await.unwrap();
    let tx = app.transaction().await.unwrap();
    tx.execute("INSERT INTO note VALUES ('a')", &[]).await.unwrap();
    let refused = tidings.record_in_postgres(&tx, note(7)).await.unwrap_err();
    assert!(refused.to_string().contains("no_more"), "{refused}");
    transaction::commit(tx).await.unwrap_err();
    assert_eq!(notes(&app).await, 0);
    let tx = app.transaction().await.unwrap();
    let refused = tidings.record_in_postgres(&tx, Record::json("no.such.type", "{}")).await.unwrap_err();
    assert!(refused.to_string().contains("`no.such.type` is not declared"), "{refused}");
    transaction::check(&tx).await.expect("what is refused at the door leaves the transaction whole");
}

/// ST11, CW7: a database whose transactions are all serializable.
#[tokio::test(flavor = "multi_thread")]
async fn relays_of_two_processes_get_on_in_serializable_transactions() {
    let place = postgres().await;
    let (one, app) = started(&place).await;
    let statement = "DO $$ BEGIN
        EXECUTE format('ALTER DATABASE %I SET default_transaction_isolation = %L', current_database(), 'serializable');
    END $$";
    app.batch_execute(statement).await.unwrap();
    let store = tidings::store::open(&place.address, &tidings::store::OpenOptions::default()).await.unwrap();
    let another =
        tidings::store::open(&place.address, &tidings::store::OpenOptions::default()).await.unwrap();
    let builder = || Tidings::builder().kind(Seen::<Index>::default(), keep);
    let (two, three) = (place.on(store, builder()), place.on(another, builder()));
    one.record_all((0..1_000).map(note).collect()).await.unwrap();
    let relays = [two.clone(), three, two].map(|tidings| {
        tokio::spawn(async move {
            let mut fanned_out = 0;
            while tidings.backlog().await.unwrap().waiting > 0 {
                // A conflict that five tries did not settle is the next pass's.
                fanned_out += tidings::testing::relay(&tidings).await.unwrap_or_default();
            }
            fanned_out
        })
    });
    for relay in relays {
        relay.await.unwrap();
    }
    let jobs: i64 = app.query_one("SELECT count(*) FROM tidings.job", &[]).await.unwrap().get(0);
    assert_eq!(jobs, 1_000, "each once");
}

/// Waits until somebody waits for a lock.
async fn somebody_is_held_up(app: &Client) {
    let query = "SELECT count(*) FROM pg_locks
                 WHERE NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    soon("somebody waits for a lock", async {
        while app.query_one(query, &[]).await.unwrap().get::<_, i64>(0) == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// The relay is held up in the middle of a pass, after it has read the subscriptions.
#[tokio::test]
async fn a_subscription_that_was_declared_before_an_event_always_gets_it() {
    let place = postgres().await;
    let (tidings, app) = started(&place).await;
    let holder = connect(&place).await;
    tidings.record(Record::json("other.thing", "{}")).await.unwrap();
    holder.batch_execute("BEGIN; LOCK TABLE tidings.kind IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let relaying = tidings.clone();
    let relaying = tokio::spawn(async move { relay(&relaying).await });
    somebody_is_held_up(&app).await;
    let all = Subscription::to_job("all", "*", "search.index").unwrap();
    tidings.declare(&[], &[all]).await.unwrap();
    let id = tidings.record(Record::json("other.thing", "{}")).await.unwrap().id;
    holder.batch_execute("COMMIT").await.unwrap();
    let fanned_out = relaying.await.unwrap() + relay(&tidings).await;
    assert_eq!((fanned_out, jobs(&tidings, id).await.len()), (2, 1));
}
