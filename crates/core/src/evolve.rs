//! What a fact changes. Total: a recorded fact always applies.
//!
//! The log alone rebuilds the job: a fact that ends an attempt carries all that
//! the claim before it put on the row, so [`replay`] needs no claims.

use crate::fact::EndedBy;
use crate::fact::{AttemptEnd, Fact, Next, Resolution};
use crate::job::{Counters, Job, State, Wait};
use crate::outcome::AttemptOutcome;
use crate::time::Time;

/// The job after `fact`, which was recorded at `at`.
pub fn evolve(mut job: Job, fact: &Fact, at: Time) -> Job {
    job.version += 1;
    match fact {
        Fact::Claimed(claim) => {
            job.counters.claims = claim.number;
            job.state =
                State::Running { claim: claim.clone(), cancel_requested: false, accepted_late: false };
        }
        Fact::AttemptEnded(end) => {
            job.counters = counted(job.counters, end);
            job.state = after(end.next, at);
        }
        Fact::Released { claim, due_at } => {
            job.counters.claims = *claim;
            let why = match &job.state {
                State::Running { claim, .. } => claim.from,
                State::Waiting { why, .. } => *why,
                State::Held | State::Completed { .. } | State::Discarded { .. } | State::Cancelled { .. } => {
                    Wait::Fresh
                }
            };
            job.state = State::Waiting { why, due_at: *due_at };
        }
        Fact::ReportedLate(late) if late.settles => match &mut job.state {
            State::Running { accepted_late, .. } => *accepted_late = true,
            State::Waiting { .. }
            | State::Held
            | State::Completed { .. }
            | State::Discarded { .. }
            | State::Cancelled { .. } => job.state = State::Completed { at },
        },
        Fact::ReportedLate(_) => {}
        Fact::CancelRequested(_) => {
            if let State::Running { cancel_requested, .. } = &mut job.state {
                *cancel_requested = true;
            }
        }
        Fact::Cancelled(_) => job.state = State::Cancelled { at },
        Fact::Revived { due_at, .. } => {
            job.counters.attempts = 0;
            job.counters.crashes = 0;
            job.state = State::Waiting { why: Wait::Fresh, due_at: *due_at };
        }
        Fact::Hurried { due_at, .. } => {
            if let State::Waiting { due_at: due, .. } = &mut job.state {
                *due = *due_at;
            }
        }
        Fact::Resolved { resolution, due_at, .. } => {
            job.state = match resolution {
                Resolution::Accepted => State::Completed { at },
                Resolution::Retry => State::Waiting { why: Wait::Unknown, due_at: due_at.unwrap_or(at) },
                Resolution::GiveUp => State::Discarded { at },
            };
        }
    }
    job
}

/// The job as its log alone tells it: `initial` is the job as it was enqueued,
/// `log` its facts by version, each with its time. Equal to the row, except
/// that an open claim is not in the log.
pub fn replay<'a>(initial: Job, log: impl IntoIterator<Item = (i64, Time, &'a Fact)>) -> Job {
    log.into_iter().fold(initial, |job, (version, at, fact)| {
        let mut job = evolve(job, fact, at);
        job.version = version;
        job
    })
}

fn counted(mut counters: Counters, end: &AttemptEnd) -> Counters {
    counters.claims = end.attempt;
    match end.outcome {
        AttemptOutcome::Snoozed => counters.snoozes = counters.snoozes.saturating_add(1),
        AttemptOutcome::Cancelled => {}
        AttemptOutcome::Accepted
        | AttemptOutcome::RetryableFailure
        | AttemptOutcome::PermanentFailure
        | AttemptOutcome::Unknown => counters.attempts = counters.attempts.saturating_add(1),
    }
    if end.ended_by == EndedBy::Sweep {
        counters.crashes = counters.crashes.saturating_add(1);
    }
    counters
}

fn after(next: Next, at: Time) -> State {
    match next {
        Next::Completed { .. } => State::Completed { at },
        Next::Discarded { .. } => State::Discarded { at },
        Next::Cancelled => State::Cancelled { at },
        Next::Held => State::Held,
        Next::Retryable { due_at } => State::Waiting { why: Wait::Retry, due_at },
        Next::Snoozed { due_at, .. } => State::Waiting { why: Wait::Snooze, due_at },
        Next::Unknown { due_at } => State::Waiting { why: Wait::Unknown, due_at },
    }
}
