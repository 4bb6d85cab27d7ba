//! TLS: what is trusted, what each failure says, and from when on a request may
//! have had an effect.

use crate::fixture::{ScriptedResolver, post, reason, send, sink_with, word};
use testkit::receiver::{Receiver, Step, Tls, authority, silent_tls_port};
use tidings::sink::http::{HttpLimits, HttpSink, HttpSinkConfig, HttpSinkError};
use tidings_core::classify::Ending;
use tidings_core::evidence::Phase;
use tidings_core::outcome::{Effect, FailureKind};

/// Trusts the test authority and finds every name on 127.0.0.1.
fn trusting_sink() -> HttpSink {
    sink_with(|config| {
        config.extra_roots = vec![authority()];
        config.resolver = ScriptedResolver::new([Ok(vec!["127.0.0.1:1".parse().unwrap()])]);
    })
}

#[tokio::test]
async fn a_request_over_tls_is_one_request_with_all_its_phases() {
    let receiver = Receiver::start_tls(Tls::Valid, [Step::status(200).body("ok")]).await;
    let port = receiver.addr().port();
    let names = [format!("https://hooks.example.com:{port}/a?b"), receiver.url("/a?b")];
    for (index, url) in names.into_iter().enumerate() {
        let seen = send(&trusting_sink(), post(url)).await;
        assert_eq!(seen.sent.ending, Ending::Answer { status: 200 }, "{:?}", seen.sent);
        let phases: Vec<Phase> = seen.sent.evidence.phases_ms.iter().map(|(phase, _)| *phase).collect();
        assert!(phases.contains(&Phase::Tls) && phases.ends_with(&[Phase::Done]), "{phases:?}");
        let received = &receiver.wait_for_bodies(index + 1).await[index];
        assert_eq!((received.path.as_str(), received.body.as_slice()), ("/a?b", &b"{\"a\":1}"[..]));
        // What is counted is the request itself, not its encryption.
        let head_bytes = seen.sent.evidence.bytes_written - 7;
        assert!((100..400).contains(&head_bytes), "{head_bytes}");
    }
    assert_eq!(receiver.connections(), 2);
}

#[tokio::test]
async fn a_handshake_that_fails_had_no_effect_and_says_what_to_do() {
    let alert = [0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x28];
    let table: Vec<(&str, Receiver, &str, HttpSink, &str)> = vec![
        (
            "an unknown authority",
            Receiver::start_tls(Tls::Valid, [Step::status(200)]).await,
            "127.0.0.1",
            crate::fixture::sink(),
            "nobody that is trusted",
        ),
        (
            "an expired certificate",
            Receiver::start_tls(Tls::Expired, [Step::status(200)]).await,
            "127.0.0.1",
            trusting_sink(),
            "expired",
        ),
        (
            "another name",
            Receiver::start_tls(Tls::Valid, [Step::status(200)]).await,
            "other.example.com",
            trusting_sink(),
            "another name",
        ),
        (
            "no TLS there",
            Receiver::start([Step::speak_first("HTTP/1.1 400 Bad Request\r\n\r\n")]).await,
            "127.0.0.1",
            trusting_sink(),
            "does not speak TLS",
        ),
        (
            "an alert",
            Receiver::start([Step::speak_first(alert)]).await,
            "127.0.0.1",
            trusting_sink(),
            "HandshakeFailure",
        ),
    ];
    for (what, receiver, host, sink, says) in table {
        let seen = send(&sink, post(format!("https://{host}:{}/", receiver.addr().port()))).await;
        assert!(matches!(seen.sent.ending, Ending::TlsFailed(_)), "{what}: {:?}", seen.sent);
        assert_eq!(seen.sent.evidence.phase, Phase::Tls, "{what}");
        assert_eq!((word(&seen.verdict.outcome), seen.verdict.effect), ("retryable", Effect::None), "{what}");
        assert_eq!(seen.verdict.failure_kind, Some(FailureKind::Tls), "{what}");
        assert!(reason(&seen.verdict.outcome).contains(says), "{what}: {:?}", seen.verdict);
        assert_eq!(seen.sent.evidence.bytes_written, 0, "{what}");
        assert_eq!((receiver.requests().len(), receiver.connections()), (0, 1), "{what}");
    }
}

#[tokio::test]
async fn a_handshake_that_never_ends_is_given_up() {
    let receiver = silent_tls_port().await;
    for limits in [
        HttpLimits { tls_ms: 150, ..HttpLimits::default() },
        HttpLimits { total_ms: 150, ..HttpLimits::default() },
    ] {
        let sink = sink_with(|config| config.limits = limits);
        let seen = send(&sink, post(format!("https://127.0.0.1:{}/", receiver.addr().port()))).await;
        assert!(matches!(seen.sent.ending, Ending::TlsFailed(_)), "{:?}", seen.sent);
        assert_eq!((word(&seen.verdict.outcome), seen.verdict.effect), ("retryable", Effect::None));
    }
    receiver.wait_for_closed_by_client(2).await;
}

#[tokio::test]
async fn a_refusal_after_our_handshake_may_have_had_an_effect() {
    let receiver = Receiver::start_tls(Tls::DemandsClientCertificate, [Step::status(200)]).await;
    let seen = send(&trusting_sink(), post(receiver.url("/"))).await;
    assert!(matches!(seen.sent.ending, Ending::Broken(_)), "{:?}", seen.sent);
    assert!(seen.sent.evidence.phase >= Phase::Write);
    assert_eq!((word(&seen.verdict.outcome), seen.verdict.effect), ("unknown", Effect::Possible));
    assert_eq!((receiver.requests().len(), receiver.connections()), (0, 1));
}

#[tokio::test]
async fn something_that_is_no_certificate_is_refused_at_set_up() {
    let config = HttpSinkConfig { extra_roots: vec![vec![1, 2, 3].into()], ..HttpSinkConfig::default() };
    let refused = HttpSink::new(config).err();
    assert!(matches!(refused, Some(HttpSinkError::BadRoot { number: 1, .. })), "{refused:?}");
}
