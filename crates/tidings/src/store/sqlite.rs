//! The SQLite store: one writing thread that commits many callers at once, and
//! a few readers beside it.
//!
//! WAL, `synchronous = FULL` (NORMAL may lose the last commits on power loss, and
//! a sent request would be unsent after the reboot), every writing transaction
//! `BEGIN IMMEDIATE` (a read that turns into a write fails at once with
//! SQLITE_BUSY_SNAPSHOT, whatever the timeout). Local disks only.
//!
//! Absent on purpose: wake-ups to other processes. They poll.

mod event_store;
mod events;
mod migrate;
mod verbs;
mod writer;

use super::{
    ApiKey, Change, Inserted, JobFilter, Logged, NewJob, PausedQueue, Prune, Saved, Store, StoreError,
    Stored, Take, Taken, TermsOfKinds, Wake, sql,
};
use async_trait::async_trait;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tidings_core::fact::Act;
use tidings_core::id::JobId;
use tidings_core::job::Job;
use tidings_core::time::Time;
use writer::Writer;

pub use events::{declared as declared_in, record as record_in};
pub use verbs::insert as insert_in;

/// The first version without the WAL-reset fault, which can lose committed writes.
const SQLITE_VERSION_MIN: (i32, &str) = (3_051_003, "3.51.3");
const READERS: usize = 2;
/// How long to wait for another process's transaction.
const BUSY_MS: u64 = 10_000;

/// The version of the SQLite library that is linked.
pub fn library_version() -> &'static str {
    rusqlite::version()
}

/// A database file.
pub struct SqliteStore {
    writer: Writer,
    readers: Arc<Vec<Mutex<Connection>>>,
    next_reader: AtomicUsize,
}

impl SqliteStore {
    /// Opens the file at `path`, making it if it is not there.
    ///
    /// # Errors
    /// When it cannot be opened, is newer than the program, or the SQLite library is a faulty version.
    pub async fn open(path: impl AsRef<Path>, migrate: bool) -> Result<SqliteStore, StoreError> {
        let path = path.as_ref().to_path_buf();
        if path.as_os_str().is_empty()
            || path == Path::new(":memory:")
            || path.to_string_lossy().starts_with("file:")
        {
            // Each connection would have a database of its own.
            return Err(StoreError::BadAddress(format!(
                "`sqlite:{}` is no file on a disk: write `sqlite:PATH`, for example sqlite:./tidings.db",
                path.display()
            )));
        }
        let open = move || Self::open_blocking(&path, migrate).map_err(|error| not_opened(&path, error));
        tokio::task::spawn_blocking(open).await.map_err(stopped)?
    }

    fn open_blocking(path: &Path, migrate: bool) -> Result<SqliteStore, StoreError> {
        assert_version(rusqlite::version_number(), rusqlite::version())?;
        let mut connection = connect(path, OpenFlags::default())?;
        migrate::run(&mut connection, sql::SQLITE_MIGRATIONS, migrate)?;
        let readers = (0..READERS)
            .map(|_| connect(path, OpenFlags::default()).map(Mutex::new))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(SqliteStore {
            writer: Writer::start(connection)?,
            readers: Arc::new(readers),
            next_reader: AtomicUsize::new(0),
        })
    }

    /// Runs `query` on a reader, off the async threads.
    async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let readers = Arc::clone(&self.readers);
        let turn = self.next_reader.fetch_add(1, Ordering::Relaxed) % READERS;
        tokio::task::spawn_blocking(move || {
            // A panic in an earlier query left a connection that only reads: it is as good as before.
            let reader = readers[turn].lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            // One snapshot: a job that moves between the tables meanwhile is seen once.
            let snapshot = reader.unchecked_transaction().map_err(error)?;
            query(&snapshot)
        })
        .await
        .map_err(stopped)?
    }
}

/// Which file it was, and what can be done about it.
fn not_opened(path: &Path, problem: StoreError) -> StoreError {
    let path = path.display();
    match problem {
        StoreError::Unavailable(what) => StoreError::Unavailable(format!(
            "{path}: {what}; the file and its folder must be there and be writable for this user"
        )),
        StoreError::DatabaseDamaged(what) => StoreError::DatabaseDamaged(format!("{path}: {what}")),
        other => other,
    }
}

/// Opens one connection as all of ours are set.
fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, StoreError> {
    let connection = Connection::open_with_flags(path, flags).map_err(error)?;
    connection.busy_timeout(Duration::from_millis(BUSY_MS)).map_err(error)?;
    connection
        .execute_batch(
            "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; \
             PRAGMA mmap_size = 0; PRAGMA cache_size = -16000; PRAGMA temp_store = MEMORY;",
        )
        .map_err(error)?;
    connection.set_prepared_statement_cache_capacity(64);
    use_wal(&connection)?;
    Ok(connection)
}

/// Between two tries to change the journal.
const WAL_PAUSE: Duration = Duration::from_millis(5);

/// Several who open a new file at once refuse each other here at once: the busy
/// timeout does not cover the change of the journal, so it is waited for by hand.
#[expect(
    clippy::disallowed_methods,
    reason = "a file is opened on a thread of its own, and nothing else can wait for it"
)]
fn use_wal(connection: &Connection) -> Result<(), StoreError> {
    let give_up = Instant::now() + Duration::from_millis(BUSY_MS);
    loop {
        let mode =
            connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0));
        match mode {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(mode) => {
                return Err(StoreError::Refused(format!(
                    "the database file cannot be used in WAL mode (it stays in mode `{mode}`): \
                     put it on a local disk"
                )));
            }
            Err(busy)
                if busy.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy)
                    && Instant::now() < give_up =>
            {
                std::thread::sleep(WAL_PAUSE);
            }
            Err(failed) => return Err(error(failed)),
        }
    }
}

fn assert_version(number: i32, found: &str) -> Result<(), StoreError> {
    let (least, needed) = SQLITE_VERSION_MIN;
    if number < least {
        return Err(StoreError::SqliteTooOld { found: found.to_owned(), needed });
    }
    Ok(())
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that map_err takes")]
fn stopped(error: tokio::task::JoinError) -> StoreError {
    StoreError::Unavailable(format!("a database task stopped: {error}"))
}

/// What an error of the library means for the caller.
#[expect(clippy::needless_pass_by_value, reason = "the shape that map_err takes")]
pub(super) fn error(error: rusqlite::Error) -> StoreError {
    use rusqlite::ErrorCode as Code;
    let text = error.to_string();
    match error.sqlite_error_code() {
        Some(
            Code::DatabaseBusy
            | Code::DatabaseLocked
            | Code::DiskFull
            | Code::ReadOnly
            | Code::SystemIoFailure
            | Code::CannotOpen
            | Code::OutOfMemory
            | Code::OperationInterrupted,
        ) => StoreError::Unavailable(text),
        Some(Code::DatabaseCorrupt | Code::NotADatabase) => StoreError::DatabaseDamaged(text),
        _ => StoreError::Refused(text),
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn now(&self) -> Result<Time, StoreError> {
        self.read(verbs::now).await
    }

    async fn insert(&self, jobs: Vec<NewJob>) -> Result<Vec<Inserted>, StoreError> {
        self.writer.write(move |tx| verbs::insert(tx, jobs)).await
    }

    async fn load(&self, ids: &[JobId]) -> Result<Vec<Option<Stored>>, StoreError> {
        let ids = ids.to_vec();
        self.read(move |connection| ids.iter().map(|id| verbs::load(connection, *id)).collect()).await
    }

    async fn take_due(&self, take: &Take) -> Result<Taken, StoreError> {
        let take = take.clone();
        self.writer.write(move |tx| verbs::take_due(tx, &take)).await
    }

    async fn sweep(
        &self,
        now: Time,
        queues: &[String],
        limit: usize,
        terms: &Arc<TermsOfKinds>,
    ) -> Result<Vec<Change>, StoreError> {
        let (queues, terms) = (queues.to_vec(), Arc::clone(terms));
        self.writer.write(move |tx| verbs::sweep(tx, now, &queues, limit, &terms)).await
    }

    async fn save(&self, changes: Vec<Change>) -> Result<Vec<Saved>, StoreError> {
        self.writer.write(move |tx| verbs::save(tx, &changes)).await
    }

    async fn history(&self, ids: &[JobId]) -> Result<Vec<Vec<Logged>>, StoreError> {
        let ids = ids.to_vec();
        self.read(move |connection| ids.iter().map(|id| verbs::history(connection, *id)).collect()).await
    }

    async fn list(&self, filter: &JobFilter) -> Result<Vec<Job>, StoreError> {
        let filter = filter.clone();
        self.read(move |connection| verbs::list(connection, &filter)).await
    }

    async fn pause(&self, queue: &str, at: Time, act: &Act) -> Result<(), StoreError> {
        let (queue, act) = (queue.to_owned(), act.clone());
        self.writer.write(move |tx| verbs::pause(tx, &queue, at, &act)).await
    }

    async fn resume(&self, queue: &str) -> Result<(), StoreError> {
        let queue = queue.to_owned();
        self.writer.write(move |tx| verbs::resume(tx, &queue)).await
    }

    async fn paused(&self) -> Result<Vec<PausedQueue>, StoreError> {
        self.read(verbs::paused).await
    }

    async fn prune(&self, what: Prune, limit: usize) -> Result<u64, StoreError> {
        self.writer.write(move |tx| verbs::prune(tx, what, limit)).await
    }

    async fn keep_policy(&self, name: &str, version: u32, body: &str) -> Result<String, StoreError> {
        let (name, body) = (name.to_owned(), body.to_owned());
        self.writer.write(move |tx| verbs::keep_policy(tx, &name, version, &body)).await
    }

    async fn add_api_key(&self, key: &ApiKey, at: Time) -> Result<(), StoreError> {
        let key = key.clone();
        self.writer.write(move |tx| verbs::add_api_key(tx, &key, at)).await
    }

    async fn api_keys(&self) -> Result<Vec<ApiKey>, StoreError> {
        self.read(verbs::api_keys).await
    }

    async fn announce(&self, _wakes: &[Wake]) -> Result<(), StoreError> {
        Ok(())
    }

    fn listen(&self) -> Option<tokio::sync::mpsc::Receiver<Wake>> {
        None
    }

    fn pool_size(&self) -> Option<usize> {
        None
    }

    fn backend(&self) -> &'static str {
        "sqlite"
    }

    async fn keep_house(&self, _now: Time) -> Result<(), StoreError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_statement_prepares_on_sqlite() {
        let directory = tempfile::tempdir().unwrap();
        let mut connection = connect(&directory.path().join("t.db"), OpenFlags::default()).unwrap();
        migrate::run(&mut connection, sql::SQLITE_MIGRATIONS, true).unwrap();
        for (name, text) in sql::sqlite::all() {
            connection.prepare(text).unwrap_or_else(|error| panic!("{name}: {error}\n{text}"));
        }
    }

    #[test]
    fn a_sqlite_that_can_lose_committed_writes_is_refused() {
        assert!(assert_version(3_051_002, "3.51.2").unwrap_err().to_string().contains("3.51.3"));
        assert_version(rusqlite::version_number(), rusqlite::version()).unwrap();
    }
}
