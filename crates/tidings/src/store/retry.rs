//! Rerun a transaction again that the database gave up: two transactions got in
//! each other's way (`40001`, serialization failure) or waited for each other
//! (`40P01`, deadlock). Nothing of it was done, and the same again usually works.
//!
//! This is the one place where something is tried again without an attempt in the
//! evidence, so it is narrow: these two codes only, a few tries, pauses of
//! milliseconds with jitter so that the two do not meet again, and work that is
//! handed a transaction and nothing else. A transaction that is run twice must not
//! send anything: what was sent cannot be rolled back. What has to be sent after a
//! change is a job, enqueued in the transaction.
//!
//! Absent on purpose: a lost connection (the commit may have been done), a server
//! that is away (the caller says so at once, or the job's policy waits), SQLite
//! (its one writer cannot meet another).

use crate::random;
use crate::store::{GaveUp, StoreError};
use std::error::Error;
use std::time::Duration;
use tidings_core::policy::Draw;
use tokio_postgres::error::{DbError, SqlState};
use tokio_postgres::{Client, Transaction};

/// How often a transaction is run at most.
pub const TRIES_MAX: u32 = 5;
/// Longest pause after the first try, in milliseconds; it doubles.
const PAUSE_FIRST_MS: u64 = 10;

/// An error of work in a transaction, as [`in_transaction`] needs it. For an error
/// type of your own, [`is_conflict`] looks through its sources:
///
/// ```
/// #[derive(Debug, thiserror::Error)]
/// enum SignUpFailed {
///     #[error("the database: {0}")]
///     Database(#[from] tokio_postgres::Error),
///     #[error(transparent)]
///     Enqueue(#[from] tidings::EnqueueRefused),
/// }
///
/// impl tidings::transaction::TransactionError for SignUpFailed {
///     fn is_conflict(&self) -> bool {
///         tidings::transaction::is_conflict(self)
///     }
/// }
/// ```
pub trait TransactionError: From<tokio_postgres::Error> {
    /// Whether the database gave the transaction up for the sake of another one.
    fn is_conflict(&self) -> bool;
}

impl TransactionError for tokio_postgres::Error {
    fn is_conflict(&self) -> bool {
        self.code().is_some_and(names_conflict)
    }
}

impl TransactionError for StoreError {
    fn is_conflict(&self) -> bool {
        matches!(self, StoreError::Conflict(_))
    }
}

impl TransactionError for Box<dyn Error + Send + Sync> {
    fn is_conflict(&self) -> bool {
        is_conflict(&**self)
    }
}

/// Whether `error`, or what caused it, is a serialization failure or a deadlock.
pub fn is_conflict(error: &(dyn Error + 'static)) -> bool {
    let chain = std::iter::successors(Some(error), |error: &&(dyn Error + 'static)| (*error).source());
    chain.into_iter().any(|error| {
        error.is::<GaveUp>()
            || matches!(error.downcast_ref(), Some(StoreError::Conflict(_)))
            || error.downcast_ref::<DbError>().is_some_and(|error| names_conflict(error.code()))
    })
}

pub(super) fn names_conflict(code: &SqlState) -> bool {
    *code == SqlState::T_R_SERIALIZATION_FAILURE || *code == SqlState::T_R_DEADLOCK_DETECTED
}

/// Runs `work` in a transaction and commits it; again, at most [`TRIES_MAX`] times in
/// all, when the database gave it up for the sake of another transaction. Whatever
/// else goes wrong rolls it back and is told at once.
///
/// `work` may run several times: it gets a transaction, and must do nothing that a
/// rollback does not undo. Give it what it needs by `async move`, owned: a closure
/// that borrows cannot be shown to be `Send`, and could not be awaited in a web handler.
///
/// ```no_run
/// # async fn f(db: &mut tokio_postgres::Client, from: i64, to: i64) -> Result<(), tokio_postgres::Error> {
/// tidings::transaction::in_transaction(db, async move |tx| {
///     tx.execute("UPDATE account SET balance = balance - 1 WHERE id = $1", &[&from]).await?;
///     tx.execute("UPDATE account SET balance = balance + 1 WHERE id = $1", &[&to]).await
/// })
/// .await?;
/// # Ok(()) }
/// ```
///
/// # Errors
/// What `work` or the commit ended with, the last time.
pub async fn in_transaction<T, E: TransactionError>(
    client: &mut Client,
    work: impl AsyncFn(&Transaction<'_>) -> Result<T, E>,
) -> Result<T, E> {
    let mut rerun = Rerun::default();
    loop {
        let result = once(client, &work).await;
        if !rerun.wanted(&result).await {
            return result;
        }
    }
}

async fn once<T, E: TransactionError>(
    client: &mut Client,
    work: &impl AsyncFn(&Transaction<'_>) -> Result<T, E>,
) -> Result<T, E> {
    let tx = client.transaction().await?;
    // Dropped without a commit, it is rolled back.
    let value = work(&tx).await?;
    commit(tx).await?;
    Ok(value)
}

/// Commits a transaction, and fails where the driver's own `commit` would report a
/// success that was none: PostgreSQL answers the `COMMIT` of a transaction in which a
/// statement failed with a `ROLLBACK`, and the driver does not look at the answer. Whoever
/// drops the error of a statement, of a recording for one, is told here. It costs one
/// round trip. [`in_transaction`] commits like this.
///
/// # Errors
/// When a statement of the transaction failed (`25P02`): it is rolled back. Otherwise what
/// the commit ended with; a broken connection leaves open whether it was done.
pub async fn commit(tx: Transaction<'_>) -> Result<(), tokio_postgres::Error> {
    check(&tx).await?;
    tx.commit().await
}

/// Fails when a statement of the transaction has failed (`25P02`), so that its `COMMIT` would
/// quietly be a `ROLLBACK`. For transactions of a pool, which [`commit`] does not take: call
/// it last, then commit.
///
/// # Errors
/// See above.
pub async fn check(tx: &Transaction<'_>) -> Result<(), tokio_postgres::Error> {
    tx.batch_execute("SELECT 1").await
}

/// How often a transaction was run.
#[derive(Default)]
pub(super) struct Rerun(u32);

impl Rerun {
    /// Whether the transaction that ended so is to be run again, after a pause.
    pub(super) async fn wanted<T, E: TransactionError>(&mut self, result: &Result<T, E>) -> bool {
        self.0 += 1;
        let wanted = self.0 < TRIES_MAX && result.as_ref().is_err_and(E::is_conflict);
        if wanted {
            tokio::time::sleep(pause(self.0, random::draw())).await;
        }
        wanted
    }
}

/// Anything between nothing and a limit that doubles: two that met draw apart.
fn pause(tries: u32, draw: Draw) -> Duration {
    let limit_ms = PAUSE_FIRST_MS << (tries - 1).min(TRIES_MAX);
    Duration::from_micros(limit_ms * 1_000 * u64::from(draw.0) / u64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_short_and_double() {
        let longest: Vec<u128> =
            (1..TRIES_MAX).map(|tries| pause(tries, Draw(u32::MAX)).as_millis()).collect();
        assert_eq!(longest, [10, 20, 40, 80]);
        assert_eq!(pause(1, Draw(0)), Duration::ZERO);
    }

    #[test]
    fn a_conflict_is_seen_through_the_errors_around_it() {
        #[derive(Debug, thiserror::Error)]
        enum SignUpFailed {
            #[error(transparent)]
            Store(#[from] StoreError),
        }
        let store = StoreError::Conflict(GaveUp("deadlock detected (40P01)".into()));
        assert!(is_conflict(&store));
        assert!(is_conflict(&SignUpFailed::from(store)));
        let other = StoreError::Unavailable("deadlock detected (40P01)".into());
        assert!(!is_conflict(&SignUpFailed::from(other)));
    }
}
