//! `tidings migrate`.

use super::Context;
use crate::config::Config;
use crate::database::{self, Schema};
use crate::exit::Exit;
use crate::problem::Problem;
use serde_json::json;

/// Brings the schema up to date. Again, it does nothing.
pub(crate) async fn run(context: &Context, config: &Config) -> Result<Exit, Problem> {
    let tidings = database::open(config, Schema::Migrate).await?;
    let (address, backend) = (config.database.to_string(), tidings.store().backend());
    context.style.result(
        || format!("{address} is up to date"),
        &json!({ "database": address, "backend": backend, "up_to_date": true }),
    )?;
    Ok(Exit::Done)
}
