//! A Postgres that stops, crashes, refuses to write, is replaced by its standby, or whose
//! answer is lost. Producers are told in words, the relay goes on without a restart, and
//! what was acknowledged is there, once.

use crate::fixture::{
    Index, Seen, all_jobs, declare, event, fanned_out, index_of_notes, keep, note, postgres, record, soon,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use testkit::forwarder::Forwarder;
use testkit::postgres::{Cluster, Durability};
use tidings::core::event::{Event, EventId};
use tidings::core::route::Subscription;
use tidings::store::StoreError;
use tidings::store::outbox::{Batch, FanOut, Known, Plan, Unplanned};
use tidings::{Attempt, Builder, Declaration, Kind, Outcome, RecordRefused, Tidings, Time, Waited, Workers};
use tokio::task::JoinHandle;

fn builder() -> Builder {
    Tidings::builder().kind(Seen::<Index>::default(), keep)
}

/// A program with workers and a relay, by the database's clock; each note becomes a job.
async fn program(address: &str) -> (Tidings, Workers) {
    let tidings = builder().open(address).await.unwrap();
    let each = Subscription::to_job("index", "note.*", "search.index").unwrap();
    declare(&tidings, &[each]).await;
    let workers = tidings.work().await.unwrap();
    (tidings, workers)
}

/// Somebody who records one event after the other, each until it is acknowledged.
struct Producer {
    stop: Arc<AtomicBool>,
    acknowledged: Arc<AtomicUsize>,
    refused: Arc<AtomicUsize>,
    task: JoinHandle<Vec<EventId>>,
}

impl Producer {
    fn start(tidings: &Tidings) -> Producer {
        let stop = Arc::new(AtomicBool::new(false));
        let (acknowledged, refused) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let work = {
            let (tidings, stop) = (tidings.clone(), Arc::clone(&stop));
            let (acknowledged, refused) = (Arc::clone(&acknowledged), Arc::clone(&refused));
            async move {
                let mut ids = Vec::new();
                while !stop.load(Ordering::SeqCst) {
                    let key = format!("change-{}", ids.len());
                    match tidings.record(note(ids.len()).key(key)).await {
                        Ok(receipt) => {
                            ids.push(receipt.id);
                            acknowledged.fetch_add(1, Ordering::SeqCst);
                        }
                        Err(problem) => {
                            assert_readable(&problem);
                            refused.fetch_add(1, Ordering::SeqCst);
                            tokio::time::sleep(Duration::from_millis(5)).await;
                        }
                    }
                }
                ids
            }
        };
        Producer { stop, acknowledged, refused, task: tokio::spawn(work) }
    }

    /// Until it was told that the database is away, and not only by the last trouble.
    async fn is_refused(&self) {
        let before = self.refused.load(Ordering::SeqCst);
        soon("the producer is refused", async {
            while self.refused.load(Ordering::SeqCst) == before {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }

    /// Until some more are acknowledged.
    async fn gets_on(&self) {
        let before = self.acknowledged.load(Ordering::SeqCst);
        soon("events are acknowledged", async {
            while self.acknowledged.load(Ordering::SeqCst) < before + 20 {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }

    async fn stop(self) -> Vec<EventId> {
        self.stop.store(true, Ordering::SeqCst);
        self.task.await.unwrap()
    }
}

fn assert_readable(problem: &RecordRefused) {
    let RecordRefused::Store(store) = problem else { panic!("{problem}") };
    assert!(matches!(store, StoreError::Unavailable(_)), "{store}");
    let text = problem.to_string();
    assert!(text.starts_with("the database is not available: ") && text.len() > 40, "{text}");
}

/// Each that was acknowledged is fanned out into one job, and there is nothing else.
async fn assert_nothing_lost(tidings: &Tidings, ids: &[EventId]) {
    for id in ids {
        assert_eq!(fanned_out(tidings, *id).await.len(), 1);
    }
    let jobs = all_jobs::<Index>(tidings, "search.index").await;
    assert_eq!(jobs.len(), ids.len(), "once each");
    let of: BTreeSet<String> = jobs.into_iter().map(|index| index.id).collect();
    assert!(of == ids.iter().map(ToString::to_string).collect());
    assert!(ids.len() > 40, "{} events in all", ids.len());
}

/// DB2, LO8.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_stops_and_crashes_loses_no_event_and_the_relay_goes_on() {
    let cluster = Cluster::start(Durability::Durable);
    let (tidings, workers) = program(&cluster.url("postgres")).await;
    let producer = Producer::start(&tidings);
    producer.gets_on().await;
    cluster.stop_fast();
    producer.is_refused().await;
    cluster.start_again();
    producer.gets_on().await;
    cluster.stop_immediate();
    producer.is_refused().await;
    cluster.start_again();
    producer.gets_on().await;
    let ids = producer.stop().await;
    assert_nothing_lost(&tidings, &ids).await;
    workers.stop().await;
}

/// DB1: it still answers, and refuses to write.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_only_reads_refuses_events_in_words_and_takes_them_when_it_writes_again() {
    let cluster = Cluster::start(Durability::Fast);
    let (tidings, workers) = program(&cluster.url("postgres")).await;
    let producer = Producer::start(&tidings);
    producer.gets_on().await;
    cluster.set("default_transaction_read_only", "on").await;
    producer.is_refused().await;
    let problem = tidings.record(note(1)).await.unwrap_err();
    assert!(problem.to_string().contains("read-only transaction (25006)"), "{problem}");
    let problem = tidings::testing::relay(&tidings).await.unwrap_err();
    assert!(problem.is_transient(), "{problem}");
    tidings.backlog().await.expect("it can still be looked at");
    cluster.reset("default_transaction_read_only").await;
    producer.gets_on().await;
    let ids = producer.stop().await;
    assert_nothing_lost(&tidings, &ids).await;
    workers.stop().await;
}

/// DB1: one program by an address that moves, one by an address of two servers.
#[tokio::test(flavor = "multi_thread")]
async fn a_failover_to_the_standby_loses_nothing_that_was_acknowledged() {
    let primary = Cluster::start(Durability::Fast);
    let standby = primary.standby().await;
    let forwarder = Forwarder::to(primary.address()).await;
    let moving = format!("postgres://postgres@{}/postgres", forwarder.address());
    let (tidings, workers) = program(&moving).await;
    let both = format!(
        "postgres://postgres@{},{}/postgres?target_session_attrs=read-write",
        primary.address(),
        standby.address()
    );
    let other = builder().open(&both).await.unwrap();
    let producer = Producer::start(&tidings);
    producer.gets_on().await;

    primary.stop_immediate();
    producer.is_refused().await;
    assert_readable(&other.record(note(0)).await.unwrap_err());
    standby.promote().await;
    forwarder.point_at(standby.address());
    producer.gets_on().await;
    let late = soon("the other program finds the new primary", async {
        loop {
            if let Ok(receipt) = other.record(note(0).key("late")).await {
                return receipt.id;
            }
        }
    })
    .await;
    let mut ids = producer.stop().await;
    ids.push(late);
    assert_nothing_lost(&tidings, &ids).await;
    workers.stop().await;
}

/// The connection breaks between the commit and its answer: the caller cannot know, asks again
/// with the same key, and is told of the event that is there.
#[tokio::test(flavor = "multi_thread")]
async fn an_event_whose_commit_was_not_answered_is_found_by_its_key() {
    let place = postgres().await;
    let (server, name) = place.address.split_once('@').unwrap().1.split_once('/').unwrap();
    let forwarder = Forwarder::to(server.parse().unwrap()).await;
    let address = format!("postgres://postgres@{}/{name}", forwarder.address());
    let tidings = builder().open(&address).await.unwrap();
    declare(&tidings, &[index_of_notes()]).await;

    forwarder.lose_the_answer_to(b"COMMIT");
    let problem = tidings.record(note(1).key("change-1")).await.unwrap_err();
    assert_readable(&problem);
    assert_eq!(forwarder.lost(), 1);
    let again = tidings.record(note(1).key("change-1")).await.unwrap();
    assert!(again.existing, "it was committed");
    assert_eq!(event(&tidings, again.id).await.event.subject, "note/1");

    // The same in a transaction of the caller's own, whose change is there as well.
    let (mut app, connection) = tokio_postgres::connect(&address, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    app.batch_execute("CREATE TABLE note (id BIGINT)").await.unwrap();
    let tx = app.transaction().await.unwrap();
    tx.execute("INSERT INTO note VALUES (2)", &[]).await.unwrap();
    let receipt = tidings.record_in_postgres(&tx, note(2).key("change-2")).await.unwrap();
    forwarder.lose_the_answer_to(b"COMMIT");
    let unknown = StoreError::from(tidings::transaction::commit(tx).await.unwrap_err());
    assert!(matches!(unknown, StoreError::Unavailable(_)), "{unknown}");
    let again = tidings.record(note(2).key("change-2")).await.unwrap();
    assert_eq!((again.existing, again.id), (true, receipt.id));
    assert!(tidings.event(receipt.id).await.unwrap().is_some(), "or by the id that the receipt has");
}

/// Lets every event go.
struct Nothing;

impl FanOut for Nothing {
    fn plan(&self, events: &[Event], _: &Known, _: Time) -> Result<Vec<Plan>, Unplanned> {
        Ok(events.iter().map(|_| Plan { jobs: vec![], became: "[]".into() }).collect())
    }
}

/// A relay whose commit was not answered finds its events fanned out, and does it not again.
#[tokio::test(flavor = "multi_thread")]
async fn a_fan_out_whose_commit_was_not_answered_is_not_done_again() {
    let place = postgres().await;
    let (server, name) = place.address.split_once('@').unwrap().1.split_once('/').unwrap();
    let forwarder = Forwarder::to(server.parse().unwrap()).await;
    let tidings =
        builder().open(&format!("postgres://postgres@{}/{name}", forwarder.address())).await.unwrap();
    declare(&tidings, &[index_of_notes()]).await;
    let id = record(&tidings, note(1)).await;
    forwarder.lose_the_answer_to(b"COMMIT");
    let problem =
        tidings.store().fan_out(Batch::Due(200), tidings.now(), Arc::new(Nothing)).await.unwrap_err();
    assert!(matches!(problem, StoreError::Unavailable(_)), "{problem}");
    assert_eq!(tidings::testing::relay(&tidings).await.unwrap(), 0, "it was done");
    assert_eq!(event(&tidings, id).await.became.as_deref(), Some("[]"));
}

/// A job that takes its time.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct Slow {}

impl Kind for Slow {
    const DECLARATION: Declaration = Declaration::new("slow");
}

/// DB8: the server ends every transaction in which nothing happens; none is open while a
/// handler runs.
#[tokio::test(flavor = "multi_thread")]
async fn no_transaction_is_open_while_a_handler_runs() {
    let place = postgres().await;
    let (app, connection) = tokio_postgres::connect(&place.address, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let statement = "DO $$ BEGIN
        EXECUTE format('ALTER DATABASE %I SET idle_in_transaction_session_timeout = %L', current_database(), '2s');
    END $$";
    app.batch_execute(statement).await.unwrap();
    let app = Arc::new(app);
    let open = Arc::new(AtomicUsize::new(0));
    let handler = {
        let open = Arc::clone(&open);
        move |app: Arc<tokio_postgres::Client>, _: Attempt<Slow>| {
            let open = Arc::clone(&open);
            async move {
                let query = "SELECT count(*) FROM pg_stat_activity
                             WHERE datname = current_database() AND state LIKE 'idle in transaction%'
                                 AND state_change < now() - interval '100 ms'";
                for _ in 0..5 {
                    let found: i64 = app.query_one(query, &[]).await.unwrap().get(0);
                    open.fetch_add(usize::try_from(found).unwrap(), Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_millis(500)).await;
                }
                Outcome::Accepted
            }
        }
    };
    let tidings = Tidings::builder().kind(app, handler).open(&place.address).await.unwrap();
    let slow = Subscription::to_job("slow", "note.*", "slow").unwrap();
    declare(&tidings, &[slow]).await;
    let workers = tidings.work().await.unwrap();
    let id = record(&tidings, note(1)).await;
    let job = fanned_out(&tidings, id).await[0];
    let waited = tidings.wait(job, Duration::from_secs(20)).await.unwrap();
    assert!(matches!(waited, Waited::Settled(job) if job.state.name().as_str() == "completed"));
    assert_eq!(tidings.job(job).await.unwrap().unwrap().attempts.len(), 1);
    assert_eq!(open.load(Ordering::SeqCst), 0);
    workers.stop().await;
}
