//! Receipts: a caller may stand and wait for a job, for a time.
//!
//! Waiters are woken by the worker that ends the job, here or in another process;
//! a slow poll finds what a lost wake-up did not tell. At most [`WAITERS_MAX`] wait
//! at once: waiting is a courtesy, and must not take the place of work.

use crate::enqueue::Receipt;
use crate::store::{Store, StoreError};
use crate::wake::Wakes;
use std::sync::Arc;
use std::time::Duration;
use tidings_core::id::JobId;
use tidings_core::job::{Job, State};
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;

/// Callers that may wait at once; the next gets its receipt at once.
pub const WAITERS_MAX: usize = 64;
const POLL: Duration = Duration::from_secs(1);

/// What a wait came to.
#[derive(Clone, Debug)]
pub enum Waited {
    /// The job has finished, or is held.
    Settled(Box<Job>),
    /// Not yet: its state can be read by this receipt.
    Receipt(Receipt),
}

pub(crate) struct Waits {
    places: Semaphore,
}

impl Waits {
    pub(crate) fn new() -> Waits {
        Waits { places: Semaphore::new(WAITERS_MAX) }
    }

    /// `None`: there is no such job.
    pub(crate) async fn wait(
        &self,
        store: &dyn Store,
        wakes: &Wakes,
        id: JobId,
        at_most: Duration,
    ) -> Result<Option<Waited>, StoreError> {
        let receipt = Waited::Receipt(Receipt { id, existing: true });
        let Ok(_place) = self.places.try_acquire() else {
            // The job must exist all the same: a receipt for nothing is a lie.
            return Ok(look(store, id).await?.map(|look| look.unwrap_or(receipt)));
        };
        // Registered before the first look, so that nothing falls between.
        let waiting = Waiting { wakes, id, signal: wakes.wait_for(id) };
        // A wait beyond what the clock can say is one without end.
        let deadline = Instant::now().checked_add(at_most);
        let look = until_settled(store, id, &waiting.signal, deadline).await?;
        Ok(look.map(|look| look.unwrap_or(receipt)))
    }
}

/// A registered waiter. Dropped, also with the future of its caller, it is forgotten.
struct Waiting<'a> {
    wakes: &'a Wakes,
    id: JobId,
    signal: Arc<Notify>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.wakes.forget(self.id, &self.signal);
    }
}

async fn until_settled(
    store: &dyn Store,
    id: JobId,
    signal: &Notify,
    deadline: Option<Instant>,
) -> Result<Look, StoreError> {
    loop {
        let look = look(store, id).await?;
        let now = Instant::now();
        if !matches!(look, Some(None)) || deadline.is_some_and(|deadline| now >= deadline) {
            return Ok(look);
        }
        let next_look = deadline.into_iter().fold(now + POLL, Instant::min);
        tokio::select! {
            () = signal.notified() => {}
            () = tokio::time::sleep_until(next_look) => {}
        }
    }
}

/// `None`: there is no such job. `Some(None)`: it has not settled yet.
type Look = Option<Option<Waited>>;

async fn look(store: &dyn Store, id: JobId) -> Result<Look, StoreError> {
    let stored = store.load(&[id]).await?.into_iter().next().flatten();
    Ok(stored.map(|stored| {
        let over = stored.job.state.finished_at().is_some() || matches!(stored.job.state, State::Held);
        over.then(|| Waited::Settled(Box::new(stored.job)))
    }))
}
