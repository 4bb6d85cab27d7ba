//! The attempts of this process that are in flight, so that a cancel finds its
//! handler, and workers that are dropped take their handlers with them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tidings_core::id::JobId;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// What runs now.
#[derive(Default)]
pub(crate) struct InFlight(Mutex<Running>);

#[derive(Default)]
struct Running {
    /// By job and attempt: one whose lease is over may still be written down here
    /// while the next one runs.
    attempts: HashMap<(JobId, i64), RunningAttempt>,
    /// The workers are gone: nothing is started any more.
    closed: bool,
}

struct RunningAttempt {
    cancelled: Arc<Notify>,
    since: Instant,
    task: AbortHandle,
}

impl InFlight {
    /// Has `spawn` start an attempt, unless the workers are gone.
    pub(crate) fn start(&self, id: JobId, attempt: i64, spawn: impl FnOnce(Arc<Notify>) -> AbortHandle) {
        // Locked while it is spawned: an attempt that ends at once must find its entry.
        let mut running = self.lock();
        if running.closed {
            return;
        }
        let cancelled = Arc::new(Notify::new());
        let task = spawn(Arc::clone(&cancelled));
        running.attempts.insert((id, attempt), RunningAttempt { cancelled, since: Instant::now(), task });
    }

    /// An attempt has ended and was written.
    pub(crate) fn leave(&self, id: JobId, attempt: i64) {
        self.lock().attempts.remove(&(id, attempt));
    }

    /// The jobs that have run for at least `age`.
    pub(crate) fn older_than(&self, age: Duration) -> Vec<JobId> {
        let running = self.lock();
        let old = running.attempts.iter().filter(|(_, attempt)| attempt.since.elapsed() >= age);
        old.map(|((id, _), _)| *id).collect()
    }

    /// Stops the handler of an attempt, if it is here.
    pub(crate) fn cancel(&self, id: JobId, attempt: i64) {
        if let Some(attempt) = self.lock().attempts.get(&(id, attempt)) {
            attempt.cancelled.notify_one();
        }
    }

    /// Aborts what runs, and lets nothing start any more.
    pub(crate) fn close(&self) {
        let mut running = self.lock();
        running.closed = true;
        for attempt in running.attempts.values() {
            attempt.task.abort();
        }
    }

    /// A panic while it was held left a map that is as good as before.
    fn lock(&self) -> MutexGuard<'_, Running> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
