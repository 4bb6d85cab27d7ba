//! What is SQLite's alone: processes that hear nothing of each other and poll, and
//! enqueues in the application's own transaction on the same file.

use crate::fixture::*;
use std::time::Duration;
use tidings::testing::{assert_enqueued, refute_enqueued};
use tidings::{Outcome, Settings, Tidings};

fn polling() -> Settings {
    Settings { poll: Duration::from_millis(50), ..Settings::default() }
}

/// A6, the poll: one process enqueues, another one works, and no signal passes between them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_poll_alone_suffices_between_two_processes_on_one_file() {
    let db = Database::sqlite();
    let script = Script::new([Outcome::retryable("503"), Outcome::Accepted]);
    let builder = || Tidings::builder().settings(polling()).kind::<Note, _, _, _>(script.clone(), play);
    let (app, server) = (db.open(builder()).await, db.open(builder()).await);
    let workers = server.work().await.unwrap();
    let id = app.enqueue(Note::new("a")).await.unwrap().id;
    assert_eq!(settled(&app, id).await.state.name().as_str(), "completed");
    assert_eq!(script.attempts(), [1, 2]);
    workers.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_reaches_a_handler_in_another_process_by_the_poll() {
    let db = Database::sqlite();
    let gate = Gate::default();
    let builder = || Tidings::builder().settings(polling()).kind::<Note, _, _, _>(gate.clone(), wait_at_gate);
    let (app, server) = (db.open(builder()).await, db.open(builder()).await);
    let workers = server.work().await.unwrap();
    let id = app.enqueue(Note::new("a")).await.unwrap().id;
    gate.begun().await;
    app.cancel(id, &act("stop")).await.unwrap();
    gate.dropped().await;
    assert_eq!(settled(&app, id).await.state.name().as_str(), "cancelled");
    workers.stop().await;
}

/// LO4, LO5: change and job are there together or not at all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_enqueued_in_a_transaction_shares_its_end() {
    let db = Database::sqlite();
    let tidings = db.held(Tidings::builder().kind::<Note, _, _, _>(Script::accepting(), play)).await;
    let path = db.address.strip_prefix("sqlite:").unwrap();
    let mut app = rusqlite::Connection::open(path).unwrap();
    app.execute_batch("CREATE TABLE account (name TEXT)").unwrap();
    let accounts = |app: &rusqlite::Connection| {
        app.query_row("SELECT count(*) FROM account", [], |row| row.get::<_, i64>(0)).unwrap()
    };

    let tx = app.transaction().unwrap();
    tx.execute("INSERT INTO account VALUES ('ann')", []).unwrap();
    tidings.enqueue_in_sqlite(&tx, Note::new("rolled back")).unwrap();
    tx.rollback().unwrap();
    refute_enqueued::<Note>(&tidings).await;
    assert_eq!(accounts(&app), 0);

    let mut tx = app.transaction().unwrap();
    let inner = tx.savepoint().unwrap();
    inner.execute("INSERT INTO account VALUES ('bob')", []).unwrap();
    drop(inner);
    tx.execute("INSERT INTO account VALUES ('ann')", []).unwrap();
    let receipt = tidings.enqueue_in_sqlite(&tx, Note::new("kept")).unwrap();
    assert!(tidings.job(receipt.id).await.unwrap().is_none(), "not to be seen before the commit");
    tx.commit().unwrap();
    assert_eq!(assert_enqueued(&tidings, &Note::new("kept")).await, receipt.id);
    assert_eq!((accounts(&app), tidings.drain().await), (1, 1));
}

/// A savepoint is rolled back, and the job in it; the transaction around goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_see_a_job_of_a_transaction_after_its_commit() {
    let db = Database::sqlite();
    let script = Script::accepting();
    let builder = Tidings::builder().settings(polling()).kind::<Note, _, _, _>(script.clone(), play);
    let tidings = db.open(builder).await;
    let workers = tidings.work().await.unwrap();
    let mut app = rusqlite::Connection::open(db.address.strip_prefix("sqlite:").unwrap()).unwrap();
    let tx = app.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
    let id = tidings.enqueue_in_sqlite(&tx, Note::new("a")).unwrap().id;
    assert_eq!(script.attempts().len(), 0);
    tx.commit().unwrap();
    tidings.wake_kind::<Note>();
    assert_eq!(settled(&tidings, id).await.state.name().as_str(), "completed");
    workers.stop().await;
}
