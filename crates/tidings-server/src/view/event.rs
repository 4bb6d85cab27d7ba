//! What happened to a job besides its attempts, as JSON.

use crate::instant;
use serde::Serialize;
use tidings::Resolution;
use tidings::core::fact::{Act, LateReport};
use tidings::core::outcome::{AttemptOutcome, Effect};
use tidings::inspect::{Event, EventView};

/// One event. Members that do not belong to its sort are left out.
#[derive(Debug, Default, Serialize)]
pub(crate) struct EventDocument {
    pub(crate) at: String,
    pub(crate) event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) attempt: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<AttemptOutcome>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) effect: Option<Effect>,
    /// The late report settled the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) settles: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resolution: Option<Resolution>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) actor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
}

impl EventDocument {
    pub(super) fn of(view: &EventView) -> EventDocument {
        let mut document = match &view.what {
            Event::Released { claim } => {
                EventDocument { event: "released", attempt: Some(*claim), ..EventDocument::default() }
            }
            Event::ReportedLate(late) => reported_late(late),
            Event::CancelRequested(act) => by("cancel_requested", act),
            Event::Cancelled(act) => by("cancelled", act),
            Event::Revived(act) => by("revived", act),
            Event::Hurried(act) => by("hurried", act),
            Event::Resolved(resolution, act) => {
                EventDocument { resolution: Some(*resolution), ..by("resolved", act) }
            }
        };
        document.at = instant::text(view.at);
        document
    }
}

fn by(event: &'static str, act: &Act) -> EventDocument {
    EventDocument {
        event,
        actor: Some(act.actor.clone()),
        reason: Some(act.reason.clone()).filter(|reason| !reason.is_empty()),
        ..EventDocument::default()
    }
}

fn reported_late(late: &LateReport) -> EventDocument {
    EventDocument {
        event: "reported_late",
        attempt: Some(late.attempt),
        outcome: Some(late.outcome),
        effect: Some(late.evidence.effect),
        settles: Some(late.settles),
        reason: Some(late.reason.clone()).filter(|reason| !reason.is_empty()),
        ..EventDocument::default()
    }
}
