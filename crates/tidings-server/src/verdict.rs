//! What a person may conclude from a job's history: what happened, and what is
//! safe to do next.
//!
//! Two questions, never one: where the job stands, and whether sending again could
//! do the thing twice. Only attempts that provably did nothing make it safe.

use crate::instant;
use serde::Serialize;
use tidings::core::job::{Claim, State, Wait};
use tidings::core::outcome::{AttemptOutcome, Effect};
use tidings::inspect::{AttemptView, Event, JobView};

/// What is safe to do next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Verdict {
    /// Whether the request may be sent again.
    pub(crate) sending_again: SendingAgain,
    /// In words.
    pub(crate) text: String,
}

/// Whether the request may be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SendingAgain {
    /// It was accepted; it is never sent again.
    Never,
    /// No attempt can have had an effect.
    Safe,
    /// An attempt may have had an effect, and the receiver can tell a repeat by its id.
    Deduplicated,
    /// An attempt may have had an effect, and the receiver may do it twice.
    MayRepeat,
}

impl Verdict {
    /// Of a job whose receiver dedupes, or not.
    pub(crate) fn of(view: &JobView, receiver_dedupes: bool) -> Verdict {
        let sending_again = sending_again(view, receiver_dedupes);
        let id = view.job.id;
        let text = match &view.job.state {
            State::Waiting { why, due_at } => waiting(*why, &instant::text(*due_at), sending_again),
            State::Running { claim, cancel_requested, .. } => running(claim, *cancel_requested),
            State::Held => format!(
                "Held: the outcome of {} is unknown and {}. Ask the receiver whether {id} arrived, then \
                 resolve it: --accepted, --retry or --give-up.",
                last_unknown(view),
                sending_again.risk(),
            ),
            State::Completed { .. } => completed(view),
            State::Discarded { .. } => format!(
                "Discarded{}. It stays until its retention is over; `tidings jobs retry {id}` brings it back: {}.",
                last_reason(view),
                sending_again.risk(),
            ),
            State::Cancelled { .. } => {
                format!("Cancelled. `tidings jobs retry {id}` brings it back: {}.", sending_again.risk(),)
            }
        };
        Verdict { sending_again, text }
    }
}

impl SendingAgain {
    /// What to know before sending again.
    const fn risk(self) -> &'static str {
        match self {
            SendingAgain::Never => "it was accepted and is never sent again",
            SendingAgain::Safe => "sending again is safe, no attempt can have had an effect",
            SendingAgain::Deduplicated => {
                "an attempt may have had an effect; sending again carries the same id, by which the receiver dedupes"
            }
            SendingAgain::MayRepeat => "an attempt may have had an effect, so sending again may do it twice",
        }
    }
}

fn sending_again(view: &JobView, receiver_dedupes: bool) -> SendingAgain {
    if matches!(view.job.state, State::Completed { .. }) {
        return SendingAgain::Never;
    }
    let harmless =
        |attempt: &AttemptView| attempt.end.as_ref().is_some_and(|end| end.evidence.effect == Effect::None);
    if view.attempts.iter().all(harmless) && every_claim_is_seen(view) {
        SendingAgain::Safe
    } else if receiver_dedupes {
        SendingAgain::Deduplicated
    } else {
        SendingAgain::MayRepeat
    }
}

/// Evidence has a retention of its own: an attempt that is not there any more proves
/// nothing.
fn every_claim_is_seen(view: &JobView) -> bool {
    let given_back = view.events.iter().filter(|event| matches!(event.what, Event::Released { .. })).count();
    i64::try_from(view.attempts.len() + given_back).is_ok_and(|seen| seen >= view.job.counters.claims)
}

fn waiting(why: Wait, due: &str, again: SendingAgain) -> String {
    match why {
        Wait::Fresh => format!("Due at {due}. Nothing to do."),
        Wait::Retry => format!("It failed and is tried again at {due}. Nothing to do; {}.", again.risk()),
        Wait::Snooze => format!("Put off until {due}; no attempt was spent. Nothing to do."),
        Wait::Unknown => {
            format!("The last outcome is unknown; it is sent again at {due}. {}.", capital(again.risk()))
        }
    }
}

fn running(claim: &Claim, cancel_requested: bool) -> String {
    let asked = if cancel_requested { " Somebody asked to cancel it." } else { "" };
    format!(
        "Attempt {} is in flight since {}; if nothing is heard of it by {}, its outcome is unknown.{asked}",
        claim.number,
        instant::text(claim.started_at),
        instant::text(claim.lease_until),
    )
}

fn completed(view: &JobView) -> String {
    let accepted = view
        .attempts
        .iter()
        .find(|attempt| attempt.end.as_ref().is_some_and(|end| end.outcome == AttemptOutcome::Accepted));
    if let Some(attempt) = accepted {
        return format!("Accepted by attempt {}. Nothing to do.", attempt.attempt);
    }
    let settled = view.events.iter().find_map(|event| match &event.what {
        Event::ReportedLate(late) if late.settles => {
            Some(format!("Attempt {} was accepted, as its late report says. Nothing to do.", late.attempt))
        }
        Event::Resolved(tidings::Resolution::Accepted, act) => {
            Some(format!("{} marked it as accepted. Nothing to do.", crate::print::shown(&act.actor)))
        }
        Event::ReportedLate(_)
        | Event::Resolved(..)
        | Event::Released { .. }
        | Event::CancelRequested(_)
        | Event::Cancelled(_)
        | Event::Revived(_)
        | Event::Hurried(_) => None,
    });
    settled.unwrap_or_else(|| "Completed. Nothing to do.".to_owned())
}

fn last_unknown(view: &JobView) -> String {
    let unknown = view
        .attempts
        .iter()
        .rev()
        .find(|attempt| attempt.end.as_ref().is_some_and(|end| end.outcome == AttemptOutcome::Unknown));
    unknown.map_or_else(|| "an attempt".to_owned(), |attempt| format!("attempt {}", attempt.attempt))
}

fn last_reason(view: &JobView) -> String {
    use tidings::core::fact::Next;
    let why = view.attempts.iter().rev().find_map(|attempt| match attempt.end.as_ref()?.next {
        Next::Discarded { why } => Some(why.as_str()),
        Next::Completed { .. }
        | Next::Cancelled
        | Next::Held
        | Next::Retryable { .. }
        | Next::Snoozed { .. }
        | Next::Unknown { .. } => None,
    });
    why.map_or_else(String::new, |why| format!(": {why}"))
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().collect::<String>() + chars.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidings::core::fact::Act;
    use tidings::core::job::{Counters, Job, Priority};
    use tidings::inspect::EventView;
    use tidings::{JobId, Time};

    fn held(claims: i64, events: Vec<Event>) -> JobView {
        let id: JobId = "job_0198c0de000070008000000000000001".parse().unwrap();
        let job = Job {
            id,
            version: 9,
            kind: "http.call".into(),
            queue: "default".into(),
            priority: Priority::NORMAL,
            tenant: String::new(),
            enqueued_at: Time(0),
            run_at: Time(0),
            unique: None,
            state: State::Held,
            counters: Counters { claims, ..Counters::default() },
        };
        let events = events.into_iter().map(|what| EventView { at: Time(0), what }).collect();
        JobView { job, args: "{}".into(), attempts: Vec::new(), events }
    }

    #[test]
    fn an_attempt_whose_evidence_is_gone_is_no_proof_that_nothing_happened() {
        assert_eq!(Verdict::of(&held(1, vec![]), false).sending_again, SendingAgain::MayRepeat);
        assert_eq!(Verdict::of(&held(1, vec![]), true).sending_again, SendingAgain::Deduplicated);
    }

    #[test]
    fn a_claim_that_was_given_back_can_have_done_nothing() {
        let act = Act { actor: "ann".into(), reason: String::new() };
        let events = vec![Event::Released { claim: 1 }, Event::Hurried(act)];
        assert_eq!(Verdict::of(&held(1, events), false).sending_again, SendingAgain::Safe);
    }
}
