//! What only a server can do: go away, come back, refuse to write, pass messages on.

use crate::draft::{Draft, NOW, act, ended, job, jobs, take};
use crate::fixture::{Fresh, Place, empty_postgres, postgres};
use std::time::Duration;
use testkit::postgres::{Cluster, Durability, database_on};
use tidings::core::decide::Command;
use tidings::core::job::StateName;
use tidings::core::outcome::Outcome;
use tidings::core::time::Millis;
use tidings::core::unique::UniqueStates;
use tidings::store::{Inserted, OpenOptions, Saved, StoreError, Wake};
use tokio::sync::mpsc::Receiver;

/// A store on a server of its own.
async fn on(cluster: &Cluster) -> Fresh {
    Place::Postgres(database_on(&cluster.url("postgres")).await).fresh().await
}

/// As many calls as there may be broken connections in the pool, and one.
async fn recovers(store: &Fresh) {
    let most = store.pool_size().unwrap() + 1;
    for _ in 0..most {
        if store.now().await.is_ok() {
            return;
        }
    }
    panic!("no call of {most} succeeded: {:?}", store.now().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_is_unavailable_and_is_used_again_when_it_is_back() {
    let cluster = Cluster::start(Durability::Fast);
    let store = on(&cluster).await;
    let running = store.running(3).await;
    // Several connections are open and idle.
    let calls = (0..8).map(|_| store.load(&[]));
    futures_util::future::join_all(calls).await;

    cluster.stop_fast();
    let change = ended(&running[0], Outcome::Accepted);
    for _ in 0..3 {
        let problem = store.save(vec![change.clone()]).await.unwrap_err();
        assert!(matches!(problem, StoreError::Unavailable(_)), "{problem}");
    }
    let problem = store.take_due(&take(1)).await.unwrap_err();
    assert!(problem.is_transient(), "{problem}");
    let Err(problem) = store.place().open(&OpenOptions::default()).await else { panic!("it was opened") };
    assert!(problem.is_transient(), "{problem}");

    cluster.start_again();
    recovers(&store).await;
    assert_eq!(store.save_one(change).await, Saved::Yes);

    cluster.stop_immediate();
    store.now().await.unwrap_err();
    cluster.start_again();
    recovers(&store).await;
    assert_eq!(store.save_one(ended(&running[1], Outcome::Accepted)).await, Saved::Yes);
}

/// DB1, ST10: a primary that was demoted still answers, and refuses to write.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_only_reads_is_unavailable_and_nothing_is_lost_when_it_writes_again() {
    let cluster = Cluster::start(Durability::Fast);
    let store = on(&cluster).await;
    let running = store.running(2).await;
    store.put(jobs(2)).await;

    cluster.set("default_transaction_read_only", "on").await;
    let change = ended(&running[0], Outcome::Accepted);
    let problems = [
        store.save(vec![change.clone()]).await.unwrap_err(),
        store.take_due(&take(1)).await.unwrap_err(),
        store.insert(jobs(1)).await.unwrap_err(),
        store.insert(vec![job().unique("key", UniqueStates::KEPT)]).await.unwrap_err(),
    ];
    for problem in problems {
        assert!(problem.is_transient() && problem.to_string().contains("25006"), "{problem}");
    }
    assert_eq!(store.job(running[0].id).await, running[0], "it can still be read");

    cluster.reset("default_transaction_read_only").await;
    assert_eq!(store.save_one(change).await, Saved::Yes);
    assert_eq!(store.take(10).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_cuts_every_connection_loses_no_claim_and_no_key() {
    let store = postgres().await;
    store.put(jobs(200)).await;
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let store = store.handle();
        callers.spawn(async move {
            for _ in 0..50 {
                // An error is a legal answer here; a half-done claim is not.
                let _cut = store.take_due(&take(1)).await;
                let _cut = store.insert(vec![job().kind("x").unique("key", UniqueStates::KEPT)]).await;
            }
        });
    }
    let client = store.place().postgres_client().await;
    while !callers.is_empty() {
        let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                   WHERE datname = current_database() AND pid <> pg_backend_pid()";
        client.execute(cut, &[]).await.unwrap();
        while callers.try_join_next().is_some() {}
        tokio::task::yield_now().await;
    }
    recovers(&store).await;
    store.take(200).await;
    assert_eq!(store.number("SELECT count(*) FROM tidings.job WHERE state = 'running'").await, 200);
    let keyless = "SELECT count(*) FROM tidings.job WHERE kind = 'x' AND NOT EXISTS
                   (SELECT 1 FROM tidings.job_key WHERE job_id = job.id)";
    assert_eq!(store.number(keyless).await, 0);
    assert!(store.number("SELECT count(*) FROM tidings.job WHERE kind = 'x'").await <= 1);
}

/// A key that is given up between the try to take it and the look who has it.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_given_up_meanwhile_goes_to_the_job_that_asked_for_it() {
    let store = postgres().await;
    let keyed = || job().unique("key", UniqueStates::UNFINISHED);
    let first = store.put(vec![keyed()]).await[0];
    // Whoever has tried to take keys waits here, until the gate is opened.
    store
        .sql(
            "CREATE FUNCTION wait_at_the_gate() RETURNS trigger LANGUAGE plpgsql AS
                 $$ BEGIN PERFORM pg_advisory_xact_lock_shared(42); RETURN NULL; END $$;
             CREATE TRIGGER gate AFTER INSERT ON tidings.job_key
                 FOR EACH STATEMENT EXECUTE FUNCTION wait_at_the_gate()",
        )
        .await
        .unwrap();
    let gate = store.place().postgres_client().await;
    gate.execute("SELECT pg_advisory_lock(42)", &[]).await.unwrap();
    let asking = {
        let store = store.handle();
        tokio::spawn(async move { store.insert(vec![keyed()]).await.unwrap()[0] })
    };
    let waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
                   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    while store.number(waiting).await == 0 {
        tokio::task::yield_now().await;
    }
    store.done(first, Command::Cancel(act())).await;
    gate.execute("SELECT pg_advisory_unlock(42)", &[]).await.unwrap();

    let Inserted::New(second) = asking.await.unwrap() else { panic!("nobody had the key any more") };
    let keys = format!("SELECT count(*) FROM tidings.job_key WHERE job_id = '{}'", second.0);
    assert_eq!(store.number(&keys).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_too_long_for_a_connection_is_told_so() {
    let store = postgres().await;
    let options = OpenOptions { pool_size: 1, pool_wait_ms: 100, ..OpenOptions::default() };
    let small = store.place().open(&options).await.unwrap();
    assert_eq!(small.pool_size(), Some(1));
    let locker = store.place().postgres_client().await;
    locker.batch_execute("BEGIN; LOCK TABLE tidings.job").await.unwrap();
    let blocked = {
        let small = small.clone();
        tokio::spawn(async move { small.insert(jobs(1)).await })
    };
    wait_for_lock_waiters(&store, 1).await;
    let problem = small.now().await.unwrap_err();
    assert!(problem.is_transient() && problem.to_string().contains("pool_size"), "{problem}");
    locker.batch_execute("COMMIT").await.unwrap();
    blocked.await.unwrap().unwrap();
    small.now().await.unwrap();
}

#[tokio::test]
async fn an_address_that_is_none_is_refused_without_repeating_the_password() {
    for address in ["postgres://ann:s3cret@:::/x y", "mysql://ann:s3cret@h/db", "s3cret"] {
        let Err(problem) = tidings::store::open(address, &OpenOptions::default()).await else {
            panic!("it was opened")
        };
        assert!(matches!(problem, StoreError::BadAddress(_)), "{problem}");
        assert!(!problem.to_string().contains("s3cret"), "{problem}");
    }
}

/// Also a password that is wrong for a moment: what waits for a connection waits on.
#[tokio::test]
async fn a_connection_that_cannot_be_had_names_its_place_and_may_be_had_later() {
    let database = empty_postgres().await;
    let address = database.address();
    let (server, name) = address.rsplit_once('/').unwrap();
    let host = server.rsplit_once('@').unwrap().1;
    let nobody = format!("postgres://nobody_of_that_name:s3cret@{host}/{name}");
    for (address, place) in [
        ("postgres://ann:s3cret@127.0.0.1:1/app".to_owned(), "127.0.0.1:1/app".to_owned()),
        (format!("{server}/not_there"), format!("{host}/not_there")),
        (nobody, format!("{host}/{name}")),
    ] {
        let Err(problem) = tidings::store::open(&address, &OpenOptions::default()).await else {
            panic!("it was opened")
        };
        assert!(problem.is_transient(), "{problem}");
        let text = problem.to_string();
        assert!(text.contains(&format!("no connection to {place}: ")) && !text.contains("s3cret"), "{text}");
    }
}

#[tokio::test]
async fn a_week_of_facts_gets_a_partition_once_and_leaves_with_it() {
    let store = postgres().await;
    for _ in 0..2 {
        store.keep_house(NOW).await.unwrap();
    }
    let partitions = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'tidings.fact'::regclass";
    assert_eq!(store.number(partitions).await, 4, "this week, two ahead, and the rest");
    let running = store.running_one().await;
    store.save_all(vec![ended(&running, Outcome::Accepted)]).await;
    assert_eq!(store.number("SELECT count(*) FROM tidings.fact_otherwise").await, 0);
    store.prune(tidings::store::Prune::Facts(NOW + Millis::from_days(8)), 100).await.unwrap();
    assert_eq!(store.number(partitions).await, 3);
    assert!(store.facts(running.id).await.is_empty());
}

async fn wait_for_lock_waiters(store: &Fresh, count: i64) {
    let waiting = "SELECT count(*) FROM pg_stat_activity
                   WHERE datname = current_database() AND wait_event_type = 'Lock'";
    while store.number(waiting).await < count {
        tokio::task::yield_now().await;
    }
}

/// The first fact of a week, written while the week's partition is being attached.
#[tokio::test(flavor = "multi_thread")]
async fn a_fact_is_taken_while_its_week_is_being_prepared() {
    let store = postgres().await;
    let running = store.running_one().await;
    // Somebody reads, so that the housekeeper has to wait in the middle.
    let reader = store.place().postgres_client().await;
    reader.batch_execute("BEGIN; SELECT count(*) FROM tidings.fact_otherwise").await.unwrap();
    let (keeper, writer) = (store.handle(), store.handle());
    let keeping = tokio::spawn(async move { keeper.keep_house(NOW).await });
    wait_for_lock_waiters(&store, 1).await;
    let end = ended(&running, Outcome::Accepted);
    let writing = tokio::spawn(async move { writer.save(vec![end]).await });
    wait_for_lock_waiters(&store, 2).await;
    reader.batch_execute("COMMIT").await.unwrap();

    assert_eq!(writing.await.unwrap().unwrap(), [Saved::Yes]);
    keeping.await.unwrap().unwrap();
    assert_eq!(store.facts(running.id).await, ["attempt_ended"]);
}

/// A housekeeper that comes late neither fails nor loses what was written before it.
#[tokio::test]
async fn facts_of_a_week_that_had_no_partition_stay_readable() {
    let store = postgres().await;
    let running = store.running_one().await;
    store.save_all(vec![ended(&running, Outcome::Accepted)]).await;
    for _ in 0..2 {
        store.keep_house(NOW).await.unwrap();
    }
    assert_eq!(store.facts(running.id).await, ["attempt_ended"]);
    let partitions = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'tidings.fact'::regclass";
    assert_eq!(store.number(partitions).await, 3, "the next weeks have theirs");
}

async fn hint(hints: &mut Receiver<Wake>) -> Wake {
    let hint = tokio::time::timeout(Duration::from_secs(30), hints.recv()).await;
    hint.expect("a hint comes in time").expect("the channel is open")
}

/// What a listener gets first, since it may have missed something before.
fn look_once() -> Wake {
    Wake::Queue(String::new())
}

#[tokio::test]
async fn what_one_process_announces_every_other_hears() {
    let store = postgres().await;
    let other = store.another().await;
    let (mut first, mut second) = (store.listen().unwrap(), other.listen().unwrap());
    assert_eq!([hint(&mut first).await, hint(&mut second).await], [look_once(), look_once()]);

    let id = job().job.id;
    let many: Vec<Wake> = (0..300).map(|n| Wake::Queue(format!("queue-{n}"))).collect();
    let mut said =
        vec![Wake::Queue("default".into()), Wake::Cancel(id), Wake::Awaited(id.0), Wake::Settled(id.0)];
    said.extend(many);
    store.announce(&said).await.unwrap();
    store.announce(&[]).await.unwrap();
    for wake in &said {
        assert_eq!(hint(&mut first).await, *wake);
        assert_eq!(hint(&mut second).await, *wake);
    }
}

#[tokio::test]
async fn a_listener_whose_connection_was_cut_listens_again() {
    let store = postgres().await;
    let mut hints = store.listen().unwrap();
    assert_eq!(hint(&mut hints).await, look_once());
    let listeners = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                     WHERE datname = current_database() AND query = 'LISTEN tidings'";
    assert_eq!(store.number(listeners).await, 1);
    assert_eq!(hint(&mut hints).await, look_once(), "it looks for what it missed");
    store.announce(&[Wake::Queue("mail".into())]).await.unwrap();
    assert_eq!(hint(&mut hints).await, Wake::Queue("mail".into()));
}

#[tokio::test]
async fn a_listener_that_nobody_reads_any_more_gives_its_connection_back() {
    let store = postgres().await;
    let mut hints = store.listen().unwrap();
    hint(&mut hints).await;
    drop(hints);
    let listeners = "SELECT count(*) FROM pg_stat_activity
                     WHERE datname = current_database() AND query = 'LISTEN tidings'";
    while store.number(listeners).await > 0 {
        tokio::task::yield_now().await;
    }
}

/// A hint is not part of anybody's transaction, and needs no listener.
#[tokio::test]
async fn an_announcement_without_a_listener_is_no_error() {
    let store = postgres().await;
    store.announce(&[look_once()]).await.unwrap();
    assert_eq!(store.backend(), "postgres");
}

/// A caller's own transaction, with everything else that is in it.
#[tokio::test]
async fn a_job_enqueued_in_the_callers_transaction_shares_its_fate() {
    let store = postgres().await;
    store.sql("CREATE TABLE thing (id int)").await.unwrap();
    let mut client = store.place().postgres_client().await;
    for commits in [false, true] {
        let tx = client.transaction().await.unwrap();
        tx.execute("INSERT INTO thing VALUES (1)", &[]).await.unwrap();
        let given = job().unique("key", UniqueStates::UNFINISHED).once("key", "call");
        let inserted = tidings::store::postgres::insert_in(&tx, vec![given]).await.unwrap();
        assert!(matches!(inserted[..], [Inserted::New(_)]), "{inserted:?}");
        if commits {
            tx.commit().await.unwrap();
        } else {
            tx.rollback().await.unwrap();
        }
        let expected = i64::from(commits);
        assert_eq!(store.number("SELECT count(*) FROM thing").await, expected);
        assert_eq!(store.number("SELECT count(*) FROM tidings.job").await, expected);
        assert_eq!(store.number("SELECT count(*) FROM tidings.job_key").await, 2 * expected);
    }
    assert_eq!(store.take(10).await[0].state.name(), StateName::Running);
}

/// DB14: somebody's long transaction makes nothing wait.
#[tokio::test]
async fn a_long_transaction_of_somebody_else_stops_nobody() {
    let store = postgres().await;
    let long = store.place().postgres_client().await;
    long.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM tidings.job")
        .await
        .unwrap();
    for _ in 0..20 {
        let running = store.running(50).await;
        store.save_all(running.iter().map(|job| ended(job, Outcome::Accepted)).collect()).await;
    }
    assert_eq!(store.number("SELECT count(*) FROM tidings.finished_job").await, 1_000);
}
