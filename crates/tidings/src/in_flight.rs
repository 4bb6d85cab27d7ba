//! The attempts of this process that are in flight, so that a cancel finds its handler.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tidings_core::id::JobId;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Which job, how to stop its handler, since when.
#[derive(Default)]
pub(crate) struct InFlight(Mutex<HashMap<JobId, (Arc<Notify>, Instant)>>);

impl InFlight {
    pub(crate) fn enter(&self, id: JobId) -> Arc<Notify> {
        let cancelled = Arc::new(Notify::new());
        self.lock().insert(id, (Arc::clone(&cancelled), Instant::now()));
        cancelled
    }

    pub(crate) fn leave(&self, id: JobId) {
        self.lock().remove(&id);
    }

    /// The jobs that have run for at least `age`.
    pub(crate) fn older_than(&self, age: Duration) -> Vec<JobId> {
        self.lock().iter().filter(|(_, (_, since))| since.elapsed() >= age).map(|(id, _)| *id).collect()
    }

    /// Stops the handler of a job, if it is here.
    pub(crate) fn cancel(&self, id: JobId) {
        if let Some((cancelled, _)) = self.lock().get(&id) {
            cancelled.notify_one();
        }
    }

    /// A panic while it was held left a map that is as good as before.
    fn lock(&self) -> MutexGuard<'_, HashMap<JobId, (Arc<Notify>, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
