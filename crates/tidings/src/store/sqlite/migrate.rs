//! Brings the schema of a database file up to date, one step a version.

use super::error;
use crate::store::StoreError;
use rusqlite::{Connection, TransactionBehavior};

/// Runs the steps that are missing, or with `migrate` off only checks that none is.
pub(super) fn run(connection: &mut Connection, steps: &[&str], migrate: bool) -> Result<(), StoreError> {
    let known = i64::try_from(steps.len()).expect("there are few migrations");
    // Immediate: of several processes that start at once, one migrates and the others wait.
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(error)?;
    tx.execute_batch(
        "CREATE TABLE IF NOT EXISTS tidings_migration (
            version       INTEGER NOT NULL,
            applied_at_ms INTEGER NOT NULL,
            CONSTRAINT migration_runs_once PRIMARY KEY (version)
        ) STRICT;",
    )
    .map_err(error)?;
    let found: i64 = tx
        .query_row("SELECT coalesce(max(version), 0) FROM tidings_migration", [], |row| row.get(0))
        .map_err(error)?;
    if found > known {
        return Err(StoreError::SchemaNewer { found, known });
    }
    if found < known && !migrate {
        return Err(StoreError::SchemaOlder { found, known });
    }
    for (version, step) in (1..=known).zip(steps).filter(|(version, _)| *version > found) {
        tx.execute_batch(step).map_err(error)?;
        tx.execute(
            "INSERT INTO tidings_migration VALUES (?1, CAST(unixepoch('subsec') * 1000 AS INTEGER))",
            [version],
        )
        .map_err(error)?;
    }
    tx.commit().map_err(error)
}
