//! A recorded event as JSON: where it stands, and what each subscription made of it.

use crate::instant;
use crate::print::shown;
use serde::Serialize;
use serde_json::value::RawValue;
use tidings::Tidings;
use tidings::core::job::StateName;
use tidings::core::relay::RelayState;
use tidings::routing::{Decided, Decision, MadeJob};
use tidings::store::StoreError;
use tidings::store::outbox::StoredEvent;

/// An event without its data and decisions.
#[derive(Debug, Serialize)]
pub(crate) struct RecordedLine {
    pub(crate) id: String,
    pub(crate) r#type: String,
    /// `waiting`, `fanned_out` or `poisoned`.
    pub(crate) state: &'static str,
    pub(crate) subject: Option<String>,
    pub(crate) tenant: Option<String>,
    pub(crate) occurred_at: String,
    pub(crate) recorded_at: String,
    /// Of one that waits: when it is looked at.
    pub(crate) due_at: Option<String>,
    /// Of one that waits: how often its own fan-out failed.
    pub(crate) failures: Option<u32>,
    /// Since when it is fanned out, or set aside.
    pub(crate) settled_at: Option<String>,
    /// What went wrong last, of one that is set aside or failed.
    pub(crate) reason: Option<String>,
}

/// An event with everything that is known of it.
#[derive(Debug, Serialize)]
pub(crate) struct RecordedDocument {
    #[serde(flatten)]
    pub(crate) event: RecordedLine,
    /// Byte for byte.
    pub(crate) data: Option<Box<RawValue>>,
    pub(crate) subscriptions: Vec<DecisionDocument>,
    pub(crate) verdict: RecordedVerdict,
}

/// What a person may conclude.
#[derive(Debug, Serialize)]
pub(crate) struct RecordedVerdict {
    pub(crate) text: String,
}

/// What one subscription made of the event. Members that do not belong to its
/// decision are left out.
#[derive(Debug, Default, Serialize)]
pub(crate) struct DecisionDocument {
    pub(crate) subscription: String,
    pub(crate) decision: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) jobs: Option<Vec<MadeJobDocument>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) field: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) into: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pattern: Option<String>,
}

/// A job that it became. Past its retention only its id is known.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct MadeJobDocument {
    pub(crate) id: String,
    pub(crate) kind: Option<String>,
    pub(crate) state: Option<StateName>,
    pub(crate) held: bool,
}

/// A page of events.
#[derive(Debug, Serialize)]
pub(crate) struct RecordedPage {
    pub(crate) events: Vec<RecordedLine>,
    /// Where the next page begins, if there is one.
    pub(crate) next_cursor: Option<String>,
}

impl RecordedLine {
    pub(crate) fn of(stored: &StoredEvent) -> RecordedLine {
        let event = &stored.event;
        let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let (due_at, failures, settled_at, reason) = match &stored.state {
            RelayState::Waiting { due_at, failures, reason } => {
                (Some(instant::text(*due_at)), Some(*failures), None, reason.clone())
            }
            RelayState::FannedOut { at } => (None, None, Some(instant::text(*at)), None),
            RelayState::Poisoned { at, reason } => {
                (None, None, Some(instant::text(*at)), Some(reason.clone()))
            }
        };
        RecordedLine {
            id: event.id.to_string(),
            r#type: event.type_name.to_string(),
            state: stored.state.as_str(),
            subject: some(&event.subject),
            tenant: some(&event.tenant),
            occurred_at: instant::text(event.occurred_at),
            recorded_at: instant::text(stored.recorded_at),
            due_at,
            failures,
            settled_at,
            reason,
        }
    }
}

impl RecordedDocument {
    pub(crate) async fn of(stored: &StoredEvent, tidings: &Tidings) -> Result<RecordedDocument, StoreError> {
        let decisions = tidings.decisions(stored).await?;
        let subscriptions: Vec<DecisionDocument> = decisions.into_iter().map(DecisionDocument::of).collect();
        let verdict = RecordedVerdict { text: verdict(stored, &subscriptions) };
        Ok(RecordedDocument {
            event: RecordedLine::of(stored),
            data: RawValue::from_string(stored.event.data.clone()).ok(),
            subscriptions,
            verdict,
        })
    }

    /// The jobs that it became.
    pub(crate) fn jobs(&self) -> Vec<MadeJobDocument> {
        self.subscriptions.iter().flat_map(|decision| decision.jobs.iter().flatten().cloned()).collect()
    }
}

impl DecisionDocument {
    fn of(decision: Decision) -> DecisionDocument {
        let named = |decision| DecisionDocument { decision, ..DecisionDocument::default() };
        let mut document = match decision.decided {
            Decided::Became(jobs) => {
                let jobs = Some(jobs.into_iter().map(MadeJobDocument::of).collect());
                DecisionDocument { jobs, ..named("became") }
            }
            Decided::ToBecome { problem } => DecisionDocument { problem, ..named("to_become") },
            Decided::Filtered { field } => DecisionDocument { field: Some(field), ..named("filtered") },
            Decided::Coalesced { into } => {
                DecisionDocument { into: Some(into.to_string()), ..named("coalesced") }
            }
            Decided::NotMatched { pattern } => {
                DecisionDocument { pattern: Some(pattern), ..named("not_matched") }
            }
            Decided::CameLater => named("came_later"),
        };
        document.subscription = decision.subscription;
        document
    }
}

impl MadeJobDocument {
    fn of(made: MadeJob) -> MadeJobDocument {
        let held = made.job.as_ref().is_some_and(|job| job.state == tidings::core::job::State::Held);
        MadeJobDocument {
            id: made.id.to_string(),
            state: made.job.as_ref().map(|job| job.state.name()),
            kind: made.job.map(|job| job.kind),
            held,
        }
    }
}

fn verdict(stored: &StoredEvent, decisions: &[DecisionDocument]) -> String {
    let id = stored.event.id;
    match &stored.state {
        RelayState::FannedOut { .. } => {
            let jobs: Vec<&MadeJobDocument> =
                decisions.iter().filter_map(|decision| decision.jobs.as_ref()).flatten().collect();
            fanned_out(&jobs)
        }
        RelayState::Waiting { failures: 0, .. } => {
            format!("It waits for the relay of a running server.{}", problems(decisions))
        }
        RelayState::Waiting { due_at, failures, reason } => format!(
            "Its fan-out failed {failures} {}: {}. It is tried again at {}.",
            if *failures == 1 { "time" } else { "times" },
            shown(reason.as_deref().unwrap_or("the reason is not known")),
            instant::text(*due_at),
        ),
        RelayState::Poisoned { reason, .. } => format!(
            "Set aside: {}. When that is mended, put it back with `tidings events requeue {id}`.",
            shown(reason.trim_end_matches('.'))
        ),
    }
}

fn fanned_out(jobs: &[&MadeJobDocument]) -> String {
    let into = match jobs.len() {
        0 => "Fanned out; it became no job of its own.".to_owned(),
        1 => "Fanned out into 1 job.".to_owned(),
        count => format!("Fanned out into {count} jobs."),
    };
    let failed = jobs.iter().filter(|job| job.held || job.state == Some(StateName::Discarded)).count();
    match failed {
        0 => format!("{into} Nothing to do."),
        1 => format!("{into} One of them is discarded or held: `tidings trace` says why."),
        count => format!("{into} {count} of them are discarded or held: `tidings trace` says why."),
    }
}

fn problems(decisions: &[DecisionDocument]) -> String {
    decisions
        .iter()
        .filter_map(|decision| decision.problem.as_ref())
        .map(|problem| format!(" {problem}."))
        .collect()
}
