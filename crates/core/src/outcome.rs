//! What an attempt can come to, in the words that the API, the panel and SQL use.
//!
//! Two axes, never one: what became of the attempt ([`AttemptOutcome`]), and
//! whether the receiver may have acted ([`Effect`]). A 500 is a refusal *and*
//! possibly an effect; a deadline is neither a failure nor a success.

use crate::time::Time;
use serde::{Deserialize, Serialize};

/// What a handler says of its attempt. There is no default: a handler that
/// says nothing has not succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "an outcome that nobody returns leaves its job running until the lease is over"]
pub enum Outcome {
    /// It is done, and the receiver said so.
    Accepted,
    /// It did not work this time. Due again on the policy's backoff.
    Retryable(String),
    /// Not now. Due again at `until`, no attempt spent.
    Snooze {
        /// When to try again.
        until: Time,
        /// Who named that time.
        source: SnoozeSource,
        /// Why, for the person who reads the evidence.
        reason: String,
    },
    /// Trying again will not help.
    Discard(String),
    /// It may have happened; nobody here knows.
    Unknown(String),
}

impl Outcome {
    /// The attempt failed in a way that time may mend.
    pub fn retryable(reason: impl Into<String>) -> Outcome {
        Outcome::Retryable(reason.into())
    }

    /// The attempt failed for good.
    pub fn discard(reason: impl Into<String>) -> Outcome {
        Outcome::Discard(reason.into())
    }

    /// Whether the receiver acted is not known.
    pub fn unknown(reason: impl Into<String>) -> Outcome {
        Outcome::Unknown(reason.into())
    }

    /// The handler wants to be called again at `until`.
    pub fn snooze(until: Time, reason: impl Into<String>) -> Outcome {
        Outcome::Snooze { until, source: SnoozeSource::Handler, reason: reason.into() }
    }
}

/// Who named the time of a snooze.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SnoozeSource {
    /// The handler asked for it; its time is taken as it is, up to the policy's cap.
    Handler,
    /// The receiver sent Retry-After; never earlier than the policy's own backoff.
    RetryAfter,
}

/// What an attempt came to, as it is stored and shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptOutcome {
    /// The receiver took it.
    Accepted,
    /// It failed; time may mend it.
    RetryableFailure,
    /// It failed for good.
    PermanentFailure,
    /// Nobody knows whether it happened.
    Unknown,
    /// Put off; no attempt spent.
    Snoozed,
    /// Somebody cancelled it and the handler stopped.
    Cancelled,
}

impl AttemptOutcome {
    /// The stored word.
    pub const fn as_str(self) -> &'static str {
        match self {
            AttemptOutcome::Accepted => "accepted",
            AttemptOutcome::RetryableFailure => "retryable_failure",
            AttemptOutcome::PermanentFailure => "permanent_failure",
            AttemptOutcome::Unknown => "unknown",
            AttemptOutcome::Snoozed => "snoozed",
            AttemptOutcome::Cancelled => "cancelled",
        }
    }
}

/// Whether the receiver's application acted on the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Proved: it never did. Sending again is safe.
    None,
    /// It may have. Sending again may do it twice.
    Possible,
    /// It said that it did.
    Done,
}

/// Why an attempt did not succeed: a closed set, fit for a metric's label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The name did not resolve, or not in time.
    Dns,
    /// No connection: refused, unreachable, timed out.
    Connect,
    /// The TLS handshake did not finish.
    Tls,
    /// The address guard refused the target. Nothing was sent.
    DestinationBlocked,
    /// The connection broke while the request was being written.
    WriteAborted,
    /// The connection broke after the request, before an answer.
    ConnectionLost,
    /// No answer in time.
    ResponseTimeout,
    /// What came back was not an HTTP answer, or broke off in its head, or was over a bound.
    ResponseInvalid,
    /// A 3xx, which is never followed.
    Redirect,
    /// 401, 403 or 407: credentials.
    Auth,
    /// 410: the receiver is gone for good.
    Gone,
    /// 429 or a 503 with Retry-After.
    RateLimited,
    /// Any other 4xx.
    #[serde(rename = "http_4xx")]
    Http4xx,
    /// Any 5xx.
    #[serde(rename = "http_5xx")]
    Http5xx,
    /// The job's arguments do not decode to its kind.
    BadArguments,
    /// The handler ran into its hard time limit.
    TimeLimit,
    /// The handler panicked.
    Panic,
    /// The worker's process died or went silent.
    WorkerLost,
    /// The process was stopped before the handler had finished.
    Stopped,
    /// The handler said so, in its own words.
    Handler,
}
