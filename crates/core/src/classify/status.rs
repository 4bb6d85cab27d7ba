//! What a status code means for a job (RFC 9110 section 15), and what a person
//! can do about it.
//!
//! A refusal by 4xx proves nothing by itself, but it is the receiver's word
//! that it did not act, with two exceptions: 408, which servers also send when
//! their handler ran too long, and 409, which may speak of an earlier request
//! that is still at work.

use super::{Exchange, Verdict};
use crate::outcome::{Effect, FailureKind, Outcome, SnoozeSource};
use crate::text;
use crate::time::{Millis, Time};

pub(super) fn classify(
    status: u16,
    exchange: &Exchange<'_>,
    retryable_statuses: &[u16],
    now: Time,
) -> Verdict {
    match status {
        // Interim answers are no final ones: nobody knows what the final one was.
        100..=199 => {
            let kind = FailureKind::ResponseInvalid;
            super::without_answer(exchange, kind, &format!("{status} is not a final answer"))
        }
        200..=299 => Verdict { outcome: Outcome::Accepted, effect: effect(status), failure_kind: None },
        300..=399 => refused(status, Outcome::Discard(redirect(status, exchange.redirect_host))),
        429 | 503 => refused(status, later(status, exchange, now)),
        408 | 409 | 421 | 425 => refused(status, Outcome::Retryable(reason(status))),
        400..=499 if retryable_statuses.contains(&status) => {
            refused(status, Outcome::Retryable(reason(status)))
        }
        400..=499 | 501 | 505 => refused(status, Outcome::Discard(reason(status))),
        // What is no status code at all counts as a 5xx (RFC 9110 section 15).
        _ => refused(status, Outcome::Retryable(reason(status))),
    }
}

fn refused(status: u16, outcome: Outcome) -> Verdict {
    let failure_kind = match outcome {
        Outcome::Snooze { .. } => FailureKind::RateLimited,
        _ => kind(status),
    };
    Verdict { outcome, effect: effect(status), failure_kind: Some(failure_kind) }
}

/// Whether the receiver's application may have acted, by what it answered.
fn effect(status: u16) -> Effect {
    match status {
        // Taken, with no promise that it will be acted upon.
        202 => Effect::Possible,
        200..=299 => Effect::Done,
        408 | 409 => Effect::Possible,
        300..=499 => Effect::None,
        // The method or version is not known there; a portal on the way answered.
        501 | 505 | 511 => Effect::None,
        _ => Effect::Possible,
    }
}

fn kind(status: u16) -> FailureKind {
    match status {
        300..=399 => FailureKind::Redirect,
        401 | 403 | 407 => FailureKind::Auth,
        410 => FailureKind::Gone,
        429 => FailureKind::RateLimited,
        400..=499 => FailureKind::Http4xx,
        // The receiver was never reached.
        511 => FailureKind::Connect,
        _ => FailureKind::Http5xx,
    }
}

/// 429 and 503: by the receiver's clock where it names a time, else by the policy.
fn later(status: u16, exchange: &Exchange<'_>, now: Time) -> Outcome {
    let Some(asked) = exchange.retry_after else { return Outcome::Retryable(reason(status)) };
    let Some(used_ms) = asked.used_ms.filter(|used_ms| *used_ms > 0) else {
        let note = format!("{}. Its Retry-After {}", reason(status), asked.note);
        return Outcome::Retryable(text::reason(&note));
    };
    let mut reason = format!("{status}: the receiver asks to wait {}", seconds(used_ms));
    if asked.capped {
        reason = format!(
            "{status}: the receiver asks to wait {}, cut to {}",
            seconds(asked.asked_ms.unwrap_or(used_ms)),
            seconds(used_ms)
        );
    }
    Outcome::Snooze { until: now + Millis(used_ms), source: SnoozeSource::RetryAfter, reason }
}

fn seconds(ms: i64) -> String {
    format!("{} s", ms.saturating_add(999) / 1_000)
}

fn redirect(status: u16, host: Option<&str>) -> String {
    let remedy = match (status, host) {
        (304, _) => "the receiver says that nothing changed, which nobody asked: check the URL".to_owned(),
        (_, None) => "a redirect without a target, and redirects are not followed: check the URL".to_owned(),
        (301 | 308, Some(host)) => {
            format!("moved for good to {host}; redirects are not followed: change the URL")
        }
        (_, Some(host)) => format!("a redirect to {host}, and redirects are not followed: fix the URL"),
    };
    text::reason(&format!("{status}: {remedy}"))
}

fn reason(status: u16) -> String {
    format!("{status}: {}", remedy(status))
}

/// What a refusal means and what can be done.
fn remedy(status: u16) -> &'static str {
    match status {
        400 | 422 => "the receiver cannot read the request: check what is sent against what it expects",
        401 => "the receiver wants credentials, or other ones: check the secret or the authorization header",
        403 => "the credentials do not allow this: check them and the rights they carry at the receiver",
        404 => "there is nothing at this address: check the URL",
        405 => "this address does not take the method: check the method and the URL",
        406 | 415 => "the receiver does not take this content type: check the headers",
        407 => "a proxy on the way wants credentials: check the network of the sender",
        408 => "the receiver gave up waiting, for the request or for its own work",
        409 => "the receiver is at odds with an earlier request, perhaps still at work on this one",
        410 => "the receiver is gone for good: remove it, or change the URL",
        413 => "the body is larger than the receiver takes: reduce the size",
        414 => "the URL is longer than the receiver takes: shorten it",
        421 => "this connection does not serve that host: tried again on a fresh one",
        425 => "the receiver fears a replay and did not process it: tried again",
        429 => "too many requests for the receiver",
        431 => "the headers are larger than the receiver takes: reduce their size",
        451 => "the receiver may not take this for legal reasons",
        400..=499 => "the receiver refuses this request: check it against what the receiver expects",
        501 => "the receiver does not know the method: check the method and the URL",
        502 => "a gateway got no valid answer from the receiver, which may have acted",
        503 => "the receiver is overloaded or in maintenance",
        504 => "a gateway got no answer from the receiver in time; it may have acted",
        505 => "the receiver does not speak this version of HTTP: check the URL",
        511 => "a network on the way wants a log-in first: check the network of the sender",
        500..=599 => "the receiver failed, and may have acted before it did",
        _ => "not a status code of HTTP, taken for a failure of the receiver",
    }
}
