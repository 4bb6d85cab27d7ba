//! What a caller gets for an event that was recorded: the same for API and command line.

use crate::problem::Problem;
use crate::view::{MadeJobDocument, RecordedDocument};
use serde::Serialize;
use tidings::core::relay::RelayState;
use tidings::{EventReceipt, Tidings};

/// A receipt, with the state of the event.
#[derive(Debug, Serialize)]
pub(crate) struct RecordedReceipt {
    pub(crate) id: String,
    /// `null` where the call was made before and its event is past its retention.
    pub(crate) state: Option<&'static str>,
    /// The call was made before, with the same key.
    pub(crate) existing: bool,
    /// What it became; `null` before it is fanned out.
    pub(crate) jobs: Option<Vec<MadeJobDocument>>,
}

impl RecordedReceipt {
    /// Just after the commit.
    pub(crate) async fn of(tidings: &Tidings, receipt: EventReceipt) -> Result<RecordedReceipt, Problem> {
        if receipt.existing {
            return RecordedReceipt::read(tidings, receipt).await;
        }
        // What was committed; the relay may have it by now.
        let state = Some(WAITING);
        Ok(RecordedReceipt { id: receipt.id.to_string(), state, existing: false, jobs: None })
    }

    /// As the event stands now.
    pub(crate) async fn read(tidings: &Tidings, receipt: EventReceipt) -> Result<RecordedReceipt, Problem> {
        let stored = tidings.event(receipt.id).await?;
        let jobs = match &stored {
            Some(stored) if matches!(stored.state, RelayState::FannedOut { .. }) => {
                Some(RecordedDocument::of(stored, tidings).await?.jobs())
            }
            Some(_) | None => None,
        };
        let state = stored.map(|stored| stored.state.as_str());
        Ok(RecordedReceipt { id: receipt.id.to_string(), state, existing: receipt.existing, jobs })
    }
}

const WAITING: &str = RelayState::Waiting { due_at: tidings::Time(0), failures: 0, reason: None }.as_str();
