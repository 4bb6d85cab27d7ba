//! What an attempt learnt, as it is kept. Written once, never edited.
//!
//! Everything here is bounded and safe to show before it gets here: no secret,
//! no query string, valid text whatever the receiver sent.

use crate::outcome::{Effect, FailureKind};
use serde::{Deserialize, Serialize};

/// What is known of one attempt besides its outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Whether the receiver may have acted.
    pub effect: Effect,
    /// Why it did not succeed; absent when it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_kind: Option<FailureKind>,
    /// The HTTP exchange, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<Box<HttpEvidence>>,
}

impl Evidence {
    /// Evidence of an attempt whose handler spoke no protocol that Tidings knows.
    pub fn plain(effect: Effect, failure_kind: Option<FailureKind>) -> Evidence {
        Evidence { effect, failure_kind, http: None }
    }
}

/// How far an HTTP exchange got. Later phases compare greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Nothing yet: the URL is being checked.
    Guard,
    /// Resolving the name.
    Dns,
    /// Opening the TCP connection.
    Connect,
    /// TLS handshake.
    Tls,
    /// Writing the request.
    Write,
    /// The request is out; waiting for the first byte of the answer.
    Wait,
    /// Reading the answer's head.
    Head,
    /// Reading the answer's body.
    Body,
    /// The answer was read.
    Done,
}

/// One HTTP exchange as it went over the wire.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HttpEvidence {
    /// Request method.
    pub method: String,
    /// Scheme, host and port of the target; path and query may hold secrets and are left out.
    pub origin: String,
    /// The address connected to, as `ip:port`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The last phase that was entered.
    pub phase: Phase,
    /// When each phase that was entered began, in milliseconds since the attempt's start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases_ms: Vec<(Phase, i64)>,
    /// Bytes of the request that were handed to the socket (inside TLS: before encryption).
    pub bytes_written: u64,
    /// Bytes of the answer that were read.
    pub bytes_read: u64,
    /// Length of the request body.
    pub request_body_bytes: u64,
    /// SHA-256 of the exact request body, in hexadecimal.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub request_body_sha256: String,
    /// Status code of the final answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Allow-listed headers of the answer (`date`, `retry-after`, `content-type`, `content-length`, `server`, `x-request-id`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// The beginning of the answer's body, as text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub excerpt: String,
    /// SHA-256 of the body bytes that were read, in hexadecimal.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub body_sha256: String,
    /// The body was longer than what was read, or broke off.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub truncated: bool,
    /// What the receiver asked for by Retry-After, and what became of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<RetryAfterEvidence>,
    /// Host that a redirect pointed to. It was not followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect_host: Option<String>,
}

/// A Retry-After: as sent, as understood, as applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryAfterEvidence {
    /// The field as it came, bounded.
    pub raw: String,
    /// What it asks for, in milliseconds from the answer; absent when it is not valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_ms: Option<i64>,
    /// What is waited because of it (after the cap); absent when it was ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_ms: Option<i64>,
    /// The cap cut it.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub capped: bool,
    /// Why it was ignored, or how it was read, for a person.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}
