//! The kind `http.call`: a durable HTTP request.
//!
//! One attempt is at most one request on the wire. The body is sent as the bytes
//! that were given. With a secret the request is signed as a Standard Webhook,
//! whose `webhook-id` is the job's id, the same on every attempt; the timestamp is
//! the attempt's own.
//!
//! An unknown outcome is tried again only where the receiver can tell a repeat:
//! the request is signed, or the caller declared it idempotent. Else it is held.

use super::{Attempt, Declaration, Kind, Report};
use crate::sink::http::{HttpRequest, HttpSink};
use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fmt;
use tidings_core::classify::{Exchange, classify};
use tidings_core::evidence::Evidence;
use tidings_core::guard::{GuardRules, Target};
use tidings_core::headers::check_request_headers;
use tidings_core::outcome::{Effect, FailureKind, Outcome};
use tidings_core::policy::{OnUnknown, Policy, Preset};
use tidings_core::sign::{self, Secret};
use tidings_core::time::{Millis, Time};

/// The arguments of `http.call`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct HttpCall {
    /// Absolute URL; `https` unless the operator allows more.
    #[serde(deserialize_with = "url")]
    pub url: String,
    /// `POST` where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<Method>,
    /// Sent as they are. Those of the connection and of the signature are refused.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "headers")]
    pub headers: BTreeMap<String, String>,
    /// Any JSON value, `null` too, sent as the bytes that were given. No body where absent.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "body")]
    pub body: Option<Box<RawValue>>,
    /// `whsec_…`: sign it as a Standard Webhook.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "secret")]
    pub secret: Option<String>,
    /// The receiver dedupes, or doing it twice is the same as once.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub idempotent: bool,
}

/// The methods that a call may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    /// Asks and changes nothing.
    Get,
    /// Asks for the head only.
    Head,
    /// The default.
    Post,
    /// Puts a whole thing.
    Put,
    /// Changes a part of a thing.
    Patch,
    /// Removes a thing.
    Delete,
    /// Asks what may be done.
    Options,
}

impl fmt::Debug for HttpCall {
    /// URL, headers and body may hold secrets: none of them is shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpCall")
            .field("method", &self.method)
            .field("signed", &self.secret.is_some())
            .finish_non_exhaustive()
    }
}

impl Kind for HttpCall {
    const DECLARATION: Declaration = Declaration::new("http.call").policy(Preset::Default);

    fn on_unknown(&self, _: &Policy) -> OnUnknown {
        if self.secret.is_some() || self.idempotent { OnUnknown::Retry } else { OnUnknown::Hold }
    }

    /// The secret, header values and what a URL may carry besides its path are
    /// replaced. The body is shown as it is: it is the caller's message.
    fn without_secrets(&self) -> Option<String> {
        let shown = HttpCall {
            url: url_without_secrets(&self.url),
            method: self.method,
            headers: self.headers.keys().map(|name| (name.clone(), HIDDEN.to_owned())).collect(),
            body: self.body.clone(),
            secret: self.secret.as_ref().map(|_| HIDDEN.to_owned()),
            idempotent: self.idempotent,
        };
        serde_json::to_string(&shown).ok()
    }
}

const HIDDEN: &str = "[REDACTED]";

fn url_without_secrets(url: &str) -> String {
    let Ok(mut url) = url::Url::parse(url) else { return HIDDEN.to_owned() };
    if url.query().is_some() {
        url.set_query(Some(HIDDEN));
    }
    url.to_string()
}

/// The handler: one request, classified.
pub async fn run(sink: HttpSink, attempt: Attempt<HttpCall>) -> Report {
    let request = match request(&attempt) {
        Ok(request) => request,
        Err(problem) => return never_sent(&problem),
    };
    let sent = sink.send(request, attempt.started_at, &attempt.trail).await;
    let evidence = sent.evidence;
    // A Retry-After counts from the answer, which may be seconds after the start.
    let took = evidence.phases_ms.last().map_or(Millis::ZERO, |(_, ms)| Millis(*ms));
    let verdict = classify(
        &Exchange {
            ending: &sent.ending,
            phase: evidence.phase,
            bytes_written: evidence.bytes_written,
            request_complete: sent.request_complete,
            retry_after: evidence.retry_after.as_ref(),
            redirect_host: evidence.redirect_host.as_deref(),
        },
        attempt.policy.retryable_statuses(),
        attempt.started_at + took,
    );
    let evidence = Evidence {
        effect: verdict.effect,
        failure_kind: verdict.failure_kind,
        http: Some(Box::new(evidence)),
    };
    Report { outcome: verdict.outcome, evidence }
}

/// What is checked at the door is checked again: an older program may have enqueued it.
fn never_sent(problem: &str) -> Report {
    Report {
        outcome: Outcome::discard(format!("the request cannot be made: {problem}")),
        evidence: Evidence::plain(Effect::None, Some(FailureKind::BadArguments)),
    }
}

fn request(attempt: &Attempt<HttpCall>) -> Result<HttpRequest, String> {
    let call = &attempt.args;
    let body =
        call.body.as_ref().map(|body| Bytes::copy_from_slice(body.get().as_bytes())).unwrap_or_default();
    let mut headers = Vec::with_capacity(call.headers.len() + 4);
    for (name, value) in &call.headers {
        headers.push(header(name, value)?);
    }
    let says_type = call.headers.keys().any(|name| name.eq_ignore_ascii_case("content-type"));
    if call.body.is_some() && !says_type {
        headers.push(header("content-type", "application/json")?);
    }
    if let Some(secret) = &call.secret {
        headers.extend(signature(secret, &attempt.job_id.to_string(), attempt.started_at, &body)?);
    }
    let method = call.method.unwrap_or(Method::Post).into();
    Ok(HttpRequest { method, url: call.url.clone(), headers, body })
}

fn signature(
    secret: &str,
    id: &str,
    at: Time,
    body: &[u8],
) -> Result<[(http::HeaderName, http::HeaderValue); 3], String> {
    let secret: Secret = secret.parse().map_err(|refused: sign::BadSecret| refused.to_string())?;
    let signed = sign::sign(&[secret], id, at, body).map_err(|refused| refused.to_string())?;
    Ok([
        header("webhook-id", &signed.id)?,
        header("webhook-timestamp", &signed.timestamp)?,
        header("webhook-signature", &signed.signature)?,
    ])
}

fn header(name: &str, value: &str) -> Result<(http::HeaderName, http::HeaderValue), String> {
    let refused = || format!("`{}` is not a header that can be sent", tidings_core::text::safe(name, 64));
    Ok((name.parse().map_err(|_| refused())?, value.parse().map_err(|_| refused())?))
}

impl From<Method> for http::Method {
    fn from(method: Method) -> http::Method {
        match method {
            Method::Get => http::Method::GET,
            Method::Head => http::Method::HEAD,
            Method::Post => http::Method::POST,
            Method::Put => http::Method::PUT,
            Method::Patch => http::Method::PATCH,
            Method::Delete => http::Method::DELETE,
            Method::Options => http::Method::OPTIONS,
        }
    }
}

/// Its form only. Where it may lead is asked at each attempt: the operator's rules
/// may change between enqueue and send.
fn url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let any = GuardRules { allow_private: true, allow_http: true, ..GuardRules::default() };
    let text = String::deserialize(deserializer)?;
    Target::parse(&text, &any).map_err(serde::de::Error::custom)?;
    Ok(text)
}

fn headers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
    let headers = BTreeMap::<String, String>::deserialize(deserializer)?;
    let pairs: Vec<(String, String)> =
        headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    check_request_headers(&pairs).map_err(serde::de::Error::custom)?;
    Ok(headers)
}

/// What is there is a body: an `Option` of its own would take `null` for none.
fn body<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

fn secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    if let Some(text) = &text {
        text.parse::<Secret>().map_err(serde::de::Error::custom)?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What could never be sent is said to the one who asks, not to the one who reads the evidence.
    #[test]
    fn a_url_of_a_form_that_is_never_sent_is_refused_at_the_door() {
        for (url, why) in [
            ("", "absolute"),
            ("//example.org", "absolute"),
            ("ftp://example.org/", "scheme"),
            ("https://ann:s3cret@example.org/", "user name or password"),
            ("https://example.org/#part", "fragment"),
            ("https://example.org:0/", "port 0"),
            ("https://exa mple.org/", "blank"),
            ("https:\\\\example.org", "backslash"),
        ] {
            let args = serde_json::json!({ "url": url }).to_string();
            let refusal = serde_json::from_str::<HttpCall>(&args).unwrap_err().to_string();
            assert!(refusal.contains(why) && !refusal.contains("s3cret"), "{url}: {refusal}");
        }
    }

    #[test]
    fn where_a_url_leads_is_asked_at_the_attempt_and_not_at_the_door() {
        for url in ["http://127.0.0.1:9090/", "https://[::1]/", "http://localhost/", "https://10.0.0.1:8443/"]
        {
            let args = serde_json::json!({ "url": url }).to_string();
            assert!(serde_json::from_str::<HttpCall>(&args).is_ok(), "{url}");
        }
    }
}
