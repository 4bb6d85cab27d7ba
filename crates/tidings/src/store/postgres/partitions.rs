//! The log's partitions: one a week, made ahead, dropped whole when every fact in
//! one is older than retention keeps.
//!
//! A dropped partition costs nothing and locks for a moment; deleting millions of
//! rows bloats the table and makes claims wait. Facts whose week has no partition
//! yet go to `fact_otherwise`, so that a late housekeeper loses nothing.

use crate::store::StoreError;
use tidings_core::time::{Millis, Time};
use tokio_postgres::Client;

const WEEK: Millis = Millis::from_days(7);
/// Weeks made ahead, besides the present one.
const AHEAD: i64 = 2;

/// Makes the partitions of this week and the next ones.
pub(super) async fn keep(client: &mut Client, now: Time) -> Result<(), StoreError> {
    let present = now.0.div_euclid(WEEK.0);
    for week in present..=present + AHEAD {
        make(client, week).await?;
    }
    Ok(())
}

/// Drops the partitions that hold nothing recorded at `before` or later; how many.
pub(super) async fn drop_before(client: &mut Client, before: Time) -> Result<u64, StoreError> {
    let mut dropped = 0;
    for week in weeks(client).await? {
        if (week + 1) * WEEK.0 > before.0 {
            continue;
        }
        let tx = client.transaction().await.map_err(StoreError::from)?;
        tx.batch_execute(&format!(
            "SET LOCAL lock_timeout = '2s'; DROP TABLE IF EXISTS tidings.{}",
            name(week)
        ))
        .await
        .map_err(StoreError::from)?;
        tx.commit().await.map_err(StoreError::from)?;
        dropped += 1;
    }
    Ok(dropped)
}

/// The weeks, counted from the epoch, that have a partition.
async fn weeks(client: &Client) -> Result<Vec<i64>, StoreError> {
    let rows = client
        .query(
            "SELECT relname::text FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
             WHERE inhparent = 'tidings.fact'::regclass",
            &[],
        )
        .await
        .map_err(StoreError::from)?;
    Ok(rows.iter().filter_map(|row| row.get::<_, &str>(0).strip_prefix("fact_week_")?.parse().ok()).collect())
}

/// Writers of the log wait for the moment that this takes: one that had chosen
/// `fact_otherwise` before the week had its own partition would be refused. The
/// week is empty in `fact_otherwise`, or the attach fails and those facts stay there.
async fn make(client: &mut Client, week: i64) -> Result<(), StoreError> {
    let table = name(week);
    let there = client
        .query_one("SELECT to_regclass($1) IS NOT NULL", &[&format!("tidings.{table}")])
        .await
        .map_err(StoreError::from)?
        .get::<_, bool>(0);
    if there {
        return Ok(());
    }
    let (from, to) = (week * WEEK.0, (week + 1) * WEEK.0);
    let tx = client.transaction().await.map_err(StoreError::from)?;
    let made = tx
        .batch_execute(&format!(
            "SET LOCAL lock_timeout = '2s';
             SELECT pg_advisory_xact_lock(hashtext('tidings.fact'));
             LOCK TABLE tidings.fact IN SHARE ROW EXCLUSIVE MODE;
             CREATE TABLE IF NOT EXISTS tidings.{table} (LIKE tidings.fact INCLUDING ALL);
             DO $$ BEGIN
                 IF NOT EXISTS (SELECT 1 FROM pg_inherits WHERE inhrelid = 'tidings.{table}'::regclass) THEN
                     ALTER TABLE tidings.fact ATTACH PARTITION tidings.{table} FOR VALUES FROM ({from}) TO ({to});
                     CREATE TRIGGER facts_are_not_truncated BEFORE TRUNCATE ON tidings.{table}
                         FOR EACH STATEMENT EXECUTE FUNCTION tidings.refuse_change();
                 END IF;
             END $$;"
        ))
        .await;
    match made {
        Ok(()) => tx.commit().await.map_err(StoreError::from),
        Err(failed) if failed.code() == Some(&tokio_postgres::error::SqlState::CHECK_VIOLATION) => {
            tracing::warn!(week, "facts of a week stay in fact_otherwise: it had no partition in time");
            Ok(())
        }
        Err(failed) => Err(failed.into()),
    }
}

fn name(week: i64) -> String {
    format!("fact_week_{week}")
}
