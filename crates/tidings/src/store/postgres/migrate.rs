//! Brings the schema `tidings` up to date, one step a version.
//!
//! Processes that start at once queue up on an advisory lock that ends with its
//! transaction, so it works behind a transaction pooler. Only then is the lock
//! timeout set: a step that meets a busy table fails cleanly and is run again by
//! the next start, instead of queueing everybody behind it.

use crate::store::StoreError;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

/// Any number that nobody else uses: "tidings" in ASCII.
const LOCK: i64 = 0x0074_6964_696e_6773;

/// Runs the steps that are missing, or with `migrate` off only checks that none is.
pub(super) async fn run(client: &mut Client, steps: &[&str], migrate: bool) -> Result<(), StoreError> {
    let known = i64::try_from(steps.len()).expect("there are few migrations");
    let found = version(client).await?;
    if found > known {
        return Err(StoreError::SchemaNewer { found, known });
    }
    if found == known {
        return Ok(());
    }
    if !migrate {
        return Err(StoreError::SchemaOlder { found, known });
    }
    let tx = client.transaction().await.map_err(StoreError::from)?;
    tx.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await.map_err(StoreError::from)?;
    tx.batch_execute(
        "SET LOCAL lock_timeout = '5s';
         CREATE SCHEMA IF NOT EXISTS tidings;
         CREATE TABLE IF NOT EXISTS tidings.migration (
             version    BIGINT      NOT NULL,
             applied_at TIMESTAMPTZ NOT NULL DEFAULT now(),
             CONSTRAINT migration_runs_once PRIMARY KEY (version)
         );",
    )
    .await
    .map_err(|failed| not_made(&failed))?;
    let row = tx
        .query_one("SELECT coalesce(max(version), 0) FROM tidings.migration", &[])
        .await
        .map_err(StoreError::from)?;
    let found: i64 = row.get(0);
    if found > known {
        // A newer program was quicker.
        return Err(StoreError::SchemaNewer { found, known });
    }
    for (version, step) in (1..=known).zip(steps).filter(|(version, _)| *version > found) {
        tx.batch_execute(step).await.map_err(StoreError::from)?;
        tx.execute("INSERT INTO tidings.migration (version) VALUES ($1)", &[&version])
            .await
            .map_err(StoreError::from)?;
    }
    tx.commit().await.map_err(StoreError::from)
}

/// The first start needs a right that the ones after it do not.
fn not_made(failed: &tokio_postgres::Error) -> StoreError {
    match super::error(failed) {
        StoreError::Refused(what) if failed.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
            StoreError::Refused(format!(
                "{what}; the first start makes the schema `tidings`: grant the role CREATE on the database, \
                 or run `tidings migrate` as a role that has it"
            ))
        }
        other => other,
    }
}

/// The version that the database has; 0 where nothing was ever migrated.
async fn version(client: &Client) -> Result<i64, StoreError> {
    let there = client
        .query_one("SELECT to_regclass('tidings.migration') IS NOT NULL", &[])
        .await
        .map_err(StoreError::from)?
        .get::<_, bool>(0);
    if !there {
        return Ok(0);
    }
    let row = client
        .query_one("SELECT coalesce(max(version), 0) FROM tidings.migration", &[])
        .await
        .map_err(StoreError::from)?;
    Ok(row.get(0))
}
