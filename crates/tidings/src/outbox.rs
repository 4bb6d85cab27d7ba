//! Jobs and events inside the caller's own transaction: change, job and event commit
//! together or vanish together.
//!
//! The caller's transaction stays the caller's: nothing is committed here, and no
//! wake-up is sent from inside (it would take a lock that all commits share). Call
//! [`Tidings::wake_kind`] after the commit, or let a poll find the job.

#[cfg(feature = "sqlx")]
mod in_sqlx;

use crate::client::{Tidings, receipt};
use crate::enqueue::{Enqueue, EnqueueRefused, Receipt};
use crate::events::{EventReceipt, Record, RecordRefused};
use crate::kind::Kind;
#[cfg(feature = "postgres")]
use crate::store::retry::{TransactionError, is_conflict};

#[cfg(feature = "sqlite")]
impl Tidings {
    /// Enqueues inside a transaction on the SQLite file that Tidings was opened on.
    ///
    /// ```no_run
    /// # use serde::{Deserialize, Serialize};
    /// # use tidings::{Declaration, Kind, Tidings};
    /// # #[derive(Serialize, Deserialize)] struct Welcome { to: String }
    /// # impl Kind for Welcome { const DECLARATION: Declaration = Declaration::new("welcome"); }
    /// # fn sign_up(tidings: &Tidings, db: &mut rusqlite::Connection) -> Result<(), Box<dyn std::error::Error>> {
    /// let tx = db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    /// tx.execute("INSERT INTO account (name) VALUES (?1)", ["ann"])?;
    /// tidings.enqueue_in_sqlite(&tx, Welcome { to: "ann".into() })?;
    /// tx.commit()?;
    /// tidings.wake_kind::<Welcome>();
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// When the job is refused at the door, or by the database: roll back then.
    pub fn enqueue_in_sqlite<K: Kind>(
        &self,
        tx: &rusqlite::Transaction<'_>,
        job: impl Into<Enqueue<K>>,
    ) -> Result<Receipt, EnqueueRefused> {
        let new = self.door().typed(&job.into())?;
        let inserted = crate::store::sqlite::insert_in(tx, vec![new])?;
        inserted.into_iter().next().map_or_else(no_answer, receipt)
    }
}

#[cfg(feature = "postgres")]
impl Tidings {
    /// Enqueues inside a transaction on the Postgres that Tidings was opened on.
    ///
    /// # Errors
    /// When the job is refused at the door, or by the database: the transaction has
    /// failed then, and its `COMMIT` would quietly be a `ROLLBACK`. Pass the error on, or
    /// commit with [`crate::transaction::commit`], which says so.
    pub async fn enqueue_in_postgres<K: Kind>(
        &self,
        tx: &tokio_postgres::Transaction<'_>,
        job: impl Into<Enqueue<K>>,
    ) -> Result<Receipt, EnqueueRefused> {
        let new = self.door().typed(&job.into())?;
        let inserted = crate::store::postgres::insert_in(tx, vec![new]).await?;
        inserted.into_iter().next().map_or_else(no_answer, receipt)
    }
}

#[cfg(feature = "sqlite")]
impl Tidings {
    /// Records an event inside a transaction on the SQLite file that Tidings was opened on.
    ///
    /// # Errors
    /// When its type is not declared, or the database refuses: roll back then.
    pub fn record_in_sqlite(
        &self,
        tx: &rusqlite::Transaction<'_>,
        record: Record,
    ) -> Result<EventReceipt, RecordRefused> {
        let now = self.now();
        let new = record.admit(&crate::store::sqlite::declared_in(tx)?, now)?;
        let recorded = crate::store::sqlite::record_in(tx, vec![new], now)?;
        recorded.into_iter().next().map_or_else(no_event, crate::events::receipt)
    }
}

#[cfg(feature = "postgres")]
impl Tidings {
    /// Records an event inside a transaction on the Postgres that Tidings was opened on.
    ///
    /// # Errors
    /// When its type is not declared, or the database refuses: the transaction has
    /// failed then, and its `COMMIT` would quietly be a `ROLLBACK`. Pass the error on, or
    /// commit with [`crate::transaction::commit`], which says so.
    pub async fn record_in_postgres(
        &self,
        tx: &tokio_postgres::Transaction<'_>,
        record: Record,
    ) -> Result<EventReceipt, RecordRefused> {
        let now = self.now();
        let new = record.admit(&crate::store::postgres::declared_in(tx).await?, now)?;
        let recorded = crate::store::postgres::record_in(tx, vec![new], now).await?;
        recorded.into_iter().next().map_or_else(no_event, crate::events::receipt)
    }
}

fn no_event() -> Result<EventReceipt, RecordRefused> {
    Err(RecordRefused::Store(crate::store::StoreError::Unavailable("the recording gave no answer".into())))
}

#[cfg(feature = "postgres")]
impl TransactionError for RecordRefused {
    fn is_conflict(&self) -> bool {
        is_conflict(self)
    }
}

#[cfg(feature = "postgres")]
impl From<tokio_postgres::Error> for RecordRefused {
    fn from(error: tokio_postgres::Error) -> RecordRefused {
        RecordRefused::Store(error.into())
    }
}

#[cfg(feature = "postgres")]
impl TransactionError for EnqueueRefused {
    fn is_conflict(&self) -> bool {
        is_conflict(self)
    }
}

#[cfg(feature = "postgres")]
impl From<tokio_postgres::Error> for EnqueueRefused {
    fn from(error: tokio_postgres::Error) -> EnqueueRefused {
        EnqueueRefused::Store(error.into())
    }
}

fn no_answer() -> Result<Receipt, EnqueueRefused> {
    Err(EnqueueRefused::Store(crate::store::StoreError::Unavailable("the insert gave no answer".into())))
}
