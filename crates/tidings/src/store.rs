//! What a store promises, and the parts that both stores share.
//!
//! A store never decides. It finds rows, calls the core, writes what came out,
//! and refuses a write made from an old version. Every verb takes many.
//! `tests/store.rs` is the contract; it runs on both.
//!
//! Absent on purpose: rules in SQL, retries, wake-ups that must not be lost.

mod event_rows;
pub(crate) mod insert;
pub mod outbox;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "postgres")]
pub(crate) mod retry;
mod rows;
mod save;
pub(crate) mod sql;
#[cfg(feature = "sqlite")]
pub mod sqlite;
pub mod terms;

use async_trait::async_trait;
use std::sync::Arc;
use tidings_core::fact::{Act, Fact};
use tidings_core::id::{JobId, WorkerId};
use tidings_core::job::{Job, StateName};
use tidings_core::time::Time;
use tidings_core::unique::KeyHash;
use uuid::Uuid;

pub use insert::{Idempotency, Inserted, NewJob};
pub use save::{Change, Saved, Told, tell};
pub use terms::{Terms, TermsOfKinds};

/// Why a store could not do what it was asked.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The database cannot be reached, or not written to, for now. Nothing was done,
    /// or it is not known whether it was: try again later.
    #[error("the database is not available: {0}")]
    Unavailable(String),
    /// The database gave the transaction up for the sake of another one. Nothing was
    /// done; it has been tried a few times.
    #[error("the database gave the transaction up for the sake of another one: {0}")]
    Conflict(#[source] GaveUp),
    /// The database was written by a newer program.
    #[error(
        "the database has schema version {found}, this program knows versions up to {known}: \
         run the program that migrated it, or a newer one"
    )]
    SchemaNewer {
        /// What the database says.
        found: i64,
        /// What this program knows.
        known: i64,
    },
    /// The database was written by an older program, or by none, and may not be migrated now.
    #[error(
        "the database has schema version {found}, this program needs {known}: run `tidings migrate`, or open \
         it with migration allowed"
    )]
    SchemaOlder {
        /// What the database says; 0 where nothing was ever migrated.
        found: i64,
        /// What this program needs.
        known: i64,
    },
    /// The SQLite library is one that can lose committed writes.
    #[error("SQLite {found} can lose committed writes (WAL reset); {needed} or newer is needed")]
    SqliteTooOld {
        /// The version that is linked.
        found: String,
        /// The first version without the fault.
        needed: &'static str,
    },
    /// A row does not read as what it should be.
    #[error("{row} cannot be read: {what}")]
    CorruptRow {
        /// Which.
        row: String,
        /// Why.
        what: String,
    },
    /// The database file itself is damaged. Nothing mends this by itself.
    #[error(
        "the database is damaged or not one of SQLite ({0}): name the right file, or stop and restore it from a backup"
    )]
    DatabaseDamaged(String),
    /// The database refused a statement: a fault of the program or of the data, not of the moment.
    #[error("the database refused a statement: {0}")]
    Refused(String),
    /// The place that was named is not one, or does not let us in.
    #[error("{0}")]
    BadAddress(String),
}

impl StoreError {
    /// Whether the same call may succeed later without anything being changed.
    pub fn is_transient(&self) -> bool {
        matches!(self, StoreError::Unavailable(_) | StoreError::Conflict(_))
    }
}

/// The database's own words about a serialization failure or a deadlock.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct GaveUp(pub(crate) String);

/// A job with its arguments.
#[derive(Clone, Debug)]
pub struct Stored {
    /// As it stands.
    pub job: Job,
    /// JSON text, exactly as it was given.
    pub args: Arc<str>,
}

/// One line of a job's history.
#[derive(Clone, Debug, PartialEq)]
pub struct Logged {
    /// Its place in the history; the job had this version after it.
    pub version: i64,
    /// When it was recorded.
    pub at: Time,
    /// What happened.
    pub fact: Fact,
}

/// What a worker wants to take.
#[derive(Clone, Debug)]
pub struct Take {
    /// What time it is, by the database's clock.
    pub now: Time,
    /// From which queue.
    pub queue: String,
    /// At most this many.
    pub limit: usize,
    /// Who takes.
    pub worker: WorkerId,
    /// The kinds that this process knows; others are left alone.
    pub terms: Arc<TermsOfKinds>,
}

/// What a worker got.
#[derive(Debug, Default)]
pub struct Taken {
    /// Running now, each with its claim committed.
    pub started: Vec<Stored>,
    /// When the next job of the queue is due, if fewer than asked for were taken.
    pub next_due: Option<Time>,
}

/// Which jobs to list. Empty text means any.
#[derive(Clone, Debug)]
pub struct JobFilter {
    /// Only this state.
    pub state: Option<StateName>,
    /// Only this kind.
    pub kind: String,
    /// Only this queue.
    pub queue: String,
    /// Only this tenant.
    pub tenant: String,
    /// Only jobs whose id sorts before this one: the next page.
    pub before: Option<JobId>,
    /// At most this many, newest first.
    pub limit: usize,
}

impl Default for JobFilter {
    /// Any job, a page of them.
    fn default() -> JobFilter {
        JobFilter {
            state: None,
            kind: String::new(),
            queue: String::new(),
            tenant: String::new(),
            before: None,
            limit: PAGE_DEFAULT,
        }
    }
}

/// Rows of a list whose caller names no limit.
const PAGE_DEFAULT: usize = 100;

/// A queue that somebody paused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PausedQueue {
    /// Which.
    pub queue: String,
    /// Since when.
    pub paused_at: Time,
    /// Who and why.
    pub act: Act,
}

/// An API key as it is kept: never the key itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    /// Public part, for finding and naming it.
    pub id: String,
    /// SHA-256 of the whole key.
    pub hash: KeyHash,
    /// `enqueue`, `read`, `operate` or `admin`.
    pub scope: String,
    /// The tenant that it is bound to; empty for all.
    pub tenant: String,
}

/// What is old enough to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prune {
    /// Finished jobs of this state that finished before.
    Finished(StateName, Time),
    /// Idempotency keys that expired before.
    Keys(Time),
    /// Facts recorded before.
    Facts(Time),
    /// Events that were fanned out before.
    Events(Time),
}

/// A hint that something may have happened. Never data: a lost one costs a poll.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Wake {
    /// A queue may have something due.
    Queue(String),
    /// Somebody asked to cancel this running job.
    Cancel(JobId),
    /// There may be events to fan out.
    Events,
    /// Somebody waits for this job or event.
    Awaited(Uuid),
    /// This job or event, which somebody waits for, is what they wait for.
    Settled(Uuid),
}

/// The promises. Both stores keep them; nothing above asks which one it has.
#[async_trait]
pub trait Store: outbox::EventStore + Send + Sync + 'static {
    /// The database's clock.
    async fn now(&self) -> Result<Time, StoreError>;

    /// Inserts all of them in one transaction, except those whose unique key or
    /// idempotency key another job holds: those are answered with that job.
    async fn insert(&self, jobs: Vec<NewJob>) -> Result<Vec<Inserted>, StoreError>;

    /// The jobs, live or finished, in the order asked for.
    async fn load(&self, ids: &[JobId]) -> Result<Vec<Option<Stored>>, StoreError>;

    /// Takes due jobs of a queue. A job is taken by one caller only.
    async fn take_due(&self, take: &Take) -> Result<Taken, StoreError>;

    /// Ends the attempts whose lease is over, in any of `queues`, at most `limit`
    /// of them; the changes made.
    async fn sweep(
        &self,
        now: Time,
        queues: &[String],
        limit: usize,
        terms: &Arc<TermsOfKinds>,
    ) -> Result<Vec<Change>, StoreError>;

    /// Writes each change and its facts together, or not at all if the job is no
    /// longer at the version that the change was made from.
    async fn save(&self, changes: Vec<Change>) -> Result<Vec<Saved>, StoreError>;

    /// The logs of the jobs, in the order asked for.
    async fn history(&self, ids: &[JobId]) -> Result<Vec<Vec<Logged>>, StoreError>;

    /// Jobs, newest first.
    async fn list(&self, filter: &JobFilter) -> Result<Vec<Job>, StoreError>;

    /// Stops the claiming from a queue, everywhere. Again changes nothing.
    async fn pause(&self, queue: &str, at: Time, act: &Act) -> Result<(), StoreError>;

    /// Lets a queue be claimed from again.
    async fn resume(&self, queue: &str) -> Result<(), StoreError>;

    /// Which queues are paused.
    async fn paused(&self) -> Result<Vec<PausedQueue>, StoreError>;

    /// Removes what is old enough, at most `limit` rows; how many went.
    async fn prune(&self, what: Prune, limit: usize) -> Result<u64, StoreError>;

    /// Keeps a policy under its name and version; the body that the database has
    /// for them, which is another one if the same version was used for other data.
    async fn keep_policy(&self, name: &str, version: u32, body: &str) -> Result<String, StoreError>;

    /// Adds an API key unless one of its id is there.
    async fn add_api_key(&self, key: &ApiKey, at: Time) -> Result<(), StoreError>;

    /// Every key that is not revoked.
    async fn api_keys(&self) -> Result<Vec<ApiKey>, StoreError>;

    /// Tells other processes. One call is one message, however many hints it carries.
    async fn announce(&self, wakes: &[Wake]) -> Result<(), StoreError>;

    /// What other processes announce, until the receiver is dropped. `None` where
    /// the database has no such channel; then polling does it.
    fn listen(&self) -> Option<tokio::sync::mpsc::Receiver<Wake>>;

    /// How many connections it may hold at once; `None` where there is no pool.
    fn pool_size(&self) -> Option<usize>;

    /// `sqlite` or `postgres`.
    fn backend(&self) -> &'static str;

    /// Prepares what the next weeks of facts need (partitions). Safe to repeat.
    async fn keep_house(&self, now: Time) -> Result<(), StoreError>;
}

/// Opens the database at `address`: `sqlite:PATH` or `postgres://…`.
///
/// # Errors
/// When the address is neither, or the database cannot be opened.
pub async fn open(address: &str, options: &OpenOptions) -> Result<Arc<dyn Store>, StoreError> {
    if let Some(path) = address.strip_prefix("sqlite:") {
        #[cfg(feature = "sqlite")]
        return Ok(Arc::new(sqlite::SqliteStore::open(path, options.migrate).await?));
        #[cfg(not(feature = "sqlite"))]
        return Err(StoreError::BadAddress(format!(
            "`sqlite:{path}`: this program was built without SQLite"
        )));
    }
    if address.starts_with("postgres://") || address.starts_with("postgresql://") {
        #[cfg(feature = "postgres")]
        return Ok(Arc::new(postgres::PostgresStore::open(address, options).await?));
        #[cfg(not(feature = "postgres"))]
        return Err(StoreError::BadAddress("this program was built without PostgreSQL".into()));
    }
    // The text may hold a password: it is not repeated.
    Err(StoreError::BadAddress(
        "the database address is not understood: write `sqlite:PATH` or `postgres://USER@HOST/NAME`".into(),
    ))
}

/// How to open a database.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// Bring the schema up to date first.
    pub migrate: bool,
    /// Connections to a Postgres.
    pub pool_size: usize,
    /// Longest wait for a free connection, in milliseconds.
    pub pool_wait_ms: u64,
}

impl Default for OpenOptions {
    fn default() -> OpenOptions {
        OpenOptions { migrate: true, pool_size: 16, pool_wait_ms: 5_000 }
    }
}
