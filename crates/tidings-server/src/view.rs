//! One rendering of a job as JSON, for the API and the command line alike.
//!
//! The contract of `docs/http.md`. Absent values are `null`, so that a reader sees
//! which members there are. Arguments are shown without their secrets, otherwise
//! byte for byte.

mod attempt;
mod event;
mod incident;
mod recorded;

pub(crate) use attempt::AttemptDocument;
pub(crate) use event::EventDocument;
pub(crate) use incident::{BacklogDocument, IncidentDocument};
pub(crate) use recorded::{DecisionDocument, MadeJobDocument, RecordedDocument, RecordedLine, RecordedPage};

use crate::instant;
use crate::verdict::Verdict;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tidings::Tidings;
use tidings::core::event::{EventId, TypeName};
use tidings::core::job::{Job, State, StateName};
use tidings::inspect::JobView;
use tidings::kind::http_call::HttpCall;

/// A job without its history.
#[derive(Debug, Serialize)]
pub(crate) struct JobLine {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) state: StateName,
    /// The outcome is unknown and a person decides.
    pub(crate) held: bool,
    /// When it next needs attention; of a running one, when its lease is over.
    pub(crate) due_at: Option<String>,
    pub(crate) queue: String,
    pub(crate) priority: i16,
    pub(crate) tenant: Option<String>,
    pub(crate) enqueued_at: String,
    pub(crate) run_at: String,
    pub(crate) finished_at: Option<String>,
    pub(crate) cancel_requested: bool,
    pub(crate) counters: CountersDocument,
}

/// What happened to a job how often.
#[derive(Debug, Serialize)]
pub(crate) struct CountersDocument {
    /// Attempts started; it numbers them.
    pub(crate) claims: i64,
    /// Attempts that the policy counts.
    pub(crate) attempts: u32,
    pub(crate) snoozes: i64,
    pub(crate) crashes: u32,
}

/// A job with everything that is known of it.
#[derive(Debug, Serialize)]
pub(crate) struct JobDocument {
    #[serde(flatten)]
    pub(crate) job: JobLine,
    /// The event that it was made from, where its arguments are one.
    pub(crate) from_event: Option<EventId>,
    /// Without secrets; `null` where this program does not know the kind.
    pub(crate) args: Option<Box<RawValue>>,
    pub(crate) attempts: Vec<AttemptDocument>,
    pub(crate) events: Vec<EventDocument>,
    pub(crate) verdict: Verdict,
}

/// A page of jobs.
#[derive(Debug, Serialize)]
pub(crate) struct JobPage {
    pub(crate) jobs: Vec<JobLine>,
    /// Where the next page begins, if there is one.
    pub(crate) next_cursor: Option<String>,
}

impl JobLine {
    pub(crate) fn of(job: &Job) -> JobLine {
        let counters = job.counters;
        JobLine {
            id: job.id.to_string(),
            kind: job.kind.clone(),
            state: job.state.name(),
            held: job.state == State::Held,
            due_at: job.state.due_at().map(instant::text),
            queue: job.queue.clone(),
            priority: job.priority.get(),
            tenant: Some(job.tenant.clone()).filter(|tenant| !tenant.is_empty()),
            enqueued_at: instant::text(job.enqueued_at),
            run_at: instant::text(job.run_at),
            finished_at: job.state.finished_at().map(instant::text),
            cancel_requested: matches!(job.state, State::Running { cancel_requested: true, .. }),
            counters: CountersDocument {
                claims: counters.claims,
                attempts: counters.attempts,
                snoozes: counters.snoozes,
                crashes: counters.crashes,
            },
        }
    }
}

impl JobDocument {
    pub(crate) fn of(view: &JobView, tidings: &Tidings) -> JobDocument {
        let shown = tidings.registry().shown_args(&view.job.kind, &view.args);
        JobDocument {
            job: JobLine::of(&view.job),
            from_event: from_event(&view.args),
            args: shown.and_then(|args| RawValue::from_string(args).ok()),
            attempts: view.attempts.iter().map(AttemptDocument::of).collect(),
            events: view.events.iter().map(EventDocument::of).collect(),
            verdict: Verdict::of(view, receiver_dedupes(view)),
        }
    }
}

/// The relay hands the event over as the arguments: whatever has just its members is one.
fn from_event(args: &str) -> Option<EventId> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Envelope {
        id: EventId,
        #[serde(rename = "type")]
        _type_name: TypeName,
        #[serde(rename = "tenant")]
        _tenant: IgnoredAny,
        #[serde(rename = "subject")]
        _subject: IgnoredAny,
        #[serde(rename = "occurred_at_ms")]
        _occurred_at_ms: i64,
        #[serde(rename = "data")]
        _data: IgnoredAny,
    }
    serde_json::from_str::<Envelope>(args).ok().map(|envelope| envelope.id)
}

/// Whether the call says that its receiver can tell a repeat.
fn receiver_dedupes(view: &JobView) -> bool {
    view.job.kind == "http.call"
        && serde_json::from_str::<HttpCall>(&view.args)
            .is_ok_and(|call| call.secret.is_some() || call.idempotent)
}
