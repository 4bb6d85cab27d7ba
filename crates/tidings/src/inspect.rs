//! The read model: what people and programs see of a job.
//!
//! Everything here comes from the row and its facts; nothing is kept twice. The
//! API, the command line and the panel show these values and no others.

use crate::store::{JobFilter, Logged, Store, StoreError, Stored};
use std::sync::Arc;
use tidings_core::evidence::Evidence;
use tidings_core::fact::{Act, EndedBy, Fact, LateReport, Next, Resolution};
use tidings_core::id::{JobId, WorkerId};
use tidings_core::job::{Job, State};
use tidings_core::outcome::AttemptOutcome;
use tidings_core::time::Time;

/// A job with everything that is known of it.
#[derive(Clone, Debug)]
pub struct JobView {
    /// As it stands.
    pub job: Job,
    /// JSON text, as it was given.
    pub args: Arc<str>,
    /// Its attempts, oldest first; one in flight is the last.
    pub attempts: Vec<AttemptView>,
    /// What else happened: deeds of people, late reports.
    pub events: Vec<EventView>,
}

/// One attempt.
#[derive(Clone, Debug)]
pub struct AttemptView {
    /// Its number, from 1. Numbers are never reused; one that was given back unused is left out.
    pub attempt: i64,
    /// Who made it.
    pub worker: WorkerId,
    /// When it started.
    pub started_at: Time,
    /// How it ended; `None` while it is in flight.
    pub end: Option<AttemptEndView>,
}

/// How an attempt ended.
#[derive(Clone, Debug)]
pub struct AttemptEndView {
    /// When.
    pub at: Time,
    /// Who ended it.
    pub ended_by: EndedBy,
    /// What it came to.
    pub outcome: AttemptOutcome,
    /// Why; empty for an accepted one.
    pub reason: String,
    /// What was learnt.
    pub evidence: Evidence,
    /// `name@version` of the policy that decided what comes next.
    pub policy: String,
    /// The wait that it chose, in milliseconds.
    pub delay_ms: Option<i64>,
    /// What became of the job.
    pub next: Next,
}

/// Something that happened to a job besides its attempts.
#[derive(Clone, Debug)]
pub struct EventView {
    /// When.
    pub at: Time,
    /// What.
    pub what: Event,
}

/// See [`EventView`].
#[derive(Clone, Debug)]
pub enum Event {
    /// A worker gave it back untouched.
    Released {
        /// The claim that was given back.
        claim: i64,
    },
    /// A worker reported after its lease.
    ReportedLate(LateReport),
    /// Somebody asked to cancel it while it ran.
    CancelRequested(Act),
    /// Somebody cancelled it.
    Cancelled(Act),
    /// Somebody brought it back.
    Revived(Act),
    /// Somebody did not want to wait.
    Hurried(Act),
    /// Somebody decided about an unknown outcome.
    Resolved(Resolution, Act),
}

/// The job of that id with its history.
///
/// # Errors
/// When the store cannot be read.
pub async fn job(store: &dyn Store, id: JobId) -> Result<Option<JobView>, StoreError> {
    // The log first: a job read after its log may be ahead of it by an attempt in
    // flight, but never shows an end that its row does not know.
    let history = store.history(&[id]).await?;
    let stored = store.load(&[id]).await?;
    let stored = stored.into_iter().next().flatten();
    Ok(stored.map(|stored| view(stored, history.into_iter().next().unwrap_or_default())))
}

/// Jobs, newest first, without their histories.
///
/// # Errors
/// When the store cannot be read.
pub async fn jobs(store: &dyn Store, filter: &JobFilter) -> Result<Vec<Job>, StoreError> {
    store.list(filter).await
}

fn view(stored: Stored, log: Vec<Logged>) -> JobView {
    let mut attempts = Vec::new();
    let mut events = Vec::new();
    for Logged { at, fact, .. } in log {
        match fact {
            Fact::AttemptEnded(end) => attempts.push(AttemptView {
                attempt: end.attempt,
                worker: end.worker,
                started_at: end.started_at,
                end: Some(AttemptEndView {
                    at,
                    ended_by: end.ended_by,
                    outcome: end.outcome,
                    reason: end.reason,
                    evidence: end.evidence,
                    policy: end.policy,
                    delay_ms: end.delay_ms,
                    next: end.next,
                }),
            }),
            other => events.extend(event(other).map(|what| EventView { at, what })),
        }
    }
    if let State::Running { claim, .. } = &stored.job.state {
        let (attempt, worker, started_at) = (claim.number, claim.worker, claim.started_at);
        attempts.push(AttemptView { attempt, worker, started_at, end: None });
    }
    JobView { job: stored.job, args: stored.args, attempts, events }
}

fn event(fact: Fact) -> Option<Event> {
    match fact {
        Fact::Claimed(_) | Fact::AttemptEnded(_) => None,
        Fact::Released { claim, .. } => Some(Event::Released { claim }),
        Fact::ReportedLate(late) => Some(Event::ReportedLate(*late)),
        Fact::CancelRequested(act) => Some(Event::CancelRequested(act)),
        Fact::Cancelled(act) => Some(Event::Cancelled(act)),
        Fact::Revived { act, .. } => Some(Event::Revived(act)),
        Fact::Hurried { act, .. } => Some(Event::Hurried(act)),
        Fact::Resolved { resolution, act, .. } => Some(Event::Resolved(resolution, act)),
    }
}
