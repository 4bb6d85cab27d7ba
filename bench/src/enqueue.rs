//! How many jobs a second are accepted durably, with nobody carrying them out.

use crate::kind::{Counter, Nothing, builder};
use crate::rate;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

const CALLERS: usize = 64;
const BATCH: usize = 1_000;
const BATCH_CALLERS: usize = 4;

/// One job a call, 64 callers at once.
pub(crate) async fn single(address: &str, jobs: usize) {
    let tidings = builder(&Counter::until(0), 1).open(address).await.unwrap();
    let next = Arc::new(AtomicUsize::new(0));
    let started = Instant::now();
    let callers = (0..CALLERS).map(|_| {
        let (tidings, next) = (tidings.clone(), Arc::clone(&next));
        tokio::spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= jobs {
                    return;
                }
                tidings.enqueue(Nothing { number }).await.unwrap();
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }
    println!("  enqueue, single, {CALLERS} callers: {} ({jobs} jobs)", rate(jobs, started.elapsed()));
}

/// A thousand jobs a call, 4 callers at once.
pub(crate) async fn batches(address: &str, jobs: usize) {
    let tidings = builder(&Counter::until(0), 1).open(address).await.unwrap();
    let next = Arc::new(AtomicUsize::new(0));
    let started = Instant::now();
    let callers = (0..BATCH_CALLERS).map(|_| {
        let (tidings, next) = (tidings.clone(), Arc::clone(&next));
        tokio::spawn(async move {
            loop {
                let first = next.fetch_add(BATCH, Ordering::Relaxed);
                if first >= jobs {
                    return;
                }
                let batch = (first..first + BATCH).map(|number| Nothing { number });
                tidings.enqueue_all::<Nothing>(batch).await.unwrap();
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }
    println!(
        "  enqueue, batches of {BATCH}, {BATCH_CALLERS} callers: {} ({jobs} jobs)",
        rate(jobs, started.elapsed())
    );
}
