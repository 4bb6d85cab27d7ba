//! The Postgres store: rows are locked with `SKIP LOCKED`, so that workers never
//! wait for each other, and every batch is one statement over arrays.
//!
//! Each claim is its own short transaction. Nothing relies on the session: no
//! session locks, no `SET`, no `search_path`; `LISTEN` has a connection of its own
//! and is only a hint.
//!
//! Absent on purpose: holding a connection while a handler runs.

mod connect;
mod emissions;
mod event_store;
mod events;
mod keys;
mod listen;
mod migrate;
mod partitions;
mod pipeline;
mod verbs;

use super::{
    ApiKey, Change, GaveUp, Inserted, JobFilter, Logged, NewJob, OpenOptions, PausedQueue, Prune, Saved,
    Store, StoreError, Stored, Take, Taken, TermsOfKinds, Wake, retry, sql,
};
use async_trait::async_trait;
use connect::Connector;
use deadpool_postgres::Client;
use std::sync::Arc;
use std::time::Duration;
use tidings_core::fact::Act;
use tidings_core::id::JobId;
use tidings_core::job::Job;
use tidings_core::time::Time;
use tokio_postgres::error::{DbError, SqlState};

pub use emissions::BrokenEmission;
pub use events::{declared as declared_in, record as record_in};
pub use verbs::insert as insert_in;

/// A database on a server.
pub struct PostgresStore {
    pool: deadpool_postgres::Pool,
    connector: Connector,
}

impl PostgresStore {
    /// Connects to `url`.
    ///
    /// # Errors
    /// When it cannot be reached, refuses us, or is newer than the program.
    pub async fn open(url: &str, options: &OpenOptions) -> Result<PostgresStore, StoreError> {
        let connector = Connector::new(url)?;
        let pool = connector.pool(options.pool_size, Duration::from_millis(options.pool_wait_ms))?;
        let store = PostgresStore { pool, connector };
        let mut client = store.client().await?;
        migrate::run(&mut client, sql::POSTGRES_MIGRATIONS, options.migrate).await?;
        emissions::warn_of_broken(&client).await;
        drop(client);
        Ok(store)
    }

    /// Tables whose triggers do not record what `tidings.emit_on_change` installed them for.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn broken_emissions(&self) -> Result<Vec<BrokenEmission>, StoreError> {
        emissions::broken(&self.client().await?).await
    }

    async fn client(&self) -> Result<Client, StoreError> {
        match self.pool.get().await {
            Ok(client) => Ok(client),
            Err(deadpool_postgres::PoolError::Backend(failed)) => Err(self.not_connected(&failed)),
            Err(deadpool_postgres::PoolError::Timeout(_)) => Err(StoreError::Unavailable(
                "no connection came free in time: the pool is in use; raise `pool_size` or lower the load"
                    .into(),
            )),
            Err(other) => Err(StoreError::Unavailable(other.to_string())),
        }
    }

    /// Whatever the reason (also a password that is being changed), nothing was done and
    /// the same may succeed later: what waits for a connection goes on waiting.
    fn not_connected(&self, failed: &tokio_postgres::Error) -> StoreError {
        let what = failed.as_db_error().map_or_else(|| source_chain(failed), in_words);
        StoreError::Unavailable(format!("no connection to {}: {what}", self.connector.place()))
    }
}

/// Gives a connection back to the pool only while it is good. One that met a
/// read-only server (25006: a primary that was demoted) is dropped, so that a
/// failover does not leave us talking to the old one for ever.
fn give_back<T>(client: Client, result: &Result<T, StoreError>) {
    if matches!(result, Err(StoreError::Unavailable(_))) {
        drop(Client::take(client));
    }
}

/// What an error of the driver means for the caller. A broken connection comes
/// without a code; what was asked for may then have been done.
fn error(failed: &tokio_postgres::Error) -> StoreError {
    let Some(server) = failed.as_db_error() else {
        return StoreError::Unavailable(source_chain(failed));
    };
    told_by(server.code().code(), server.message())
}

/// What the server's refusal under a SQLSTATE means for the caller.
pub(crate) fn told_by(code: &str, message: &str) -> StoreError {
    let text = format!("{message} ({code})");
    let code = SqlState::from_code(code);
    if retry::names_conflict(&code) {
        return StoreError::Conflict(GaveUp(text));
    }
    let try_later = [
        SqlState::READ_ONLY_SQL_TRANSACTION,
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::QUERY_CANCELED,
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
    ];
    // 08: the connection; 53: the server is short of something.
    if try_later.contains(&code) || code.code().starts_with("08") || code.code().starts_with("53") {
        StoreError::Unavailable(text)
    } else {
        StoreError::Refused(text)
    }
}

fn in_words(server: &DbError) -> String {
    format!("{} ({})", server.message(), server.code().code())
}

impl From<tokio_postgres::Error> for StoreError {
    fn from(failed: tokio_postgres::Error) -> StoreError {
        error(&failed)
    }
}

fn source_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    text
}

/// Runs one verb on one connection, again if the database gave it up for another
/// transaction, and looks at how it went.
macro_rules! on_client {
    ($store:ident, $client:ident => $work:expr) => {{
        let mut client = $store.client().await?;
        let mut rerun = retry::Rerun::default();
        let result = loop {
            let $client = &mut client;
            let result = $work.await;
            if !rerun.wanted(&result).await {
                break result;
            }
        };
        give_back(client, &result);
        result
    }};
}
use on_client;

#[async_trait]
impl Store for PostgresStore {
    async fn now(&self) -> Result<Time, StoreError> {
        on_client!(self, client => verbs::now(client))
    }

    async fn insert(&self, jobs: Vec<NewJob>) -> Result<Vec<Inserted>, StoreError> {
        on_client!(self, client => verbs::insert_batch(client, jobs.clone()))
    }

    async fn load(&self, ids: &[JobId]) -> Result<Vec<Option<Stored>>, StoreError> {
        on_client!(self, client => verbs::load(client, ids))
    }

    async fn take_due(&self, take: &Take) -> Result<Taken, StoreError> {
        let mut rerun = retry::Rerun::default();
        loop {
            // A connection of its own each time: one that failed inside a transaction is closed.
            let result = verbs::take_due(self.client().await?, take).await;
            if !rerun.wanted(&result).await {
                return result;
            }
        }
    }

    async fn sweep(
        &self,
        now: Time,
        queues: &[String],
        limit: usize,
        terms: &Arc<TermsOfKinds>,
    ) -> Result<Vec<Change>, StoreError> {
        on_client!(self, client => verbs::sweep(client, now, queues, limit, terms))
    }

    async fn save(&self, changes: Vec<Change>) -> Result<Vec<Saved>, StoreError> {
        on_client!(self, client => verbs::save_batch(client, &changes))
    }

    async fn history(&self, ids: &[JobId]) -> Result<Vec<Vec<Logged>>, StoreError> {
        on_client!(self, client => verbs::history(client, ids))
    }

    async fn list(&self, filter: &JobFilter) -> Result<Vec<Job>, StoreError> {
        on_client!(self, client => verbs::list(client, filter))
    }

    async fn pause(&self, queue: &str, at: Time, act: &Act) -> Result<(), StoreError> {
        on_client!(self, client => verbs::pause(client, queue, at, act))
    }

    async fn resume(&self, queue: &str) -> Result<(), StoreError> {
        on_client!(self, client => verbs::resume(client, queue))
    }

    async fn paused(&self) -> Result<Vec<PausedQueue>, StoreError> {
        on_client!(self, client => verbs::paused(client))
    }

    async fn prune(&self, what: Prune, limit: usize) -> Result<u64, StoreError> {
        on_client!(self, client => verbs::prune(client, what, limit))
    }

    async fn keep_policy(&self, name: &str, version: u32, body: &str) -> Result<String, StoreError> {
        on_client!(self, client => verbs::keep_policy(client, name, version, body))
    }

    async fn add_api_key(&self, key: &ApiKey, at: Time) -> Result<(), StoreError> {
        on_client!(self, client => verbs::add_api_key(client, key, at))
    }

    async fn api_keys(&self) -> Result<Vec<ApiKey>, StoreError> {
        on_client!(self, client => verbs::api_keys(client))
    }

    async fn announce(&self, wakes: &[Wake]) -> Result<(), StoreError> {
        on_client!(self, client => listen::announce(client, wakes))
    }

    fn listen(&self) -> Option<tokio::sync::mpsc::Receiver<Wake>> {
        Some(listen::start(self.connector.clone()))
    }

    fn pool_size(&self) -> Option<usize> {
        Some(self.pool.status().max_size)
    }

    fn backend(&self) -> &'static str {
        "postgres"
    }

    async fn keep_house(&self, now: Time) -> Result<(), StoreError> {
        on_client!(self, client => partitions::keep(client, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_statement_prepares_on_postgres() {
        let database = testkit::postgres::database().await;
        let store = PostgresStore::open(database.url(), &OpenOptions::default()).await.unwrap();
        let client = store.client().await.unwrap();
        for (name, text) in sql::postgres::ALL {
            client.prepare(text).await.unwrap_or_else(|error| panic!("{name}: {error:?}\n{text}"));
        }
    }
}
