//! What an HTTP exchange came to: may the job rest, try again, or must
//! somebody look, and may the receiver have acted.
//!
//! Two questions, answered apart. A 500 is a refusal and may have had an effect
//! all the same; a deadline is neither a refusal nor a success. What decides
//! without an answer is not the kind of error but whether a byte of the request
//! was handed to the socket: before, nothing can have happened; after, nobody
//! here knows.
//!
//! Absent on purpose: delays (the policy has them), what an unknown outcome
//! leads to (the policy again), and anything that a receiver's body says.

mod status;

use crate::evidence::{Phase, RetryAfterEvidence};
use crate::limits;
use crate::outcome::{Effect, FailureKind, Outcome};
use crate::text;
use crate::time::Time;

/// Most of what was seen that a reason repeats, in bytes: what follows from it
/// must find room behind.
const SEEN_BYTES_MAX: usize = 768;

const _: () = assert!(SEEN_BYTES_MAX + 128 <= limits::REASON_BYTES_MAX);

/// How an exchange ended, as the sink saw it. Texts say what was seen, without
/// secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The final answer's head was read completely. Its body may have broken
    /// off: the status counts all the same.
    Answer {
        /// The status code.
        status: u16,
    },
    /// The guard refused the target, before a connection was opened.
    Blocked(String),
    /// The name did not resolve: no such name, no address, server failure, deadline.
    DnsFailed(String),
    /// No connection: refused, unreachable, timed out.
    ConnectFailed(String),
    /// The TLS handshake broke before our side of it was complete.
    TlsFailed(String),
    /// An I/O error or the end of the stream after the connection was usable,
    /// without a complete answer head.
    Broken(String),
    /// A time limit fired after the connection was usable, without a complete
    /// answer head.
    Deadline,
    /// What came was not HTTP, had a head over a bound, too many interim
    /// answers, or a switch of protocols.
    Invalid(String),
}

/// What classification needs to know of an exchange.
#[derive(Clone, Copy, Debug)]
pub struct Exchange<'a> {
    /// How it ended.
    pub ending: &'a Ending,
    /// The last phase that was entered.
    pub phase: Phase,
    /// Bytes of the request that were handed to the socket.
    pub bytes_written: u64,
    /// Every byte of it was.
    pub request_complete: bool,
    /// What the answer's Retry-After says, if it has one.
    pub retry_after: Option<&'a RetryAfterEvidence>,
    /// Host that a redirect points to: the host alone, no path and no query.
    pub redirect_host: Option<&'a str>,
}

/// What an exchange came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// What the job layer is told.
    pub outcome: Outcome,
    /// Whether the receiver may have acted.
    pub effect: Effect,
    /// Why it did not succeed; absent when it did.
    pub failure_kind: Option<FailureKind>,
}

impl Exchange<'_> {
    /// Whether any part of the request may have left.
    fn request_left(&self) -> bool {
        self.bytes_written > 0 || self.request_complete
    }
}

/// Classifies one exchange. `retryable_statuses` are the 4xx codes that the
/// kind's policy names as retryable besides 408, 409, 421, 425 and 429. `now`
/// is when the answer came: a Retry-After counts from it.
pub fn classify(exchange: &Exchange<'_>, retryable_statuses: &[u16], now: Time) -> Verdict {
    let (kind, what) = match exchange.ending {
        Ending::Answer { status } if exchange.request_left() => {
            return status::classify(*status, exchange, retryable_statuses, now);
        }
        // Nothing was asked, so it answers something else, whatever it says.
        Ending::Answer { status } => {
            (FailureKind::ResponseInvalid, format!("an answer ({status}) came before the request was sent"))
        }
        Ending::Blocked(why) => (FailureKind::DestinationBlocked, format!("not allowed: {why}")),
        Ending::DnsFailed(why) => (FailureKind::Dns, format!("the name did not resolve: {why}")),
        Ending::ConnectFailed(why) => (FailureKind::Connect, format!("no connection: {why}")),
        Ending::TlsFailed(why) => (FailureKind::Tls, format!("the TLS handshake failed: {why}")),
        Ending::Broken(why) => (kind_of_break(exchange), format!("the connection broke: {why}")),
        Ending::Deadline => (kind_of_deadline(exchange.phase), deadline(exchange)),
        Ending::Invalid(why) => (FailureKind::ResponseInvalid, format!("the answer is not valid: {why}")),
    };
    without_answer(exchange, kind, &what)
}

/// No usable answer: the byte counter decides what can have happened.
fn without_answer(exchange: &Exchange<'_>, kind: FailureKind, what: &str) -> Verdict {
    let what = text::safe(what, SEEN_BYTES_MAX);
    let (outcome, effect) = if exchange.request_left() {
        let how_much = if exchange.request_complete { "the request" } else { "a part of the request" };
        let reason = format!("{what}. By then {how_much} had been sent: the receiver may have acted on it");
        (Outcome::Unknown(reason), Effect::Possible)
    } else {
        let reason = format!("{what}. Nothing was sent");
        let outcome = match exchange.ending {
            Ending::Blocked(_) => Outcome::Discard(reason),
            _ => Outcome::Retryable(reason),
        };
        (outcome, Effect::None)
    };
    Verdict { outcome, effect, failure_kind: Some(kind) }
}

fn kind_of_break(exchange: &Exchange<'_>) -> FailureKind {
    if exchange.phase >= Phase::Head {
        FailureKind::ResponseInvalid
    } else if exchange.request_complete {
        FailureKind::ConnectionLost
    } else {
        FailureKind::WriteAborted
    }
}

/// A limit on the whole exchange can fire before the connection is usable.
fn kind_of_deadline(phase: Phase) -> FailureKind {
    match phase {
        Phase::Guard | Phase::Dns => FailureKind::Dns,
        Phase::Connect => FailureKind::Connect,
        Phase::Tls => FailureKind::Tls,
        Phase::Write | Phase::Wait | Phase::Head | Phase::Body | Phase::Done => FailureKind::ResponseTimeout,
    }
}

fn deadline(exchange: &Exchange<'_>) -> String {
    let during = match exchange.phase {
        Phase::Guard => "the URL was being checked",
        Phase::Dns => "the name was being resolved",
        Phase::Connect => "the connection was being opened",
        Phase::Tls => "the TLS handshake went on",
        Phase::Write => "the request was being written",
        Phase::Wait => "the answer was awaited",
        Phase::Head | Phase::Body | Phase::Done => "the answer was being read",
    };
    format!("the time was up while {during}")
}

#[cfg(test)]
mod tests;
