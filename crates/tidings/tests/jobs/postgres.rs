//! What is PostgreSQL's alone: processes that hear of each other, transactions that
//! get in each other's way, the pool, and enqueues in the application's transaction.

use crate::fixture::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tidings::core::outcome::AttemptOutcome;
use tidings::inspect::Event;
use tidings::store::OpenOptions;
use tidings::testing::{assert_enqueued, refute_enqueued};
use tidings::transaction::{self, TransactionError};
use tidings::{EnqueueRefused, Millis, Settings, Tidings, WorkRefused};
use tokio_postgres::NoTls;

/// Nothing is found by looking again.
fn without_poll() -> Settings {
    let never = Duration::from_secs(3_600);
    Settings { poll: never, sweep_every: never, ..Settings::default() }
}

async fn connect(db: &Database) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(&db.address, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Waits until the process at the other end listens: what it hears from then on is not lost.
async fn until_listening(db: &Database, listeners: i64) {
    let client = connect(db).await;
    let count = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query = 'LISTEN tidings'";
    soon("processes listen", async {
        while client.query_one(count, &[]).await.unwrap().get::<_, i64>(0) < listeners {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_enqueued_in_one_process_starts_at_once_in_another() {
    let db = Database::postgres().await;
    let builder =
        || Tidings::builder().settings(without_poll()).kind::<Note, _, _, _>(Script::accepting(), play);
    let (app, server) = (db.open(builder()).await, db.open(builder()).await);
    let workers = server.work().await.unwrap();
    until_listening(&db, 2).await;
    for n in 0..20 {
        let id = app.enqueue(Note::new(&n.to_string())).await.unwrap().id;
        assert_eq!(settled(&app, id).await.state.name().as_str(), "completed");
    }
    workers.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_in_one_process_stops_the_handler_in_another() {
    let db = Database::postgres().await;
    let gate = Gate::default();
    let builder =
        || Tidings::builder().settings(without_poll()).kind::<Note, _, _, _>(gate.clone(), wait_at_gate);
    let (app, server) = (db.open(builder()).await, db.open(builder()).await);
    let workers = server.work().await.unwrap();
    until_listening(&db, 2).await;
    let id = app.enqueue(Note::new("a")).await.unwrap().id;
    gate.begun().await;
    app.cancel(id, &act("stop")).await.unwrap();
    gate.dropped().await;
    assert_eq!(settled(&app, id).await.state.name().as_str(), "cancelled");
    workers.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resume_in_one_process_is_heard_in_another() {
    let db = Database::postgres().await;
    let builder =
        || Tidings::builder().settings(without_poll()).kind::<Note, _, _, _>(Script::accepting(), play);
    let (app, server) = (db.open(builder()).await, db.open(builder()).await);
    app.pause("default", &act("")).await.unwrap();
    let workers = server.work().await.unwrap();
    until_listening(&db, 2).await;
    let id = app.enqueue(Note::new("a")).await.unwrap().id;
    app.resume("default").await.unwrap();
    assert_eq!(settled(&app, id).await.state.name().as_str(), "completed");
    workers.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tidings_that_is_gone_listens_no_more() {
    let db = Database::postgres().await;
    let tidings = db.open(Tidings::builder().kind::<Note, _, _, _>(Script::accepting(), play)).await;
    until_listening(&db, 1).await;
    drop(tidings);
    let client = connect(&db).await;
    let others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
    soon("its connections are closed", async {
        while client.query_one(others, &[]).await.unwrap().get::<_, i64>(0) > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_do_not_start_on_a_pool_that_is_too_small() {
    let db = Database::postgres().await;
    let builder = Tidings::builder().kind::<Note, _, _, _>(Script::accepting(), play);
    let options = OpenOptions { pool_size: 9, ..OpenOptions::default() };
    let tidings = builder.open_with(&db.address, &options).await.unwrap();
    let Err(refused) = tidings.work().await else { panic!("it started") };
    assert!(matches!(refused, WorkRefused::PoolTooSmall { queues: 1, needed: 5, pool: 9, least: 10 }));
    assert!(refused.to_string().contains("raise `pool_size` to at least 10"), "{refused}");
}

/// Enqueues a job in a transaction that has the whole table to itself, and waits until a
/// worker's claim waits for it.
async fn enqueue_behind_a_lock<'a>(
    db: &Database,
    tidings: &Tidings,
    client: &'a mut tokio_postgres::Client,
) -> (tidings::JobId, tokio_postgres::Transaction<'a>) {
    let lock = client.transaction().await.unwrap();
    lock.batch_execute("LOCK TABLE tidings.job IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let id = tidings.enqueue_in_postgres(&lock, Note::new("a")).await.unwrap().id;
    tidings.wake_kind::<Note>();
    let watcher = connect(db).await;
    let waiting = "SELECT count(*) FROM pg_stat_activity
                   WHERE datname = current_database() AND wait_event_type = 'Lock'
                       AND query NOT LIKE '%Leases that are over%'";
    soon("the claim waits", async {
        while watcher.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    (id, lock)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_claimed_while_the_stop_came_goes_back_untouched() {
    let db = Database::postgres().await;
    let script = Script::accepting();
    let tidings = db.held(Tidings::builder().kind::<Note, _, _, _>(script.clone(), play)).await;
    let workers = tidings.work().await.unwrap();
    let mut client = connect(&db).await;
    let (id, lock) = enqueue_behind_a_lock(&db, &tidings, &mut client).await;
    let mut stop = Box::pin(workers.stop());
    assert!(futures_util::FutureExt::now_or_never(&mut stop).is_none(), "it waits for the claim");
    lock.commit().await.unwrap();
    soon("the workers stop", stop).await;
    let view = view(&tidings, id).await;
    assert_eq!((view.job.state.name().as_str(), view.job.counters.attempts), ("pending", 0));
    assert_eq!((script.attempts().len(), view.attempts.len()), (0, 0), "it was never started");
    assert!(
        matches!(&view.events[..], [event] if matches!(event.what, Event::Released { claim: 1 })),
        "{view:?}"
    );
}

/// DU11: after a claim that took 20 of the lease's 45 seconds, a handler with a limit of
/// 30 could still run when the next attempt begins.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_took_too_long_is_given_back_instead_of_started() {
    let db = Database::postgres().await;
    let script = Script::accepting();
    let tidings = db.held(Tidings::builder().kind::<Note, _, _, _>(script.clone(), play)).await;
    let workers = tidings.work().await.unwrap();
    let mut client = connect(&db).await;
    let (id, lock) = enqueue_behind_a_lock(&db, &tidings, &mut client).await;
    tidings.clock.advance(Millis::from_seconds(20));
    lock.commit().await.unwrap();
    assert_eq!(settled(&tidings, id).await.state.name().as_str(), "completed");
    let view = view(&tidings, id).await;
    assert!(matches!(view.events[0].what, Event::Released { claim: 1 }), "{view:?}");
    assert_eq!((script.attempts(), view.job.counters.attempts), (vec![2], 1), "no attempt was spent on it");
    workers.stop().await;
}

/// Has the database refuse the first `times` changes of a table with this code.
async fn refuse_first(db: &Database, change: &str, table: &str, code: &str, times: u32) {
    let client = connect(db).await;
    let statements = format!(
        "CREATE SEQUENCE public.refusals;
         CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             IF nextval('public.refusals') <= {times} THEN
                 RAISE EXCEPTION 'injected' USING ERRCODE = '{code}';
             END IF;
             RETURN NEW;
         END $$;
         CREATE TRIGGER refuse BEFORE {change} ON tidings.{table}
             FOR EACH ROW EXECUTE FUNCTION public.refuse();"
    );
    client.batch_execute(&statements).await.unwrap();
}

async fn refusals(db: &Database) -> i64 {
    connect(db).await.query_one("SELECT last_value FROM public.refusals", &[]).await.unwrap().get(0)
}

/// CW7: on the way in, at the claim and at the completion.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_the_database_gave_up_is_tried_again_and_the_result_is_kept() {
    for code in ["40001", "40P01"] {
        for (change, table) in
            [("INSERT", "job"), ("UPDATE", "job"), ("INSERT", "finished_job"), ("INSERT", "fact_otherwise")]
        {
            let db = Database::postgres().await;
            let script = Script::accepting();
            let tidings = db.held(Tidings::builder().kind::<Note, _, _, _>(script.clone(), play)).await;
            refuse_first(&db, change, table, code, 4).await;
            let id = tidings.enqueue(Note::new("a")).await.unwrap().id;
            assert_eq!(tidings.drain().await, 1, "{code} on {change} of {table}");
            assert_eq!(outcomes(&tidings, id).await, [(1, Some(AttemptOutcome::Accepted))]);
            assert_eq!((state(&tidings, id).await, script.attempts().len()), ("completed", 1));
            assert!(refusals(&db).await >= 5, "{code} on {change} of {table} was not tried again");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sweep_that_the_database_gave_up_is_tried_again() {
    let db = Database::postgres().await;
    let tidings = db.held(Tidings::builder().kind::<Note, _, _, _>(Script::accepting(), play)).await;
    let id = tidings.enqueue(Note::new("a")).await.unwrap().id;
    tidings::testing::take_one(&tidings).await.unwrap().expect("a due job");
    tidings.clock.advance(Millis::from_seconds(45));
    refuse_first(&db, "UPDATE", "job", "40P01", 4).await;
    assert_eq!(tidings::testing::sweep(&tidings).await.unwrap(), 1);
    assert_eq!(state(&tidings, id).await, "unknown");
}

/// ST10, CW8: the database takes no writes for a while, when the outcome is known
/// already. It is written when the database is back, and nothing runs twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outcome_waits_for_a_database_that_takes_no_writes() {
    for code in ["25006", "57P01", "40001", "53100"] {
        let db = Database::postgres().await;
        let script = Script::accepting();
        let tidings = db.open(Tidings::builder().kind::<Note, _, _, _>(script.clone(), play)).await;
        let workers = tidings.work().await.unwrap();
        refuse_first(&db, "INSERT", "finished_job", code, 6).await;
        let id = tidings.enqueue(Note::new("a")).await.unwrap().id;
        assert_eq!(settled(&tidings, id).await.state.name().as_str(), "completed", "{code}");
        assert_eq!((script.attempts().len(), outcomes(&tidings, id).await.len()), (1, 1), "{code}");
        workers.stop().await;
    }
}

/// ST11: a database whose transactions are all serializable.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_of_two_processes_get_on_in_serializable_transactions() {
    let db = Database::postgres().await;
    let statement = "DO $$ BEGIN
        EXECUTE format('ALTER DATABASE %I SET default_transaction_isolation = %L', current_database(), 'serializable');
    END $$";
    connect(&db).await.batch_execute(statement).await.unwrap();
    let script = Script::accepting();
    let builder = || Tidings::builder().kind::<Note, _, _, _>(script.clone(), play).workers("default", 20);
    let (one, two) = (db.open(builder()).await, db.open(builder()).await);
    let workers = [one.work().await.unwrap(), two.work().await.unwrap()];
    let calls =
        (0..200).map(|n| if n % 2 == 0 { one.enqueue(Note::new("a")) } else { two.enqueue(Note::new("a")) });
    let mut ids: Vec<_> = Vec::new();
    for receipt in futures_util::future::join_all(calls).await {
        ids.push(receipt.unwrap().id);
    }
    for id in &ids {
        assert_eq!(settled(&one, *id).await.state.name().as_str(), "completed");
    }
    let mut came = script.jobs();
    came.sort();
    ids.sort();
    assert_eq!(came, ids, "none stuck, none twice");
    for workers in workers {
        workers.stop().await;
    }
}

async fn accounts(db: &Database) -> tokio_postgres::Client {
    let client = connect(db).await;
    let statements = "CREATE TABLE account (id BIGINT PRIMARY KEY, balance BIGINT NOT NULL);
                      INSERT INTO account VALUES (1, 10), (2, 10)";
    client.batch_execute(statements).await.unwrap();
    client
}

/// A12: two transactions that wait for each other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadlock_of_two_transactions_ends_with_both_done() {
    let db = Database::postgres().await;
    let client = accounts(&db).await;
    let runs = Arc::new(AtomicU32::new(0));
    let both_began = Arc::new(tokio::sync::Barrier::new(2));
    let transfer = async |from: i64, to: i64| {
        let (runs, both_began) = (Arc::clone(&runs), Arc::clone(&both_began));
        let mut client = connect(&db).await;
        client.batch_execute("SET deadlock_timeout = '20ms'").await.unwrap();
        // Spawned, so that it has to be `Send`, as in a web handler.
        let work = tokio::spawn(async move {
            let run = AtomicU32::new(0);
            transaction::in_transaction(&mut client, async move |tx| {
                runs.fetch_add(1, Ordering::SeqCst);
                tx.execute("UPDATE account SET balance = balance - 1 WHERE id = $1", &[&from]).await?;
                if run.fetch_add(1, Ordering::SeqCst) == 0 {
                    both_began.wait().await;
                }
                tx.execute("UPDATE account SET balance = balance + 1 WHERE id = $1", &[&to]).await
            })
            .await
        });
        work.await.unwrap()
    };
    let (one, two) = soon("both end", futures_util::future::join(transfer(1, 2), transfer(2, 1))).await;
    assert_eq!((one.unwrap(), two.unwrap()), (1, 1));
    assert!(runs.load(Ordering::SeqCst) >= 3, "one of them was given up and run again");
    let rows = client.query("SELECT balance FROM account", &[]).await.unwrap();
    assert!(rows.iter().all(|row| row.get::<_, i64>(0) == 10), "each transfer once");
}

/// A12: a bound, and nothing but the two codes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_is_tried_five_times_for_a_conflict_and_once_for_anything_else() {
    let db = Database::postgres().await;
    let mut client = accounts(&db).await;
    for (code, expected) in [("40001", 5), ("40P01", 5), ("23505", 1), ("55P03", 1), ("57014", 1)] {
        let runs = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&runs);
        let raise = format!("DO $$ BEGIN RAISE EXCEPTION 'injected' USING ERRCODE = '{code}'; END $$");
        let ended: Result<(), tokio_postgres::Error> =
            transaction::in_transaction(&mut client, async move |tx| {
                counted.fetch_add(1, Ordering::SeqCst);
                tx.execute("UPDATE account SET balance = 0", &[]).await?;
                tx.batch_execute(&raise).await
            })
            .await;
        assert_eq!(ended.unwrap_err().code().map(tokio_postgres::error::SqlState::code), Some(code));
        assert_eq!(runs.load(Ordering::SeqCst), expected, "{code}");
    }
    let rows = client.query("SELECT balance FROM account", &[]).await.unwrap();
    assert!(rows.iter().all(|row| row.get::<_, i64>(0) == 10), "each was rolled back");
}

/// LO4, LO5: change and job are there together or not at all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_enqueued_in_a_transaction_shares_its_end() {
    let db = Database::postgres().await;
    let script = Script::accepting();
    let tidings = db.held(Tidings::builder().kind::<Note, _, _, _>(script.clone(), play)).await;
    let mut app = accounts(&db).await;

    let tx = app.transaction().await.unwrap();
    tidings.enqueue_in_postgres(&tx, Note::new("rolled back")).await.unwrap();
    tx.rollback().await.unwrap();
    refute_enqueued::<Note>(&tidings).await;

    let mut tx = app.transaction().await.unwrap();
    let savepoint = tx.savepoint("part").await.unwrap();
    tidings.enqueue_in_postgres(&savepoint, Note::new("rolled back, too")).await.unwrap();
    savepoint.rollback().await.unwrap();
    tx.execute("UPDATE account SET balance = 9 WHERE id = 1", &[]).await.unwrap();
    let receipt = tidings.enqueue_in_postgres(&tx, Note::new("kept")).await.unwrap();
    assert_eq!((tidings.drain().await, script.attempts().len()), (0, 0), "not to be seen before the commit");
    tx.commit().await.unwrap();
    assert_eq!(assert_enqueued(&tidings, &Note::new("kept")).await, receipt.id);
    assert_eq!(tidings.drain().await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_that_enqueues_is_tried_again_like_any_other() {
    let db = Database::postgres().await;
    let tidings = db.held(Tidings::builder().kind::<Note, _, _, _>(Script::accepting(), play)).await;
    let mut app = accounts(&db).await;
    refuse_first(&db, "INSERT", "job", "40001", 3).await;
    let door = Tidings::clone(&tidings);
    // Spawned, so that it has to be `Send`, as in a web handler.
    let work = tokio::spawn(async move {
        let made = transaction::in_transaction::<_, EnqueueRefused>(&mut app, async move |tx| {
            tx.execute("UPDATE account SET balance = balance + 1 WHERE id = 1", &[]).await?;
            door.enqueue_in_postgres(tx, Note::new("a")).await
        });
        made.await.map(|receipt| (app, receipt))
    });
    let (app, receipt) = work.await.unwrap().unwrap();
    let balance: i64 = app.query_one("SELECT balance FROM account WHERE id = 1", &[]).await.unwrap().get(0);
    assert_eq!((balance, assert_enqueued(&tidings, &Note::new("a")).await), (11, receipt.id));
    let refused = EnqueueRefused::from(tidings::store::StoreError::Unavailable("40001".into()));
    assert!(!refused.is_conflict(), "by the code, not by the words");
}
