//! A database for one test: a SQLite file that goes with it, and a clock in the hand.

use super::drain;
use crate::builder::Builder;
use crate::client::Tidings;
use crate::clock::HandClock;
use crate::random;
use crate::store::sqlite::SqliteStore;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidings_core::time::{Millis, Time};

/// A Tidings on a SQLite file of its own, by a clock that the test holds. Dropped, the
/// file is removed.
pub struct TestTidings {
    /// What time it is: it stands still until it is turned.
    pub clock: Arc<HandClock>,
    tidings: Tidings,
    file: PathBuf,
}

/// When a [`TestTidings`] begins: 2027-01-15T08:00:00Z.
pub const TEST_BEGINS: Time = Time(1_800_000_000_000);

/// Opens a Tidings for one test, with the event types and subscriptions of its builder.
///
/// # Panics
/// When a kind, declaration or setting cannot be, or no file can be made in the system's folder for such files.
pub async fn throw_away(builder: Builder) -> TestTidings {
    let name = format!("tidings-test-{}.db", random::worker_id());
    let file = std::env::temp_dir().join(name);
    let store = SqliteStore::open(&file, true).await;
    let store = store.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let clock = Arc::new(HandClock::at(TEST_BEGINS));
    let tidings = builder.declared_on(Arc::new(store), clock.clone()).await;
    let tidings = tidings.unwrap_or_else(|error| panic!("{error}"));
    TestTidings { clock, tidings, file }
}

impl std::ops::Deref for TestTidings {
    type Target = Tidings;

    fn deref(&self) -> &Tidings {
        &self.tidings
    }
}

impl TestTidings {
    /// Turns the clock forward and carries out what became due; how many attempts were made.
    ///
    /// # Panics
    /// When the database cannot be read or written.
    pub async fn drain_after(&self, span: Millis) -> usize {
        self.clock.advance(span);
        drain(self).await.unwrap_or_else(|error| panic!("{error}"))
    }

    /// The file, for a connection of the test's own.
    pub fn file(&self) -> &Path {
        &self.file
    }
}

impl Drop for TestTidings {
    fn drop(&mut self) {
        for end in ["", "-wal", "-shm"] {
            let mut name = self.file.clone().into_os_string();
            name.push(end);
            // What is left behind lies where the system cleans up.
            let _left = std::fs::remove_file(name);
        }
    }
}
