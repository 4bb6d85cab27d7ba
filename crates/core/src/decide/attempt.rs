//! What the end of an attempt leads to: the policy applied.

use super::{Ended, Refusal};
use crate::evidence::Evidence;
use crate::fact::{AttemptEnd, DiscardWhy, EndedBy, Fact, LateReport, Next};
use crate::job::{Claim, Job, State};
use crate::limits;
use crate::outcome::{AttemptOutcome, Effect, FailureKind, Outcome, SnoozeSource};
use crate::policy::{Draw, OnUnknown, Policy};
use crate::text;
use crate::time::{Millis, Time};

/// A worker's report, as the command carried it.
pub(super) struct Report<'a> {
    pub(super) attempt: i64,
    pub(super) ended: Ended,
    pub(super) evidence: Evidence,
    pub(super) policy: &'a Policy,
    pub(super) draw: Draw,
}

/// A report in time ends the attempt. A report after the lease changes nothing,
/// swept or not, but what it says is kept, and a late *accepted* settles the job.
pub(super) fn report(job: &Job, report: Report<'_>, now: Time) -> Result<Vec<Fact>, Refusal> {
    match &job.state {
        State::Running { claim, .. } if claim.number == report.attempt => {
            if now >= claim.lease_until {
                // Nobody has swept it yet. The lease is over all the same, and
                // the history must not depend on who came first.
                let swept = swept(job, claim, report.policy, report.draw, now);
                let settled =
                    matches!(&swept, Fact::AttemptEnded(end) if matches!(end.next, Next::Completed { .. }));
                return Ok(vec![swept, late(report, !settled)]);
            }
            Ok(vec![ended_in_time(job, claim, report, now)])
        }
        State::Completed { .. } if report.attempt >= job.counters.claims => Err(Refusal::NoSuchAttempt),
        State::Completed { .. } => Ok(vec![late(report, false)]),
        _ if report.attempt < 1 || report.attempt > job.counters.claims => Err(Refusal::NoSuchAttempt),
        State::Running { accepted_late, .. } => Ok(vec![late(report, !accepted_late)]),
        State::Waiting { .. } | State::Held | State::Discarded { .. } | State::Cancelled { .. } => {
            Ok(vec![late(report, true)])
        }
    }
}

/// The fact that a sweep records: the worker went silent, so the outcome is unknown.
pub(super) fn swept(job: &Job, claim: &Claim, policy: &Policy, draw: Draw, now: Time) -> Fact {
    let spent = job.counters.attempts.saturating_add(1);
    let crashes = job.counters.crashes.saturating_add(1);
    let (next, delay) = if let Some(next) = already_settled(job) {
        (next, None)
    } else if is_cancelled(job) {
        // Whoever asked that it stop did not ask for another attempt.
        (Next::Cancelled, None)
    } else if claim.on_unknown == OnUnknown::Hold {
        (Next::Held, None)
    } else if crashes >= policy.crashes_max() {
        (Next::Discarded { why: DiscardWhy::CrashesUsedUp }, None)
    } else {
        again(job, policy, spent, policy.delay_after_unknown(spent, draw), now, |due_at| Next::Unknown {
            due_at,
        })
    };
    let seconds = claim.lease_until.since(claim.started_at).0 / 1_000;
    Fact::AttemptEnded(Box::new(AttemptEnd {
        attempt: claim.number,
        worker: claim.worker,
        started_at: claim.started_at,
        ended_by: EndedBy::Sweep,
        outcome: AttemptOutcome::Unknown,
        reason: format!(
            "the worker was not heard of within its lease of {seconds} s: its process died or hung"
        ),
        evidence: Evidence::plain(Effect::Possible, Some(FailureKind::WorkerLost)),
        policy: policy.label(),
        delay_ms: delay.map(|delay| delay.0),
        next,
    }))
}

/// A claim given back for a job that is over for another reason.
pub(super) fn never_made(job: &Job, claim: &Claim) -> Fact {
    Fact::AttemptEnded(Box::new(AttemptEnd {
        attempt: claim.number,
        worker: claim.worker,
        started_at: claim.started_at,
        ended_by: EndedBy::Worker,
        outcome: AttemptOutcome::Cancelled,
        reason: "the handler was never started".into(),
        evidence: Evidence::plain(Effect::None, None),
        policy: String::new(),
        delay_ms: None,
        next: already_settled(job).unwrap_or(Next::Cancelled),
    }))
}

fn ended_in_time(job: &Job, claim: &Claim, report: Report<'_>, now: Time) -> Fact {
    let (outcome, reason) = in_words(&report.ended);
    let (next, delay) = next(job, claim, &report, now);
    let mut evidence = report.evidence;
    if let (Some(http), Next::Snoozed { due_at, source: SnoozeSource::RetryAfter, .. }) =
        (&mut evidence.http, next)
        && let Some(asked) = &mut http.retry_after
    {
        // The policy's own backoff may be the later of the two; the evidence says what was applied.
        asked.used_ms = Some(due_at.since(now).0);
    }
    Fact::AttemptEnded(Box::new(AttemptEnd {
        attempt: claim.number,
        worker: claim.worker,
        started_at: claim.started_at,
        ended_by: EndedBy::Worker,
        outcome,
        reason,
        evidence,
        policy: report.policy.label(),
        delay_ms: delay.map(|delay| delay.0),
        next,
    }))
}

/// What becomes of the job, and after which wait.
fn next(job: &Job, claim: &Claim, report: &Report<'_>, now: Time) -> (Next, Option<Millis>) {
    let (policy, draw) = (report.policy, report.draw);
    let spent = job.counters.attempts.saturating_add(1);
    match &report.ended {
        Ended::Returned(Outcome::Accepted) => (Next::Completed { by_late_report: false }, None),
        _ if already_settled(job).is_some() => (Next::Completed { by_late_report: true }, None),
        Ended::Returned(Outcome::Discard(_)) => (Next::Discarded { why: DiscardWhy::Permanent }, None),
        Ended::Cancelled => (Next::Cancelled, None),
        Ended::Returned(_) if is_cancelled(job) => (Next::Cancelled, None),
        Ended::Returned(Outcome::Retryable(_)) => {
            again(job, policy, spent, policy.delay(spent, draw), now, |due_at| Next::Retryable { due_at })
        }
        Ended::Returned(Outcome::Unknown(_)) if claim.on_unknown == OnUnknown::Hold => (Next::Held, None),
        Ended::Returned(Outcome::Unknown(_)) => {
            let delay = policy.delay_after_unknown(spent, draw);
            again(job, policy, spent, delay, now, |due_at| Next::Unknown { due_at })
        }
        Ended::Returned(Outcome::Snooze { until, source, .. }) => {
            let asked = report.evidence.http.as_ref().and_then(|http| http.retry_after.as_ref()?.used_ms);
            // Counted from here, which is after the answer: the next attempt is never too early.
            let until = asked.map_or(*until, |asked_ms| (*until).max(now + Millis(asked_ms)));
            snooze(job, policy, draw, until, *source, now)
        }
    }
}

/// Another attempt after `delay`, unless attempts or age are used up.
fn again(
    job: &Job,
    policy: &Policy,
    spent: u32,
    delay: Millis,
    now: Time,
    next: impl FnOnce(Time) -> Next,
) -> (Next, Option<Millis>) {
    let due_at = now + delay;
    if spent >= policy.attempts_max() {
        (Next::Discarded { why: DiscardWhy::AttemptsUsedUp }, None)
    } else if too_old(job, policy, due_at) {
        (Next::Discarded { why: DiscardWhy::TooOld }, None)
    } else {
        (next(due_at), Some(delay))
    }
}

/// A snooze spends no attempt. A receiver's Retry-After never shortens the
/// policy's own backoff, else `Retry-After: 1` in a loop would hammer it; a
/// handler's time is taken as named, but a second from now at least. Both end at the policy's longest snooze.
fn snooze(
    job: &Job,
    policy: &Policy,
    draw: Draw,
    until: Time,
    source: SnoozeSource,
    now: Time,
) -> (Next, Option<Millis>) {
    if policy.snoozes_max().is_some_and(|most| job.counters.snoozes >= most) {
        return (Next::Discarded { why: DiscardWhy::SnoozesUsedUp }, None);
    }
    let asked = match source {
        SnoozeSource::Handler => until.since(now).max(limits::SNOOZE_MIN),
        SnoozeSource::RetryAfter => {
            until.since(now).max(policy.delay(job.counters.attempts.saturating_add(1), draw))
        }
    };
    let delay = asked.min(policy.snooze_max());
    let due_at = now + delay;
    if too_old(job, policy, due_at) {
        return (Next::Discarded { why: DiscardWhy::TooOld }, None);
    }
    (Next::Snoozed { due_at, source, capped: delay < asked }, Some(delay))
}

fn too_old(job: &Job, policy: &Policy, due_at: Time) -> bool {
    policy.age_max().is_some_and(|most| due_at.since(job.run_at) > most)
}

/// Somebody asked to cancel the job while this attempt runs.
fn is_cancelled(job: &Job) -> bool {
    matches!(&job.state, State::Running { cancel_requested: true, .. })
}

/// A late report of an earlier attempt said accepted: whatever this attempt
/// comes to, an accepted job never runs again.
fn already_settled(job: &Job) -> Option<Next> {
    match &job.state {
        State::Running { accepted_late: true, .. } => Some(Next::Completed { by_late_report: true }),
        State::Running { accepted_late: false, .. }
        | State::Waiting { .. }
        | State::Held
        | State::Completed { .. }
        | State::Discarded { .. }
        | State::Cancelled { .. } => None,
    }
}

fn late(report: Report<'_>, unsettled: bool) -> Fact {
    let (outcome, reason) = in_words(&report.ended);
    let settles = unsettled && outcome == AttemptOutcome::Accepted;
    Fact::ReportedLate(Box::new(LateReport {
        attempt: report.attempt,
        outcome,
        reason,
        evidence: report.evidence,
        settles,
    }))
}

fn in_words(ended: &Ended) -> (AttemptOutcome, String) {
    match ended {
        Ended::Returned(Outcome::Accepted) => (AttemptOutcome::Accepted, String::new()),
        Ended::Returned(Outcome::Retryable(reason)) => {
            (AttemptOutcome::RetryableFailure, text::reason(reason))
        }
        Ended::Returned(Outcome::Snooze { reason, .. }) => (AttemptOutcome::Snoozed, text::reason(reason)),
        Ended::Returned(Outcome::Discard(reason)) => (AttemptOutcome::PermanentFailure, text::reason(reason)),
        Ended::Returned(Outcome::Unknown(reason)) => (AttemptOutcome::Unknown, text::reason(reason)),
        Ended::Cancelled => (AttemptOutcome::Cancelled, "the job was cancelled while it ran".into()),
    }
}
