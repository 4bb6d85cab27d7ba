//! The job that is measured: it does nothing, so that everything else shows.

use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tidings::{Attempt, Builder, Declaration, Kind, Outcome, Tidings};
use tokio::sync::Notify;

#[derive(Serialize, Deserialize)]
pub(crate) struct Nothing {
    pub(crate) number: usize,
}

impl Kind for Nothing {
    const DECLARATION: Declaration = Declaration::new("bench.nothing").queue("bench");
}

/// Counts attempts, and says when as many were made as were waited for.
#[derive(Clone)]
pub(crate) struct Counter(Arc<Inner>);

struct Inner {
    made: AtomicUsize,
    wanted: usize,
    reached: Notify,
}

impl Counter {
    pub(crate) fn until(wanted: usize) -> Counter {
        Counter(Arc::new(Inner { made: AtomicUsize::new(0), wanted, reached: Notify::new() }))
    }

    pub(crate) async fn reached(&self) {
        self.0.reached.notified().await;
    }
}

async fn count(counter: Counter, _: Attempt<Nothing>) -> Outcome {
    if counter.0.made.fetch_add(1, Ordering::Relaxed) + 1 == counter.0.wanted {
        counter.0.reached.notify_one();
    }
    Outcome::Accepted
}

pub(crate) fn builder(counter: &Counter, workers: usize) -> Builder {
    Tidings::builder().kind(counter.clone(), count).workers("bench", workers)
}
