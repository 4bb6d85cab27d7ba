//! Jobs and events inside a transaction of sqlx on Postgres.
//!
//! Thin on purpose: it calls the public SQL functions, whose contract is `docs/sql.md`, so
//! that a third client needs no third way to write a row. They say the same as the other
//! doors, and want the grants that are written there.
//!
//! Absent on purpose: sqlx on SQLite, which would bring a second SQLite library along.

use crate::client::Tidings;
use crate::enqueue::{Enqueue, EnqueueRefused, Told};
use crate::events::{Record, RecordRefused, Said};
use crate::kind::Kind;
use crate::store::StoreError;
use crate::store::postgres::told_by;
use sqlx_core::query_scalar::query_scalar;
use sqlx_core::transaction::Transaction;
use sqlx_postgres::Postgres;
use tidings_core::event::EventId;
use tidings_core::id::JobId;

const RECORD: &str = "SELECT tidings.record(
    $1, $2, $3::text::json, $4, $5, 'epoch'::timestamptz + $6::bigint * interval '1 millisecond')";
const ENQUEUE: &str = "SELECT tidings.enqueue(
    $1, $2::text::json, $3, $4, 'epoch'::timestamptz + $5::bigint * interval '1 millisecond', $6, $7, $8)";
/// The key was used for another call, which the message names.
const KEY_REUSED: &str = "TD004";

impl Tidings {
    /// Records an event inside a transaction of sqlx on the Postgres that Tidings was opened
    /// on; its id, or that of the event that the same call made before.
    ///
    /// # Errors
    /// When its type is not declared, or the database refuses: the transaction has failed
    /// then, and its `commit` would report success for what is a rollback. Pass the error on.
    pub async fn record_in_sqlx(
        &self,
        tx: &mut Transaction<'_, Postgres>,
        record: Record,
    ) -> Result<EventId, RecordRefused> {
        let Said { type_name, subject, data, tenant, key, occurred_at } = record.said()?;
        let query = query_scalar::<Postgres, String>(RECORD).bind(type_name).bind(subject).bind(data);
        let query = query.bind(tenant).bind(key).bind(occurred_at.map(|time| time.0));
        let id = query.fetch_one(&mut **tx).await.map_err(|failed| match key_holder(&failed) {
            Some(holder) => RecordRefused::KeyReused(holder),
            None => refused(&failed).into(),
        })?;
        id.parse().map_err(|_| not_an_id(&id).into())
    }

    /// Enqueues inside a transaction of sqlx on the Postgres that Tidings was opened on; its
    /// id, or that of the job that holds its unique key or that the same call made before.
    /// The kind has to be known to the database: a program that carries it out has been
    /// started once.
    ///
    /// # Errors
    /// When the job is refused at the door, or by the database: the transaction has failed
    /// then, and its `commit` would report success for what is a rollback. Pass the error on.
    pub async fn enqueue_in_sqlx<K: Kind>(
        &self,
        tx: &mut Transaction<'_, Postgres>,
        job: impl Into<Enqueue<K>>,
    ) -> Result<JobId, EnqueueRefused> {
        let Told { kind, args, options } = self.door().told(job.into())?;
        let query = query_scalar::<Postgres, String>(ENQUEUE).bind(kind).bind(args).bind(options.queue);
        let query = query.bind(options.priority.map(|priority| i32::from(priority.get())));
        let query = query.bind(options.run_at.map(|time| time.0)).bind(options.unique_key);
        let query = query.bind(options.tenant.unwrap_or_default()).bind(options.idempotency_key);
        let id = query.fetch_one(&mut **tx).await.map_err(|failed| match key_holder(&failed) {
            Some(holder) => EnqueueRefused::KeyReused(holder),
            None => refused(&failed).into(),
        })?;
        id.parse().map_err(|_| not_an_id(&id).into())
    }
}

/// What an error of sqlx means for the caller.
fn refused(failed: &sqlx_core::Error) -> StoreError {
    match failed.as_database_error() {
        Some(server) => told_by(&server.code().unwrap_or_default(), server.message()),
        None => StoreError::Unavailable(failed.to_string()),
    }
}

/// Who has the key, if that is what the database said.
fn key_holder<Id: std::str::FromStr>(failed: &sqlx_core::Error) -> Option<Id> {
    let server =
        failed.as_database_error().filter(|server| server.code().is_some_and(|code| code == KEY_REUSED))?;
    server.message().split([' ', ',', ';']).find_map(|word| word.parse().ok())
}

fn not_an_id(given: &str) -> StoreError {
    StoreError::CorruptRow { row: "the answer of a SQL function".into(), what: format!("`{given}` is no id") }
}
