//! How long it takes from the call of `enqueue` to the start of the handler.

use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tidings::{Attempt, Declaration, Kind, Outcome, Tidings};

const PER_SECOND: u64 = 200;
const SECONDS: u64 = 10;

#[derive(Serialize, Deserialize)]
struct Timed {
    called_at_us: u64,
}

impl Kind for Timed {
    const DECLARATION: Declaration = Declaration::new("bench.timed").queue("bench");
}

#[derive(Clone)]
struct Clock {
    boot: Instant,
    taken: Arc<Mutex<Vec<Duration>>>,
}

async fn note(clock: Clock, attempt: Attempt<Timed>) -> Outcome {
    let taken = clock.boot.elapsed().saturating_sub(Duration::from_micros(attempt.args.called_at_us));
    clock.taken.lock().unwrap().push(taken);
    Outcome::Accepted
}

pub(crate) async fn at_200_a_second(address: &str) {
    let clock = Clock { boot: Instant::now(), taken: Arc::default() };
    let tidings =
        Tidings::builder().kind(clock.clone(), note).workers("bench", 50).open(address).await.unwrap();
    let workers = tidings.work().await.unwrap();
    let mut tick = tokio::time::interval(Duration::from_micros(1_000_000 / PER_SECOND));
    let mut calls = Vec::new();
    for _ in 0..PER_SECOND * SECONDS {
        tick.tick().await;
        let (tidings, called_at_us) = (tidings.clone(), microseconds(clock.boot));
        calls.push(tokio::spawn(async move { tidings.enqueue(Timed { called_at_us }).await.unwrap() }));
    }
    for call in calls {
        let receipt = call.await.unwrap();
        tidings.wait(receipt.id, Duration::from_secs(10)).await.unwrap();
    }
    workers.stop().await;
    let mut taken = clock.taken.lock().unwrap().clone();
    taken.sort();
    let at = |percent: usize| taken[(taken.len() - 1) * percent / 100].as_secs_f64() * 1e3;
    println!(
        "  enqueue to start at {PER_SECOND}/s: p50 {:.2} ms, p99 {:.2} ms, longest {:.2} ms ({} jobs)",
        at(50),
        at(99),
        at(100),
        taken.len()
    );
}

fn microseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX)
}
