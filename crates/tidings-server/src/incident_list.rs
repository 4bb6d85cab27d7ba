//! Incidents, as somebody asks for them: the same for API and command line.

use crate::listing::{limit, refused};
use crate::problem::Problem;
use crate::view::IncidentDocument;
use serde::Serialize;
use tidings::Tidings;

/// Incidents, newest first.
#[derive(Debug, Serialize)]
pub(crate) struct IncidentPage {
    pub(crate) incidents: Vec<IncidentDocument>,
}

/// Those that are open, or all: `state` is `open` (where absent) or `all`.
pub(crate) async fn page(
    tidings: &Tidings,
    state: Option<&str>,
    limit_written: Option<&str>,
) -> Result<IncidentPage, Problem> {
    let closed_too = match state {
        None | Some("open") => false,
        Some("all") => true,
        Some(_) => return Err(refused("state", "must be one of open, all")),
    };
    let found = tidings.incidents(closed_too, limit(limit_written)?).await?;
    Ok(IncidentPage { incidents: found.into_iter().map(IncidentDocument::from).collect() })
}
