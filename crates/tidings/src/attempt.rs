//! One attempt, from the claim to its fact: run the handler inside its limits,
//! see how it ended, have it decided, have it written.
//!
//! Deciding is the core's; writing is the group writer's; what stands here is the
//! order of things.

use crate::kind::{RawAttempt, Registered, Report};
use crate::parts::Parts;
use crate::sink::http::Trail;
use crate::store::{Change, Saved, StoreError, Stored};
use crate::writer::GroupWriter;
use futures_util::FutureExt;
use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tidings_core::decide::{Command, Ended};
use tidings_core::evidence::Evidence;
use tidings_core::fact::{EndedBy, Fact};
use tidings_core::id::JobId;
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
    let raw = raw_attempt(kind, stored, trail.clone());
    let handler = Arc::clone(&kind.handler);
    // The handler is called inside, so that a panic before its first await is caught too.
    let mut run = Box::pin(AssertUnwindSafe(async move { handler(raw).await }).catch_unwind());
    let limit = Duration::from_millis(kind.time_limit.0.unsigned_abs());
    let end = tokio::select! {
        // What a handler has said counts, also when it was about to be stopped.
        biased;
        ended = &mut run => match ended {
            Ok(Report { outcome, mut evidence }) => {
                evidence.http = evidence.http.or_else(|| trail.evidence().map(Box::new));
                End { ended: Ended::Returned(outcome), evidence }
            }
            Err(panic) => panicked(&trail, &*panic),
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
    if let Err(panic) = std::panic::catch_unwind(AssertUnwindSafe(|| drop(run))) {
        tracing::error!(job = %stored.job.id, reason = %panic_message(&*panic), "a handler panicked while it was stopped");
    }
    end
}

fn raw_attempt(kind: &Registered, stored: &Stored, trail: Trail) -> RawAttempt {
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
        policy: Arc::clone(&kind.policy),
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

/// A panic is retryable, like any error that nobody classified; but not over a
/// request of which a byte has left: that may have happened.
fn panicked(trail: &Trail, panic: &(dyn Any + Send)) -> End {
    let http = trail.evidence().map(Box::new);
    let message = panic_message(panic);
    let outcome =
        if trail.something_was_sent() { Outcome::unknown(message) } else { Outcome::retryable(message) };
    let evidence = Evidence { effect: effect_so_far(trail), failure_kind: Some(FailureKind::Panic), http };
    End { ended: Ended::Returned(outcome), evidence }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let message = panic.downcast_ref::<&str>().copied();
    let message = message.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("the handler panicked: {}", text::reason(message.unwrap_or("its message is not text")))
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
    let mut may_be_written = false;
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
            Ok(_) => match look_again(parts, id, attempt, may_be_written).await {
                Ok(Now::Job(now)) => {
                    job = now;
                    continue;
                }
                Ok(Now::Recorded(now)) => {
                    announce(parts, &now, &now.state);
                    return;
                }
                Ok(Now::Gone) => return,
                Err(problem) => problem,
            },
            Err(problem) => problem,
        };
        may_be_written = true;
        if !problem.is_transient() || parts.clock.now() > give_up_at {
            tracing::error!(job = %id, attempt, %problem, "a report is lost; the sweep will call the attempt unknown");
            return;
        }
        tracing::warn!(job = %id, attempt, %problem, "a report waits for the database");
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(WRITE_PAUSE_MAX);
    }
}

/// What a worker finds whose write was refused because the job has moved on.
enum Now {
    /// Somebody else changed it.
    Job(Job),
    /// The worker itself did: an earlier write was done, only its answer was lost.
    Recorded(Job),
    /// It is past its retention.
    Gone,
}

async fn look_again(parts: &Parts, id: JobId, attempt: i64, may_be_written: bool) -> Result<Now, StoreError> {
    let Some(stored) = parts.store.load(&[id]).await?.into_iter().next().flatten() else {
        return Ok(Now::Gone);
    };
    if !may_be_written {
        return Ok(Now::Job(stored.job));
    }
    let history = parts.store.history(&[id]).await?;
    let recorded = history.into_iter().flatten().any(|line| match line.fact {
        Fact::AttemptEnded(end) => end.attempt == attempt && end.ended_by == EndedBy::Worker,
        Fact::ReportedLate(late) => late.attempt == attempt,
        _ => false,
    });
    Ok(if recorded { Now::Recorded(stored.job) } else { Now::Job(stored.job) })
}

pub(crate) fn announce(parts: &Parts, job: &Job, after: &State) {
    match after {
        // Its next attempt may be sooner than what the queue's loop sleeps for.
        State::Waiting { .. } => parts.wakes.queue(&job.queue).notify_one(),
        State::Running { .. } => {}
        State::Held | State::Completed { .. } | State::Discarded { .. } | State::Cancelled { .. } => {
            parts.wakes.settled(job.id.0);
        }
    }
}

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use super::*;
    use crate::kind::{Attempt, Declaration, Kind};
    use crate::sink::http::{HttpRequest, HttpSink, HttpSinkConfig};
    use crate::testing::{perform, take_one, throw_away};
    use crate::{Preset, Tidings};
    use serde::{Deserialize, Serialize};
    use testkit::receiver::{Receiver, Step};
    use tidings_core::guard::GuardRules;

    #[derive(Serialize, Deserialize)]
    struct Call {
        url: String,
    }

    impl Kind for Call {
        const DECLARATION: Declaration = Declaration::new("call").policy(Preset::Default);
    }

    async fn sends_and_panics(sink: HttpSink, attempt: Attempt<Call>) -> Outcome {
        let (method, url) = (http::Method::POST, attempt.args.url);
        let request = HttpRequest { method, url, headers: Vec::new(), body: bytes::Bytes::new() };
        sink.send(request, attempt.started_at, &attempt.trail).await;
        panic!("after the request")
    }

    #[tokio::test]
    async fn a_panic_after_a_request_has_left_is_unknown_and_before_it_is_retryable() {
        let guard = GuardRules { allow_private: true, ..GuardRules::default() };
        let sink = HttpSink::new(HttpSinkConfig { guard, ..HttpSinkConfig::default() }).unwrap();
        let tidings = throw_away(Tidings::builder().kind(sink, sends_and_panics)).await;
        let receiver = Receiver::start([Step::status(200)]).await;
        for (url, effect) in [(receiver.url("/"), Effect::Possible), ("nowhere".into(), Effect::None)] {
            let report = perform(&tidings, Call { url }).await;
            assert_eq!(report.evidence.effect, effect);
            assert_eq!(report.evidence.failure_kind, Some(FailureKind::Panic));
            let unknown = matches!(report.outcome, Outcome::Unknown(_));
            assert_eq!(unknown, effect == Effect::Possible, "{:?}", report.outcome);
        }
    }

    /// Without an order the two would be drawn for: 64 times the same is no luck.
    #[tokio::test]
    async fn what_a_handler_has_said_counts_although_it_was_about_to_be_stopped() {
        let accepts = |(), _: Attempt<Call>| std::future::ready(Outcome::Accepted);
        let tidings = throw_away(Tidings::builder().kind((), accepts)).await;
        tidings.enqueue(Call { url: String::new() }).await.unwrap();
        let stored = take_one(&tidings).await.unwrap().unwrap();
        let kind = tidings.registry().get("call").unwrap();
        for _ in 0..64 {
            let reins = Reins { cancelled: Arc::new(Notify::new()), stopped: watch::channel(true).1 };
            reins.cancelled.notify_one();
            let end = execute(kind, &stored, reins).await;
            assert_eq!(end.ended, Ended::Returned(Outcome::Accepted));
        }
    }
}
