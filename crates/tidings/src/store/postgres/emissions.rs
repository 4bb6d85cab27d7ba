//! Triggers that `tidings.emit_on_change` installed and that do not record what they should
//! any more: a column was dropped, a trigger is gone. The user's writes go on, so
//! somebody has to be told.

use super::verbs::{Result, Run};
use deadpool_postgres::Client;

/// One installation with something wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenEmission {
    /// The table, with its schema.
    pub table: String,
    /// The event type.
    pub type_name: String,
    /// What is wrong and what to do.
    pub problem: String,
}

/// Those with something wrong.
pub(super) async fn broken(client: &Client) -> Result<Vec<BrokenEmission>> {
    const BROKEN: &str = "SELECT target, type, problem FROM tidings.emissions() WHERE problem IS NOT NULL";
    let rows = client.rows(BROKEN, &[]).await?;
    let read = |row: &tokio_postgres::Row| BrokenEmission {
        table: row.get(0),
        type_name: row.get(1),
        problem: row.get(2),
    };
    Ok(rows.iter().map(read).collect())
}

/// Says so in the log, once a start.
pub(super) async fn warn_of_broken(client: &Client) {
    match broken(client).await {
        Ok(found) => {
            for BrokenEmission { table, type_name, problem } in found {
                tracing::warn!(table, type_name, problem, "a table does not record its events as installed");
            }
        }
        Err(problem) => tracing::warn!(%problem, "the triggers that record events could not be looked at"),
    }
}
