//! One attempt, from the claim to its fact: run the handler inside its limits,
//! see how it ended, have it decided, have it written.
//!
//! Deciding is the core's; writing is the group writer's; what stands here is the
//! order of things.

use crate::kind::{RawAttempt, Registered, Report};
use crate::parts::Parts;
use crate::sink::http::Trail;
use crate::store::{Change, Saved, Stored};
use crate::writer::GroupWriter;
use futures_util::FutureExt;
use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tidings_core::decide::{Command, Ended};
use tidings_core::evidence::Evidence;
use tidings_core::job::{Job, State};
use tidings_core::outcome::{Effect, FailureKind, Outcome};
use tidings_core::text;
use tidings_core::time::{Millis, Time};
use tokio::sync::{Notify, watch};

/// First pause before a report that could not be written is tried again; it doubles.
const WRITE_PAUSE_FIRST: Duration = Duration::from_millis(50);
const WRITE_PAUSE_MAX: Duration = Duration::from_secs(5);
/// How long after its lease a report is still worth keeping alive in memory.
const WRITE_PATIENCE: Millis = Millis::from_minutes(10);

/// What may end a handler before it ends itself.
pub(crate) struct Reins {
    /// Somebody cancelled the job.
    pub(crate) cancelled: Arc<Notify>,
    /// The process stops, and the grace is over.
    pub(crate) stopped: watch::Receiver<bool>,
}

/// How a handler's run ended, with what was learnt.
pub(crate) struct End {
    pub(crate) ended: Ended,
    pub(crate) evidence: Evidence,
}

/// Runs a claimed job's handler and records how it ended.
pub(crate) async fn run(parts: &Parts, reports: &GroupWriter<Change, Saved>, stored: Stored, reins: Reins) {
    let Some(kind) = parts.registry.get(&stored.job.kind) else { return };
    let end = execute(kind, &stored, reins).await;
    record(parts, reports, kind, stored.job, end).await;
}

/// Runs the handler inside its time limit. When this returns, the handler's
/// future is gone, and with it its connection: no next attempt can overlap it.
pub(crate) async fn execute(kind: &Registered, stored: &Stored, mut reins: Reins) -> End {
    let trail = Trail::default();
    let raw = raw_attempt(stored, trail.clone());
    let handler = Arc::clone(&kind.handler);
    // The handler is called inside, so that a panic before its first await is caught too.
    let mut run = Box::pin(AssertUnwindSafe(async move { handler(raw).await }).catch_unwind());
    let limit = Duration::from_millis(kind.time_limit.0.unsigned_abs());
    let end = tokio::select! {
        ended = &mut run => match ended {
            Ok(Report { outcome, evidence }) => End { ended: Ended::Returned(outcome), evidence },
            Err(panic) => panicked(&*panic),
        },
        () = tokio::time::sleep(limit) => {
            interrupted(&trail, FailureKind::TimeLimit, &format!("the handler ran into its time limit of {} ms", kind.time_limit.0))
        }
        () = reins.cancelled.notified() => {
            let effect = effect_so_far(&trail);
            End { ended: Ended::Cancelled, evidence: Evidence { effect, failure_kind: None, http: trail.evidence().map(Box::new) } }
        }
        () = is_true(&mut reins.stopped) => {
            interrupted(&trail, FailureKind::Stopped, "the process was stopped before the handler had finished")
        }
    };
    drop(run);
    end
}

fn raw_attempt(stored: &Stored, trail: Trail) -> RawAttempt {
    let started_at = match &stored.job.state {
        State::Running { claim, .. } => claim.started_at,
        State::Waiting { .. }
        | State::Held
        | State::Completed { .. }
        | State::Discarded { .. }
        | State::Cancelled { .. } => stored.job.run_at,
    };
    RawAttempt {
        args: Arc::clone(&stored.args),
        job_id: stored.job.id,
        number: stored.job.counters.claims,
        tenant: stored.job.tenant.clone(),
        started_at,
        trail,
    }
}

/// A handler that was stopped says nothing itself. Its trail does: if a sink was
/// used and not one byte of a request left, nothing happened; else nobody knows.
fn interrupted(trail: &Trail, kind: FailureKind, reason: &str) -> End {
    let http = trail.evidence().map(Box::new);
    let effect = effect_so_far(trail);
    let outcome = if effect == Effect::None { Outcome::retryable(reason) } else { Outcome::unknown(reason) };
    End { ended: Ended::Returned(outcome), evidence: Evidence { effect, failure_kind: Some(kind), http } }
}

fn effect_so_far(trail: &Trail) -> Effect {
    if trail.nothing_was_sent() { Effect::None } else { Effect::Possible }
}

fn panicked(panic: &(dyn Any + Send)) -> End {
    let message = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "without a message".into());
    let reason = format!("the handler panicked: {}", text::reason(&message));
    let evidence = Evidence::plain(Effect::Possible, Some(FailureKind::Panic));
    End { ended: Ended::Returned(Outcome::retryable(reason)), evidence }
}

/// Pending for as long as it is false, or if nobody can set it any more.
async fn is_true(flag: &mut watch::Receiver<bool>) {
    if flag.wait_for(|stopped| *stopped).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Has the end decided and written, until it is. Someone else's write in between
/// (a cancel, a sweep) means deciding again from what the job is now. A database
/// that is away is waited for: the outcome is known and must not be lost to a
/// restart of the database. If the process dies here, the sweep says *unknown*.
async fn record(
    parts: &Parts,
    reports: &GroupWriter<Change, Saved>,
    kind: &Registered,
    mut job: Job,
    end: End,
) {
    let (id, attempt) = (job.id, job.counters.claims);
    let give_up_at = job.state.due_at().unwrap_or(Time(0)) + WRITE_PATIENCE;
    let draw = parts.terms.draw();
    let mut pause = WRITE_PAUSE_FIRST;
    loop {
        let report = Command::Report {
            attempt,
            ended: end.ended.clone(),
            evidence: end.evidence.clone(),
            policy: &kind.policy,
            draw,
        };
        let change = match Change::decide(&job, report, parts.clock.now()) {
            Ok(change) => change,
            Err(refusal) => {
                tracing::warn!(job = %id, attempt, %refusal, "a report was refused");
                return;
            }
        };
        let after = change.after.state.clone();
        let problem = match reports.write(vec![change]).await.map(|saved| saved.first().copied()) {
            Ok(Some(Saved::Yes)) => {
                announce(parts, &job, &after);
                return;
            }
            Ok(_) => match parts.store.load(&[id]).await {
                Ok(found) => match found.into_iter().next().flatten() {
                    Some(stored) => {
                        job = stored.job;
                        continue;
                    }
                    None => return,
                },
                Err(problem) => problem,
            },
            Err(problem) => problem,
        };
        if !problem.is_transient() || parts.clock.now() > give_up_at {
            tracing::error!(job = %id, attempt, %problem, "a report is lost; the sweep will call the attempt unknown");
            return;
        }
        tracing::warn!(job = %id, attempt, %problem, "a report waits for the database");
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(WRITE_PAUSE_MAX);
    }
}

fn announce(parts: &Parts, job: &Job, after: &State) {
    match after {
        // Its next attempt may be sooner than what the queue's loop sleeps for.
        State::Waiting { .. } => parts.wakes.queue(&job.queue).notify_one(),
        State::Running { .. } => {}
        State::Held | State::Completed { .. } | State::Discarded { .. } | State::Cancelled { .. } => {
            parts.wakes.settled(job.id);
        }
    }
}
