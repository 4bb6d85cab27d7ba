//! The one clock is the database's. Hosts with skewed clocks agree, because none
//! of them asks its own.
//!
//! A process reads the database's clock once a second and goes on by its own
//! monotonic clock in between; between two hosts there is at most a round trip.
//! Tests hold a [`HandClock`] and turn it themselves.

use crate::store::{Store, StoreError};
use std::sync::Weak;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
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
    /// How far that may be off, and when it was read, in milliseconds since `boot`.
    off_by: Mutex<(i64, i64)>,
}

/// How much less a reading is worth for every second of its age, in milliseconds: more than
/// a monotonic clock drifts, so that a clock that was set is followed soon.
const DRIFT_MS_PER_S: i64 = 1;

impl DatabaseClock {
    /// Reads the database's clock for the first time.
    ///
    /// # Errors
    /// When the database cannot be asked.
    pub async fn start(store: &dyn Store) -> Result<DatabaseClock, StoreError> {
        let clock = DatabaseClock {
            boot: Instant::now(),
            at_boot_ms: AtomicI64::new(0),
            off_by: Mutex::new((i64::MAX, 0)),
        };
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
        self.read(now, before, self.elapsed_ms());
        Ok(())
    }

    /// Takes a reading that was asked for and answered at these times since `boot`. The
    /// database looked at its clock somewhere in between: one that waited for a
    /// connection for seconds says less than the one before it, and is left out.
    fn read(&self, now: Time, asked_ms: i64, answered_ms: i64) {
        let half = (answered_ms - asked_ms) / 2;
        let mut off_by = self.off_by.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, read_at_ms) = *off_by;
        let age_s = (answered_ms - read_at_ms) / 1_000;
        if half <= last.saturating_add(age_s.saturating_mul(DRIFT_MS_PER_S)) {
            *off_by = (half, answered_ms);
            self.at_boot_ms.store(now.0 - asked_ms - half, Ordering::Relaxed);
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_that_waited_long_does_not_move_the_clock_and_a_clock_that_was_set_is_followed() {
        let off_by = Mutex::new((i64::MAX, 0));
        let clock = DatabaseClock { boot: Instant::now(), at_boot_ms: AtomicI64::new(0), off_by };
        let at_boot = || clock.at_boot_ms.load(Ordering::Relaxed);
        clock.read(Time(1_000_005), 0, 10);
        assert_eq!(at_boot(), 1_000_000);
        // Five seconds in the queue for a connection, then a look at the same clock.
        clock.read(Time(1_006_000), 1_000, 6_000);
        assert_eq!(at_boot(), 1_000_000, "2.5 s off");
        clock.read(Time(1_007_004), 7_000, 7_008);
        assert_eq!(at_boot(), 1_000_000);
        // The database's clock was set back by an hour.
        clock.read(Time(1_008_002 - 3_600_000), 8_000, 8_004);
        assert_eq!(at_boot(), 1_000_000 - 3_600_000);
    }
}
