//! An empty store for one test, what most tests do to it, and a way to look at
//! its database behind its back.

use crate::draft::{LEASE_OVER, NOW, job, take, terms};
use std::ops::Deref;
use std::sync::Arc;
use tempfile::TempDir;
use testkit::postgres::Database;
use tidings::core::decide::Command;
use tidings::core::id::JobId;
use tidings::core::job::Job;
use tidings::core::time::Time;
use tidings::store::{
    self, Change, Inserted, Logged, NewJob, OpenOptions, Saved, Store, StoreError, Stored, Take, Told,
};

/// A store on a database of its own, which goes with it.
pub struct Fresh {
    store: Arc<dyn Store>,
    place: Place,
}

/// An empty database.
pub enum Place {
    Sqlite(TempDir),
    Postgres(Database),
}

pub async fn empty_sqlite() -> Place {
    Place::Sqlite(tempfile::tempdir().unwrap())
}

pub async fn empty_postgres() -> Place {
    Place::Postgres(testkit::postgres::database().await)
}

pub async fn sqlite() -> Fresh {
    empty_sqlite().await.fresh().await
}

pub async fn postgres() -> Fresh {
    empty_postgres().await.fresh().await
}

impl Place {
    pub async fn fresh(self) -> Fresh {
        let store = self.open(&OpenOptions::default()).await.unwrap();
        Fresh { store, place: self }
    }

    pub fn address(&self) -> String {
        match self {
            Place::Sqlite(directory) => format!("sqlite:{}", directory.path().join("t.db").display()),
            Place::Postgres(database) => database.url().to_owned(),
        }
    }

    pub async fn open(&self, options: &OpenOptions) -> Result<Arc<dyn Store>, StoreError> {
        store::open(&self.address(), options).await
    }

    /// Runs statements without the store. `tidings.job` is written as the database spells it.
    pub async fn sql(&self, statements: &str) -> Result<(), String> {
        match self {
            Place::Sqlite(_) => self.sqlite_connection().execute_batch(&spelt_for_sqlite(statements)),
            Place::Postgres(_) => {
                let done = self.postgres_client().await.batch_execute(statements).await;
                return done.map_err(|error| server_text(&error));
            }
        }
        .map_err(|error| error.to_string())
    }

    /// One number that a query gives.
    pub async fn number(&self, query: &str) -> i64 {
        match self {
            Place::Sqlite(_) => {
                let connection = self.sqlite_connection();
                connection.query_row(&spelt_for_sqlite(query), [], |row| row.get(0)).unwrap()
            }
            Place::Postgres(_) => self.postgres_client().await.query_one(query, &[]).await.unwrap().get(0),
        }
    }

    /// The id as a literal of the database.
    pub fn literal(&self, id: JobId) -> String {
        match self {
            Place::Sqlite(_) => format!("x'{}'", id.0.simple()),
            Place::Postgres(_) => format!("'{}'::uuid", id.0),
        }
    }

    /// A connection of the test's own.
    pub fn sqlite_connection(&self) -> rusqlite::Connection {
        let address = self.address();
        let connection = rusqlite::Connection::open(address.strip_prefix("sqlite:").unwrap()).unwrap();
        connection.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
        connection
    }

    /// A connection of the test's own.
    pub async fn postgres_client(&self) -> tokio_postgres::Client {
        let connected = tokio_postgres::connect(&self.address(), tokio_postgres::NoTls).await;
        let (client, connection) = connected.unwrap();
        tokio::spawn(connection);
        client
    }
}

fn spelt_for_sqlite(statements: &str) -> String {
    statements.replace("tidings.", "tidings_")
}

fn server_text(error: &tokio_postgres::Error) -> String {
    error.as_db_error().map_or(error.to_string(), |refusal| {
        format!("{} {}", refusal.message(), refusal.constraint().unwrap_or_default())
    })
}

impl Deref for Fresh {
    type Target = dyn Store;

    fn deref(&self) -> &Self::Target {
        &*self.store
    }
}

impl Fresh {
    /// A handle for another task.
    pub fn handle(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }

    pub fn place(&self) -> &Place {
        &self.place
    }

    pub fn is_postgres(&self) -> bool {
        matches!(self.place, Place::Postgres(_))
    }

    /// A second store on the same database, as another process would have.
    pub async fn another(&self) -> Arc<dyn Store> {
        self.place.open(&OpenOptions::default()).await.unwrap()
    }

    pub async fn sql(&self, statements: &str) -> Result<(), String> {
        self.place.sql(statements).await
    }

    pub async fn number(&self, query: &str) -> i64 {
        self.place.number(query).await
    }

    /// Inserts jobs that nobody has yet.
    pub async fn put(&self, jobs: Vec<NewJob>) -> Vec<JobId> {
        let ids: Vec<JobId> = jobs.iter().map(|new| new.job.id).collect();
        let expected: Vec<Inserted> = ids.iter().map(|id| Inserted::New(*id)).collect();
        assert_eq!(self.insert(jobs).await.unwrap(), expected);
        ids
    }

    /// Inserts one job; what became of it.
    pub async fn put_one(&self, new: NewJob) -> Inserted {
        self.insert(vec![new]).await.unwrap()[0]
    }

    /// Takes jobs of kind `demo` from queue `default` at [`NOW`].
    pub async fn take(&self, limit: usize) -> Vec<Job> {
        self.take_as(&take(limit)).await
    }

    pub async fn take_at(&self, now: Time, limit: usize) -> Vec<Job> {
        self.take_as(&Take { now, ..take(limit) }).await
    }

    pub async fn take_as(&self, take: &Take) -> Vec<Job> {
        self.take_due(take).await.unwrap().started.into_iter().map(|stored| stored.job).collect()
    }

    /// The ids of what is taken at [`NOW`].
    pub async fn take_ids(&self, limit: usize) -> Vec<JobId> {
        self.take(limit).await.iter().map(|job| job.id).collect()
    }

    /// Jobs that were put and taken.
    pub async fn running(&self, count: usize) -> Vec<Job> {
        self.put((0..count).map(|_| job()).collect()).await;
        let running = self.take(count).await;
        assert_eq!(running.len(), count);
        running
    }

    pub async fn running_one(&self) -> Job {
        self.running(1).await.remove(0)
    }

    /// Ends the leases of kind `demo` in queue `default` that are over a lease after [`NOW`].
    pub async fn sweep_all(&self, limit: usize) -> Vec<Job> {
        let swept = self.sweep(LEASE_OVER, &["default".into()], limit, &terms(&["demo"])).await.unwrap();
        swept.into_iter().map(|change| change.after).collect()
    }

    pub async fn stored(&self, id: JobId) -> Option<Stored> {
        self.load(&[id]).await.unwrap().remove(0)
    }

    pub async fn job(&self, id: JobId) -> Job {
        self.stored(id).await.unwrap_or_else(|| panic!("{id} is there")).job
    }

    pub async fn save_one(&self, change: Change) -> Saved {
        self.save(vec![change]).await.unwrap()[0]
    }

    /// Saves changes that nobody else makes.
    pub async fn save_all(&self, changes: Vec<Change>) -> Vec<Job> {
        let after: Vec<Job> = changes.iter().map(|change| change.after.clone()).collect();
        let saved = self.save(changes).await.unwrap();
        assert!(saved.iter().all(|saved| *saved == Saved::Yes), "{saved:?}");
        after
    }

    /// Decides about a job as it stands, and saves.
    pub async fn tell(&self, id: JobId, command: Command<'_>, now: Time) -> Told {
        store::tell(&*self.store, id, command, now).await.unwrap()
    }

    /// The same, for what is expected to be done; the job after it.
    pub async fn done(&self, id: JobId, command: Command<'_>) -> Job {
        match self.tell(id, command, NOW).await {
            Told::Done(job) => *job,
            other => panic!("{other:?}"),
        }
    }

    pub async fn log(&self, id: JobId) -> Vec<Logged> {
        self.history(&[id]).await.unwrap().remove(0)
    }

    /// The names of a job's facts.
    pub async fn facts(&self, id: JobId) -> Vec<&'static str> {
        self.log(id).await.iter().map(|line| line.fact.name()).collect()
    }
}
