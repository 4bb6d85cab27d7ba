//! The one clock is the database's. Hosts with skewed clocks agree, because none
//! of them asks its own.
//!
//! A process reads the database's clock once a second and goes on by its own
//! monotonic clock in between; between two hosts there is at most a round trip.
//! Tests hold a [`HandClock`] and turn it themselves.

use crate::store::{Store, StoreError};
use std::sync::Weak;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};
use tidings_core::time::{Millis, Time};

/// What time it is.
pub trait Clock: Send + Sync + 'static {
    /// Now.
    fn now(&self) -> Time;
}

/// The database's clock, as this process knows it.
#[derive(Debug)]
pub struct DatabaseClock {
    boot: Instant,
    /// What the database's clock said when `boot` was, in milliseconds.
    at_boot_ms: AtomicI64,
}

impl DatabaseClock {
    /// Reads the database's clock for the first time.
    ///
    /// # Errors
    /// When the database cannot be asked.
    pub async fn start(store: &dyn Store) -> Result<DatabaseClock, StoreError> {
        let clock = DatabaseClock { boot: Instant::now(), at_boot_ms: AtomicI64::new(0) };
        clock.sync(store).await?;
        Ok(clock)
    }

    /// Reads the database's clock again.
    ///
    /// # Errors
    /// When the database cannot be asked; the clock goes on as it was.
    pub async fn sync(&self, store: &dyn Store) -> Result<(), StoreError> {
        let before = self.elapsed_ms();
        let now = store.now().await?;
        let middle = before + (self.elapsed_ms() - before) / 2;
        self.at_boot_ms.store(now.0 - middle, Ordering::Relaxed);
        Ok(())
    }

    fn elapsed_ms(&self) -> i64 {
        i64::try_from(self.boot.elapsed().as_millis()).unwrap_or(i64::MAX)
    }
}

impl Clock for DatabaseClock {
    fn now(&self) -> Time {
        Time(self.at_boot_ms.load(Ordering::Relaxed).saturating_add(self.elapsed_ms()))
    }
}

/// How often the database's clock is read.
const READ_EVERY: Duration = Duration::from_secs(1);

/// Reads the database's clock for as long as somebody uses it.
pub(crate) async fn keep(clock: Weak<DatabaseClock>, store: Weak<dyn Store>) {
    loop {
        tokio::time::sleep(READ_EVERY).await;
        let (Some(clock), Some(store)) = (clock.upgrade(), store.upgrade()) else { return };
        if let Err(problem) = clock.sync(&*store).await {
            tracing::debug!(%problem, "the database's clock was not read; the last reading goes on");
        }
    }
}

/// A clock that a test holds in its hand.
#[derive(Debug, Default)]
pub struct HandClock(AtomicI64);

impl HandClock {
    /// A clock that shows `at`.
    pub fn at(at: Time) -> HandClock {
        HandClock(AtomicI64::new(at.0))
    }

    /// Turns it forward, or back by a negative span.
    pub fn advance(&self, by: Millis) {
        self.0.fetch_add(by.0, Ordering::Relaxed);
    }

    /// Sets it.
    pub fn set(&self, at: Time) {
        self.0.store(at.0, Ordering::Relaxed);
    }
}

impl Clock for HandClock {
    fn now(&self) -> Time {
        Time(self.0.load(Ordering::Relaxed))
    }
}
