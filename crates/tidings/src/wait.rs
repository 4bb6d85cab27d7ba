//! Receipts: a caller may stand and wait for a job or an event, for a time.
//!
//! Waiters are woken by whoever settles it, here or in another process; a slow poll
//! finds what a lost wake-up did not tell. At most [`WAITERS_MAX`] wait at once:
//! waiting is a courtesy, and must not take the place of work.

use crate::enqueue::Receipt;
use crate::wake::Wakes;
use std::sync::Arc;
use std::time::Duration;
use tidings_core::job::Job;
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;
use uuid::Uuid;

/// Callers that may wait at once; the next gets its receipt at once.
pub const WAITERS_MAX: usize = 64;
const POLL: Duration = Duration::from_secs(1);

/// What a wait for a job came to.
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

    /// Looks until `look` finds something, for `at_most`; `None`: it did not. Whoever
    /// finds no place looks once: a receipt for nothing would be a lie.
    pub(crate) async fn until<T, E, Looking>(
        &self,
        wakes: &Wakes,
        id: Uuid,
        at_most: Duration,
        look: impl Fn() -> Looking,
    ) -> Result<Option<T>, E>
    where
        Looking: Future<Output = Result<Option<T>, E>>,
    {
        let Ok(_place) = self.places.try_acquire() else { return look().await };
        // Registered before the first look, so that nothing falls between.
        let waiting = Waiting { wakes, id, signal: wakes.wait_for(id) };
        // A wait beyond what the clock can say is one without end.
        let deadline = Instant::now().checked_add(at_most);
        loop {
            let found = look().await?;
            let now = Instant::now();
            if found.is_some() || deadline.is_some_and(|deadline| now >= deadline) {
                return Ok(found);
            }
            let next_look = deadline.into_iter().fold(now + POLL, Instant::min);
            tokio::select! {
                () = waiting.signal.notified() => {}
                () = tokio::time::sleep_until(next_look) => {}
            }
        }
    }
}

/// A registered waiter. Dropped, also with the future of its caller, it is forgotten.
struct Waiting<'a> {
    wakes: &'a Wakes,
    id: Uuid,
    signal: Arc<Notify>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.wakes.forget(self.id, &self.signal);
    }
}
