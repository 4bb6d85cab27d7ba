//! What a caller gets for a job that was taken in: the same for API and command line.

use crate::problem::Problem;
use serde::Serialize;
use tidings::core::job::StateName;
use tidings::{Receipt, Tidings};

/// A receipt, with the state of the job.
#[derive(Debug, Serialize)]
pub(crate) struct Accepted {
    pub(crate) id: String,
    /// `null` where the call was made before and its job is past its retention.
    pub(crate) state: Option<StateName>,
    /// The job was there already: it has the same unique key, or the call was made before.
    pub(crate) existing: bool,
}

impl Accepted {
    pub(crate) async fn of(tidings: &Tidings, receipt: Receipt) -> Result<Accepted, Problem> {
        let state = if receipt.existing {
            tidings.job(receipt.id).await?.map(|view| view.job.state.name())
        } else {
            // What was committed; a worker may have it by now.
            Some(StateName::Pending)
        };
        Ok(Accepted { id: receipt.id.to_string(), state, existing: receipt.existing })
    }
}
