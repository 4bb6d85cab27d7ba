//! How many jobs a second are claimed, carried out and recorded with one fact each.

use crate::kind::{Counter, Nothing, builder};
use crate::rate;
use std::time::Instant;

const WORKERS: usize = 1_000;
const BATCH: usize = 1_000;

/// From the first claim until the last report is committed. Jobs that an earlier
/// measurement left are carried out first, uncounted.
pub(crate) async fn all(address: &str, jobs: usize) {
    let left = left_over(address).await;
    if left > 0 {
        let counter = Counter::until(left);
        let tidings = builder(&counter, WORKERS).open(address).await.unwrap();
        let workers = tidings.work().await.unwrap();
        counter.reached().await;
        workers.stop().await;
    }
    let counter = Counter::until(jobs);
    let tidings = builder(&counter, WORKERS).open(address).await.unwrap();
    for first in (0..jobs).step_by(BATCH) {
        let batch = (first..(first + BATCH).min(jobs)).map(|number| Nothing { number });
        tidings.enqueue_all::<Nothing>(batch).await.unwrap();
    }
    let started = Instant::now();
    let workers = tidings.work().await.unwrap();
    counter.reached().await;
    workers.stop().await;
    println!("  drain, {WORKERS} workers: {} ({jobs} jobs, one fact each)", rate(jobs, started.elapsed()));
}

async fn left_over(address: &str) -> usize {
    let tidings = builder(&Counter::until(0), 1).open(address).await.unwrap();
    let filter = tidings::store::JobFilter {
        state: Some(tidings::core::job::StateName::Pending),
        limit: 10_000_000,
        ..Default::default()
    };
    tidings.jobs(&filter).await.unwrap().len()
}
