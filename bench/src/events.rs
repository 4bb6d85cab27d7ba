//! How many events a second are recorded durably and fanned out, and how long it takes from
//! the recording of an event to the start of its job.

use crate::rate;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tidings::core::event::{EventType, Exposure, TypeName};
use tidings::core::route::Subscription;
use tidings::{Attempt, Builder, Declaration, FannedOut, Kind, Outcome, Record, Tidings, testing};

const CALLERS: usize = 64;
const BATCH: usize = 1_000;
const BATCH_CALLERS: usize = 4;
/// Clients of the SQL function.
const SQL_CLIENTS: [usize; 2] = [1, 32];
const SUBSCRIPTIONS: [usize; 2] = [1, 10];
const PER_SECOND: u64 = 200;
const SECONDS: u64 = 10;

/// What events become while the relay alone is measured: nobody carries it out.
#[derive(Serialize, Deserialize)]
struct Left {}

impl Kind for Left {
    const DECLARATION: Declaration = Declaration::new("bench.left").queue("bench-left");
}

/// What an event becomes whose way to its job is timed.
#[derive(Serialize, Deserialize)]
struct Timed {
    data: u64,
}

impl Kind for Timed {
    const DECLARATION: Declaration = Declaration::new("bench.timed-job").queue("bench-timed");
}

#[derive(Clone)]
struct Clock {
    boot: Instant,
    taken: Arc<Mutex<Vec<Duration>>>,
}

/// The data of a timed event is when it was recorded, in microseconds since `boot`.
async fn note(clock: Clock, attempt: Attempt<Timed>) -> Outcome {
    let taken = clock.boot.elapsed().saturating_sub(Duration::from_micros(attempt.args.data));
    clock.taken.lock().unwrap().push(taken);
    Outcome::Accepted
}

async fn leave((): (), _: Attempt<Left>) -> Outcome {
    Outcome::Accepted
}

async fn open(builder: Builder, address: &str) -> Tidings {
    let declared = |name| EventType {
        name: TypeName::new(name).unwrap(),
        description: String::new(),
        exposure: Exposure::Internal,
    };
    let types = ["bench.recorded", "bench.few", "bench.many", "bench.timed"].map(declared);
    types.into_iter().fold(builder, Builder::event_type).open(address).await.unwrap()
}

pub(crate) async fn all(address: &str, events: usize) {
    let tidings = open(Tidings::builder().kind((), leave), address).await;
    single(&tidings, events).await;
    batches(&tidings, events).await;
    if address.starts_with("postgres") {
        for clients in SQL_CLIENTS {
            from_sql(address, clients, events / 10).await;
        }
    }
    testing::relay(&tidings).await.unwrap();
    for (name, subscriptions) in ["bench.few", "bench.many"].into_iter().zip(SUBSCRIPTIONS) {
        fan_out(&tidings, name, subscriptions, events / 4).await;
    }
    to_the_first_job(address).await;
}

/// One event a call, 64 callers at once.
async fn single(tidings: &Tidings, events: usize) {
    let next = Arc::new(AtomicUsize::new(0));
    let started = Instant::now();
    let callers = (0..CALLERS).map(|_| {
        let (tidings, next) = (tidings.clone(), Arc::clone(&next));
        tokio::spawn(async move {
            while next.fetch_add(1, Ordering::Relaxed) < events {
                tidings.record(Record::json("bench.recorded", "1").subject("bench/1")).await.unwrap();
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }
    println!("  record, single, {CALLERS} callers: {} ({events} events)", rate(events, started.elapsed()));
}

/// A thousand events a call, 4 callers at once.
async fn batches(tidings: &Tidings, events: usize) {
    let next = Arc::new(AtomicUsize::new(0));
    let started = Instant::now();
    let callers = (0..BATCH_CALLERS).map(|_| {
        let (tidings, next) = (tidings.clone(), Arc::clone(&next));
        tokio::spawn(async move {
            while next.fetch_add(BATCH, Ordering::Relaxed) < events {
                let records = (0..BATCH).map(|_| Record::json("bench.recorded", "1").subject("bench/1"));
                tidings.record_all(records.collect()).await.unwrap();
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }
    let rate = rate(events, started.elapsed());
    println!("  record, batches of {BATCH}, {BATCH_CALLERS} callers: {rate} ({events} events)");
}

/// `tidings.record` in SQL, one transaction an event.
async fn from_sql(address: &str, clients: usize, events: usize) {
    let mut connections = Vec::new();
    for _ in 0..clients {
        let (client, connection) = tokio_postgres::connect(address, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        let text = "SELECT tidings.record('bench.recorded', 'bench/1', '1')";
        let statement = client.prepare(text).await.unwrap();
        connections.push((client, statement));
    }
    let next = Arc::new(AtomicUsize::new(0));
    let started = Instant::now();
    let callers = connections.into_iter().map(|(client, statement)| {
        let next = Arc::clone(&next);
        tokio::spawn(async move {
            while next.fetch_add(1, Ordering::Relaxed) < events {
                client.execute(&statement, &[]).await.unwrap();
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }
    println!("  record in SQL, {clients} clients: {} ({events} events)", rate(events, started.elapsed()));
}

/// One relay, events that wait already, each subscription makes one job of each.
async fn fan_out(tidings: &Tidings, type_name: &str, subscriptions: usize, events: usize) {
    let subscription =
        |n| Subscription::to_job(&format!("{type_name}.{n}"), type_name, "bench.left").unwrap();
    let subscriptions: Vec<Subscription> = (0..subscriptions).map(subscription).collect();
    tidings.declare(&[], &subscriptions).await.unwrap();
    for _ in (0..events).step_by(BATCH) {
        let records = (0..BATCH).map(|_| Record::json(type_name, "1").subject("bench/1"));
        tidings.record_all(records.collect()).await.unwrap();
    }
    let started = Instant::now();
    let fanned_out = testing::relay(tidings).await.unwrap();
    let (rate, made) = (rate(fanned_out, started.elapsed()), subscriptions.len());
    println!("  relay, {made} subscription(s): {rate} ({fanned_out} events, {made} job(s) each)");
    for subscription in subscriptions {
        tidings.unsubscribe(&subscription.name).await.unwrap();
    }
}

/// From the call of `record` to the start of the handler, through relay and claim.
async fn to_the_first_job(address: &str) {
    let clock = Clock { boot: Instant::now(), taken: Arc::default() };
    let builder = Tidings::builder().kind(clock.clone(), note).workers("bench-timed", 50);
    let tidings = open(builder, address).await;
    let subscription = Subscription::to_job("bench.timed", "bench.timed", "bench.timed-job").unwrap();
    tidings.declare(&[], &[subscription]).await.unwrap();
    let workers = tidings.work().await.unwrap();
    let mut tick = tokio::time::interval(Duration::from_micros(1_000_000 / PER_SECOND));
    let mut calls = Vec::new();
    for _ in 0..PER_SECOND * SECONDS {
        tick.tick().await;
        let tidings = tidings.clone();
        let at_us = u64::try_from(clock.boot.elapsed().as_micros()).unwrap();
        calls.push(tokio::spawn(async move {
            tidings.record(Record::json("bench.timed", at_us.to_string())).await.unwrap()
        }));
    }
    for call in calls {
        let id = call.await.unwrap().id;
        let FannedOut::Jobs(jobs) = tidings.await_fanout(id, Duration::from_secs(10)).await.unwrap() else {
            panic!("{id} was not fanned out in 10 s");
        };
        tidings.wait(jobs[0], Duration::from_secs(10)).await.unwrap();
    }
    workers.stop().await;
    let mut taken = clock.taken.lock().unwrap().clone();
    taken.sort();
    let at = |percent: usize| taken[(taken.len() - 1) * percent / 100].as_secs_f64() * 1e3;
    println!(
        "  record to start of its job at {PER_SECOND}/s: p50 {:.2} ms, p99 {:.2} ms, longest {:.2} ms ({} events)",
        at(50),
        at(99),
        at(100),
        taken.len()
    );
}
