//! What is kept of an answer's head.
//!
//! A receiver may send any bytes: values are decoded leniently, bounded and made
//! safe to show, and only headers on a list are kept at all.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::response::Parts;
use tidings_core::evidence::RetryAfterEvidence;
use tidings_core::guard::Target;
use tidings_core::time::Time;
use tidings_core::{retry_after, text};

/// Headers that are kept, in this order.
const KEPT: [HeaderName; 6] = [
    header::DATE,
    header::RETRY_AFTER,
    header::CONTENT_TYPE,
    header::CONTENT_LENGTH,
    header::SERVER,
    HeaderName::from_static("x-request-id"),
];

/// Most lines of one header that are kept.
const KEPT_LINES_MAX: usize = 2;

/// Longest value that is kept, in bytes.
const KEPT_VALUE_BYTES_MAX: usize = 256;

/// Longest redirect host that is kept: that of a DNS name.
const HOST_BYTES_MAX: usize = 255;

/// The evidence of a head.
pub(super) struct AnswerHead {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) retry_after: Option<RetryAfterEvidence>,
    pub(super) redirect_host: Option<String>,
}

/// Reads what is kept; `now` is the time at which the head was there.
pub(super) fn read_head(head: &Parts, target: &Target, now: Time) -> AnswerHead {
    AnswerHead {
        status: head.status.as_u16(),
        headers: kept_headers(&head.headers),
        retry_after: if head.status.is_success() { None } else { retry_after(&head.headers, now) },
        redirect_host: head.status.is_redirection().then(|| redirect_host(&head.headers, target)).flatten(),
    }
}

fn kept_headers(headers: &HeaderMap) -> Vec<(String, String)> {
    let lines = |name: &HeaderName| {
        headers.get_all(name).into_iter().take(KEPT_LINES_MAX).map(shown).collect::<Vec<_>>()
    };
    KEPT.iter().flat_map(|name| lines(name).into_iter().map(|value| (name.to_string(), value))).collect()
}

fn shown(value: &HeaderValue) -> String {
    text::safe(&String::from_utf8_lossy(value.as_bytes()), KEPT_VALUE_BYTES_MAX)
}

fn retry_after(headers: &HeaderMap, now: Time) -> Option<RetryAfterEvidence> {
    let fields: Vec<&[u8]> = headers.get_all(header::RETRY_AFTER).iter().map(HeaderValue::as_bytes).collect();
    retry_after::read(&fields, headers.get(header::DATE).map(HeaderValue::as_bytes), now)
}

/// Only the host: path and query of a redirect may hold a secret.
fn redirect_host(headers: &HeaderMap, target: &Target) -> Option<String> {
    let location = String::from_utf8_lossy(headers.get(header::LOCATION)?.as_bytes()).into_owned();
    let pointed_to = target.url().join(&location).ok()?;
    pointed_to.host_str().map(|host| text::safe(host, HOST_BYTES_MAX))
}
