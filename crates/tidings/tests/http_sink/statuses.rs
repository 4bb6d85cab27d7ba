//! Every class of status code, as the sink and the classification see it together.

use crate::fixture::{post, reason, send, sink, word};
use testkit::receiver::{Receiver, Step};
use tidings_core::classify::Ending;
use tidings_core::evidence::Phase;
use tidings_core::outcome::Effect::{self, Done, None as NoEffect, Possible};
use tidings_core::outcome::FailureKind::{self, *};

#[tokio::test]
async fn every_status_is_read_from_one_request_and_classified() {
    let table: &[(u16, &str, Effect, Option<FailureKind>)] = &[
        (200, "accepted", Done, None),
        (201, "accepted", Done, None),
        (202, "accepted", Possible, None),
        (204, "accepted", Done, None),
        (299, "accepted", Done, None),
        (300, "discard", NoEffect, Some(Redirect)),
        (301, "discard", NoEffect, Some(Redirect)),
        (302, "discard", NoEffect, Some(Redirect)),
        (303, "discard", NoEffect, Some(Redirect)),
        (304, "discard", NoEffect, Some(Redirect)),
        (307, "discard", NoEffect, Some(Redirect)),
        (308, "discard", NoEffect, Some(Redirect)),
        (400, "discard", NoEffect, Some(Http4xx)),
        (401, "discard", NoEffect, Some(Auth)),
        (403, "discard", NoEffect, Some(Auth)),
        (404, "discard", NoEffect, Some(Http4xx)),
        (405, "discard", NoEffect, Some(Http4xx)),
        (407, "discard", NoEffect, Some(Auth)),
        (408, "retryable", Possible, Some(Http4xx)),
        (409, "retryable", Possible, Some(Http4xx)),
        (410, "discard", NoEffect, Some(Gone)),
        (413, "discard", NoEffect, Some(Http4xx)),
        (415, "discard", NoEffect, Some(Http4xx)),
        (421, "retryable", NoEffect, Some(Http4xx)),
        (422, "discard", NoEffect, Some(Http4xx)),
        (425, "retryable", NoEffect, Some(Http4xx)),
        (429, "retryable", NoEffect, Some(RateLimited)),
        (431, "discard", NoEffect, Some(Http4xx)),
        (451, "discard", NoEffect, Some(Http4xx)),
        (499, "discard", NoEffect, Some(Http4xx)),
        (500, "retryable", Possible, Some(Http5xx)),
        (501, "discard", NoEffect, Some(Http5xx)),
        (502, "retryable", Possible, Some(Http5xx)),
        (503, "retryable", Possible, Some(Http5xx)),
        (504, "retryable", Possible, Some(Http5xx)),
        (505, "discard", NoEffect, Some(Http5xx)),
        (511, "retryable", NoEffect, Some(Connect)),
        (599, "retryable", Possible, Some(Http5xx)),
        (600, "retryable", Possible, Some(Http5xx)),
        (999, "retryable", Possible, Some(Http5xx)),
    ];
    for (status, outcome, effect, failure_kind) in table {
        let receiver = Receiver::start([Step::status(*status)]).await;
        let seen = send(&sink(), post(receiver.url("/"))).await;
        assert_eq!(seen.sent.ending, Ending::Answer { status: *status });
        assert_eq!(seen.sent.evidence.phase, Phase::Done, "{status}");
        assert!(seen.sent.request_complete, "{status}");
        assert_eq!(word(&seen.verdict.outcome), *outcome, "{status}");
        assert_eq!((seen.verdict.effect, seen.verdict.failure_kind), (*effect, *failure_kind), "{status}");
        assert_eq!((receiver.requests().len(), receiver.connections()), (1, 1), "{status}");
    }
}

#[tokio::test]
async fn a_retry_after_snoozes_and_is_kept_as_sent() {
    for (status, value, used_ms) in [
        (429, "120", Some(120_000)),
        (503, "120", Some(120_000)),
        (503, " 120 ", Some(120_000)),
        (503, "Mon, 30 Nov 2026 12:02:00 GMT", Some(120_000)),
        (503, "99999999999999999999", Some(36_000_000)),
        (429, "0", None),
        (429, "-43", None),
        (429, "1.5", None),
    ] {
        let receiver = Receiver::start([Step::status(status).header("Retry-After", value)]).await;
        let seen = send(&sink(), post(receiver.url("/"))).await;
        let kept = seen.sent.evidence.retry_after.unwrap();
        assert_eq!(kept.raw.trim(), value.trim());
        let expected = if used_ms.is_some() { "snooze" } else { "retryable" };
        assert_eq!(word(&seen.verdict.outcome), expected, "{status} {value}");
        // A date counts from when the answer came, a moment after the attempt began.
        let short_by = used_ms.zip(kept.used_ms).map(|(expected, used)| expected - used);
        assert_eq!(used_ms.is_some(), short_by.is_some(), "{value}");
        assert!((0..5_000).contains(&short_by.unwrap_or_default()), "{value}: {kept:?}");
    }
}

#[tokio::test]
async fn a_success_needs_no_retry_after() {
    let receiver = Receiver::start([Step::status(200).header("Retry-After", "120")]).await;
    let seen = send(&sink(), post(receiver.url("/"))).await;
    assert_eq!(seen.sent.evidence.retry_after, None);
    assert_eq!(word(&seen.verdict.outcome), "accepted");
}

#[tokio::test]
async fn a_redirect_is_never_followed_and_only_its_host_is_kept() {
    let elsewhere = Receiver::start([Step::status(200)]).await;
    let path = "/login?token=secret-of-theirs";
    for (status, location, host) in [
        (302, elsewhere.url(path), Some("127.0.0.1")),
        (307, "https://login.example.com:8443/a?b=secret".to_owned(), Some("login.example.com")),
        (308, "http://user:secret@169.254.169.254/latest".to_owned(), Some("169.254.169.254")),
        (303, path.to_owned(), Some("127.0.0.1")),
        (301, "http://[".to_owned(), None),
    ] {
        let receiver = Receiver::start([Step::redirect(&location).finally(status), Step::status(200)]).await;
        let mut request = post(receiver.url("/"));
        request.headers.push(crate::fixture::header("x-api-key", "not-for-others"));
        let seen = send(&sink(), request).await;
        assert_eq!(seen.sent.ending, Ending::Answer { status });
        assert_eq!(seen.sent.evidence.redirect_host.as_deref(), host, "{location}");
        assert_eq!(word(&seen.verdict.outcome), "discard");
        assert!(!format!("{:?}", seen.sent).contains("secret"), "{:?}", seen.sent);
        assert!(!reason(&seen.verdict.outcome).contains("secret"));
        assert_eq!(receiver.requests().len(), 1);
    }
    assert_eq!(elsewhere.connections(), 0);
}
