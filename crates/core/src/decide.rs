//! What may happen next. The only place that knows the rules of a job's life.
//!
//! [`decide`] answers a command with the facts to record, in order, or with a
//! named refusal. It is one total match: a new state or command is a compile
//! error here, and a changed row in `docs/job-states.md`.

mod attempt;

use crate::evidence::Evidence;
use crate::fact::{Act, Fact, Resolution};
use crate::id::WorkerId;
use crate::job::{Claim, Job, State};
use crate::outcome::Outcome;
use crate::policy::{Draw, OnUnknown, Policy};
use crate::time::{Millis, Time};

/// What somebody wants to happen to a job.
#[derive(Clone, Debug)]
pub enum Command<'a> {
    /// A worker takes it.
    Start {
        /// Who.
        worker: WorkerId,
        /// For how long.
        lease: Millis,
        /// What becomes of the job if the worker is never heard of again.
        on_unknown: OnUnknown,
    },
    /// A worker tells what its attempt came to.
    Report {
        /// The attempt's number.
        attempt: i64,
        /// How it ended.
        ended: Ended,
        /// What was learnt.
        evidence: Evidence,
        /// The kind's policy.
        policy: &'a Policy,
        /// For the jitter.
        draw: Draw,
    },
    /// A worker gives a job back that it never started.
    Release {
        /// The attempt that was not made.
        attempt: i64,
    },
    /// A lease is over.
    Sweep {
        /// The kind's policy.
        policy: &'a Policy,
        /// For the jitter.
        draw: Draw,
    },
    /// Stop it, or never start it.
    Cancel(Act),
    /// Bring it back from discarded or cancelled, or do not wait for its next attempt.
    Retry(Act),
    /// Decide about an unknown outcome.
    Resolve(Resolution, Act),
}

/// How a handler's run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It returned.
    Returned(Outcome),
    /// It was stopped because somebody had cancelled the job.
    Cancelled,
}

/// Why a command was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Start before the due time.
    #[error("the job is not due yet")]
    NotDue,
    /// Start or release of a job that a worker has.
    #[error("a worker has the job already")]
    Running,
    /// Start of a held job.
    #[error("the job's last outcome is unknown and a person has to decide: resolve it first")]
    Held,
    /// Start or cancel of a finished job.
    #[error("the job has already finished")]
    Finished,
    /// Retry of a job that was accepted.
    #[error("the job was accepted; it never runs again. Enqueue a new one")]
    Accepted,
    /// Retry of a running job.
    #[error("an attempt is in flight; wait for it to end, or cancel the job")]
    InFlight,
    /// Report or release of an attempt that was never made, or was reported already.
    #[error("this attempt is not in flight")]
    NoSuchAttempt,
    /// Sweep before the lease is over.
    #[error("the lease is not over yet")]
    LeaseNotOver,
    /// Sweep of a job that nobody has.
    #[error("no worker has the job")]
    NotRunning,
    /// Resolve of a job whose outcome is known.
    #[error("the job's last outcome is not unknown, so there is nothing to resolve")]
    NotUnknown,
}

/// Answers `command` with the facts to record, in order. No facts means that
/// what was asked for is already so.
///
/// # Errors
/// A refusal: nothing is to be recorded.
pub fn decide(job: &Job, command: Command<'_>, now: Time) -> Result<Vec<Fact>, Refusal> {
    use State::{Cancelled, Completed, Discarded, Held, Running, Waiting};
    match (&job.state, command) {
        (Waiting { why, due_at }, Command::Start { worker, lease, on_unknown }) => {
            if now < *due_at {
                return Err(Refusal::NotDue);
            }
            let number = job.counters.claims + 1;
            let lease_until = now + lease;
            let from = *why;
            Ok(vec![Fact::Claimed(Claim { number, worker, started_at: now, lease_until, from, on_unknown })])
        }
        (Running { .. }, Command::Start { .. }) => Err(Refusal::Running),
        (Held, Command::Start { .. }) => Err(Refusal::Held),
        (Completed { .. } | Discarded { .. } | Cancelled { .. }, Command::Start { .. }) => {
            Err(Refusal::Finished)
        }

        (_, Command::Report { attempt, ended, evidence, policy, draw }) => {
            attempt::report(job, attempt::Report { attempt, ended, evidence, policy, draw }, now)
        }

        (Running { claim, cancel_requested, accepted_late }, Command::Release { attempt }) => {
            if claim.number != attempt {
                return Err(Refusal::NoSuchAttempt);
            }
            if *cancel_requested || *accepted_late {
                // Not worth another claim: nothing was made of this one.
                return Ok(vec![attempt::never_made(job, claim)]);
            }
            Ok(vec![Fact::Released { claim: attempt, due_at: now }])
        }
        (
            Waiting { .. } | Held | Completed { .. } | Discarded { .. } | Cancelled { .. },
            Command::Release { .. },
        ) => Err(Refusal::NoSuchAttempt),

        (Running { claim, .. }, Command::Sweep { policy, draw }) => {
            if now < claim.lease_until {
                return Err(Refusal::LeaseNotOver);
            }
            Ok(vec![attempt::swept(job, claim, policy, draw, now)])
        }
        (
            Waiting { .. } | Held | Completed { .. } | Discarded { .. } | Cancelled { .. },
            Command::Sweep { .. },
        ) => Err(Refusal::NotRunning),

        (Waiting { .. } | Held, Command::Cancel(act)) => Ok(vec![Fact::Cancelled(act)]),
        (Running { cancel_requested: false, .. }, Command::Cancel(act)) => {
            Ok(vec![Fact::CancelRequested(act)])
        }
        (Running { cancel_requested: true, .. } | Cancelled { .. }, Command::Cancel(_)) => Ok(vec![]),
        (Completed { .. } | Discarded { .. }, Command::Cancel(_)) => Err(Refusal::Finished),

        (Waiting { due_at, .. }, Command::Retry(_)) if *due_at <= now => Ok(vec![]),
        (Waiting { .. }, Command::Retry(act)) => Ok(vec![Fact::Hurried { due_at: now, act }]),
        (Running { .. }, Command::Retry(_)) => Err(Refusal::InFlight),
        (Held, Command::Retry(_)) => Err(Refusal::Held),
        (Completed { .. }, Command::Retry(_)) => Err(Refusal::Accepted),
        (Discarded { .. } | Cancelled { .. }, Command::Retry(act)) => {
            Ok(vec![Fact::Revived { due_at: now, act }])
        }

        (Held | Waiting { why: crate::job::Wait::Unknown, .. }, Command::Resolve(resolution, act)) => {
            let due_at = (resolution == Resolution::Retry).then_some(now);
            Ok(vec![Fact::Resolved { resolution, due_at, act }])
        }
        (
            Waiting { .. } | Running { .. } | Completed { .. } | Discarded { .. } | Cancelled { .. },
            Command::Resolve(..),
        ) => Err(Refusal::NotUnknown),
    }
}
