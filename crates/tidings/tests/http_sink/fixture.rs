//! A sink that may reach loopback, and what one exchange with it came to.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tidings::sink::http::{HttpLimits, HttpRequest, HttpSink, HttpSinkConfig, Resolve, Sent, Trail};
use tidings_core::classify::{Exchange, Verdict, classify};
use tidings_core::guard::GuardRules;
use tidings_core::outcome::Outcome;
use tidings_core::time::Time;

/// 2026-11-30T12:00:00Z.
pub(crate) const NOW: Time = Time(1_796_040_000_000);

/// An exchange that takes longer than this was ended by no limit of its own:
/// those that a test sets are shorter, all others longer.
const HANG_LIMIT: Duration = Duration::from_secs(20);

/// Everything reachable, for receivers on 127.0.0.1.
pub(crate) fn open_guard() -> GuardRules {
    GuardRules { allow_private: true, allow_http: true, ..GuardRules::default() }
}

pub(crate) fn sink() -> HttpSink {
    sink_with(|_| {})
}

/// A sink whose exchanges may take `total_ms` in all.
pub(crate) fn sink_within(total_ms: u64) -> HttpSink {
    sink_with(|config| config.limits = HttpLimits { total_ms, ..HttpLimits::default() })
}

pub(crate) fn sink_with(change: impl FnOnce(&mut HttpSinkConfig)) -> HttpSink {
    let mut config = HttpSinkConfig { guard: open_guard(), ..HttpSinkConfig::default() };
    change(&mut config);
    HttpSink::new(config).unwrap()
}

pub(crate) fn post(url: impl Into<String>) -> HttpRequest {
    HttpRequest {
        method: Method::POST,
        url: url.into(),
        headers: vec![header("content-type", "application/json")],
        body: Bytes::from_static(b"{\"a\":1}"),
    }
}

pub(crate) fn header(name: &'static str, value: &'static str) -> (HeaderName, HeaderValue) {
    (HeaderName::from_static(name), HeaderValue::from_static(value))
}

/// One exchange and its verdict.
pub(crate) struct Seen {
    pub(crate) sent: Sent,
    pub(crate) verdict: Verdict,
}

pub(crate) async fn send(sink: &HttpSink, request: HttpRequest) -> Seen {
    let trail = Trail::default();
    let sending = tokio::time::timeout(HANG_LIMIT, sink.send(request, NOW, &trail));
    let sent = sending.await.unwrap_or_else(|_| panic!("no limit ended it; reached: {:?}", trail.evidence()));
    assert_eq!(trail.evidence().as_ref(), Some(&sent.evidence), "the trail knows what the sink returned");
    assert_eq!(trail.nothing_was_sent(), sent.evidence.bytes_written == 0);
    assert_eq!(trail.request_complete(), sent.request_complete);
    let verdict = classify_sent(&sent);
    Seen { sent, verdict }
}

pub(crate) fn classify_sent(sent: &Sent) -> Verdict {
    let exchange = Exchange {
        ending: &sent.ending,
        phase: sent.evidence.phase,
        bytes_written: sent.evidence.bytes_written,
        request_complete: sent.request_complete,
        retry_after: sent.evidence.retry_after.as_ref(),
        redirect_host: sent.evidence.redirect_host.as_deref(),
    };
    classify(&exchange, &[], NOW)
}

/// The outcome without its words.
pub(crate) fn word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Accepted => "accepted",
        Outcome::Retryable(_) => "retryable",
        Outcome::Snooze { .. } => "snooze",
        Outcome::Discard(_) => "discard",
        Outcome::Unknown(_) => "unknown",
    }
}

/// The reason that a person reads.
pub(crate) fn reason(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Accepted => "",
        Outcome::Retryable(reason) | Outcome::Discard(reason) | Outcome::Unknown(reason) => reason,
        Outcome::Snooze { reason, .. } => reason,
    }
}

/// Answers each look-up with the next scripted list; the last one repeats.
pub(crate) struct ScriptedResolver {
    answers: Mutex<Vec<io::Result<Vec<SocketAddr>>>>,
    pub(crate) asked: AtomicUsize,
}

impl ScriptedResolver {
    pub(crate) fn new(
        answers: impl IntoIterator<Item = io::Result<Vec<SocketAddr>>>,
    ) -> Arc<ScriptedResolver> {
        let mut answers: Vec<_> = answers.into_iter().collect();
        answers.reverse();
        Arc::new(ScriptedResolver { answers: Mutex::new(answers), asked: AtomicUsize::new(0) })
    }

    pub(crate) fn times_asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

#[async_trait::async_trait]
impl Resolve for ScriptedResolver {
    async fn resolve(&self, _host: &str, _port: u16) -> io::Result<Vec<SocketAddr>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let mut answers = self.answers.lock().unwrap();
        if answers.len() > 1 {
            return answers.pop().unwrap();
        }
        match answers.first().unwrap() {
            Ok(addresses) => Ok(addresses.clone()),
            Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
        }
    }
}
