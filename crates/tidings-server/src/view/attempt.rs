//! One attempt as JSON.

use crate::instant;
use serde::Serialize;
use tidings::core::evidence::HttpEvidence;
use tidings::core::fact::{EndedBy, Next};
use tidings::core::outcome::{AttemptOutcome, Effect, FailureKind, SnoozeSource};
use tidings::inspect::AttemptView;

/// One attempt. In flight, everything about its end is `null`.
#[derive(Debug, Serialize)]
pub(crate) struct AttemptDocument {
    pub(crate) attempt: i64,
    pub(crate) in_flight: bool,
    pub(crate) outcome: Option<AttemptOutcome>,
    pub(crate) effect: Option<Effect>,
    pub(crate) failure_kind: Option<FailureKind>,
    pub(crate) reason: Option<String>,
    pub(crate) started_at: String,
    pub(crate) ended_at: Option<String>,
    pub(crate) duration_ms: Option<i64>,
    pub(crate) http_status: Option<u16>,
    /// When the next attempt is due because of this one.
    pub(crate) next_at: Option<String>,
    pub(crate) next: Option<NextDocument>,
    /// The wait that the policy chose, jitter included.
    pub(crate) delay_ms: Option<i64>,
    /// `name@version`.
    pub(crate) policy_version: Option<String>,
    pub(crate) ended_by: Option<EndedBy>,
    pub(crate) worker: String,
    pub(crate) http: Option<HttpEvidence>,
}

/// What became of the job when the attempt ended.
#[derive(Debug, Serialize)]
pub(crate) struct NextDocument {
    pub(crate) state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<String>,
    /// Why it was discarded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<&'static str>,
    /// Who named the time of a snooze.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) source: Option<SnoozeSource>,
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub(crate) capped: bool,
    /// It was an earlier attempt that was accepted.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub(crate) by_late_report: bool,
}

impl AttemptDocument {
    pub(super) fn of(view: &AttemptView) -> AttemptDocument {
        let end = view.end.as_ref();
        let next = end.map(|end| NextDocument::of(&end.next));
        let http = end.and_then(|end| end.evidence.http.as_deref());
        AttemptDocument {
            attempt: view.attempt,
            in_flight: end.is_none(),
            outcome: end.map(|end| end.outcome),
            effect: end.map(|end| end.evidence.effect),
            failure_kind: end.and_then(|end| end.evidence.failure_kind),
            reason: end.map(|end| end.reason.clone()).filter(|reason| !reason.is_empty()),
            started_at: instant::text(view.started_at),
            ended_at: end.map(|end| instant::text(end.at)),
            duration_ms: end.map(|end| end.at.since(view.started_at).0),
            http_status: http.and_then(|http| http.status),
            next_at: next.as_ref().and_then(|next| next.at.clone()),
            next,
            delay_ms: end.and_then(|end| end.delay_ms),
            policy_version: end.map(|end| end.policy.clone()),
            ended_by: end.map(|end| end.ended_by),
            worker: view.worker.to_string(),
            http: http.cloned(),
        }
    }
}

impl NextDocument {
    fn of(next: &Next) -> NextDocument {
        let plain = |state| NextDocument {
            state,
            at: None,
            why: None,
            source: None,
            capped: false,
            by_late_report: false,
        };
        match next {
            Next::Completed { by_late_report } => {
                NextDocument { by_late_report: *by_late_report, ..plain("completed") }
            }
            Next::Discarded { why } => NextDocument { why: Some(why.as_str()), ..plain("discarded") },
            Next::Cancelled => plain("cancelled"),
            Next::Held => plain("held"),
            Next::Retryable { due_at } => {
                NextDocument { at: Some(instant::text(*due_at)), ..plain("retryable") }
            }
            Next::Snoozed { due_at, source, capped } => NextDocument {
                at: Some(instant::text(*due_at)),
                source: Some(*source),
                capped: *capped,
                ..plain("snoozed")
            },
            Next::Unknown { due_at } => NextDocument { at: Some(instant::text(*due_at)), ..plain("unknown") },
        }
    }
}
