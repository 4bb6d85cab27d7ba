//! Exchanges that break: what broke when, what may have happened, and that
//! nothing was sent a second time.

use crate::fixture::{
    ScriptedResolver, classify_sent, post, reason, send, sink, sink_with, sink_within, word,
};
use bytes::Bytes;
use std::io;
use testkit::receiver::{Receiver, Step, unused_port};
use tidings::sink::http::{HttpLimits, Sent, Trail};
use tidings_core::classify::Ending;
use tidings_core::evidence::Phase;
use tidings_core::outcome::Effect::{None as NoEffect, Possible};
use tidings_core::outcome::FailureKind::{self, *};

/// The ending without its words.
fn ending(sent: &Sent) -> &'static str {
    match sent.ending {
        Ending::Answer { .. } => "answer",
        Ending::Blocked(_) => "blocked",
        Ending::DnsFailed(_) => "dns",
        Ending::ConnectFailed(_) => "connect",
        Ending::TlsFailed(_) => "tls",
        Ending::Broken(_) => "broken",
        Ending::Deadline => "deadline",
        Ending::Invalid(_) => "invalid",
    }
}

#[tokio::test]
async fn a_connection_that_breaks_after_the_request_leaves_the_outcome_unknown() {
    let not_http = || Step::raw("SSH-2.0-OpenSSH_9.2\r\nand more\r\n\r\n");
    let bad_status = || Step::raw("HTTP/1.1 abc Oops\r\n\r\n");
    let bad_length = || Step::raw("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n");
    let half_interim = || Step::raw("HTTP/1.1 100 Continue\r\n\r\n");
    let table: Vec<(&str, Step, &str, Phase, FailureKind)> = vec![
        ("reset before reading", Step::reset_before_reading(), "broken", Phase::Wait, ConnectionLost),
        ("reset after reading", Step::reset_after_reading(), "broken", Phase::Wait, ConnectionLost),
        ("closed without an answer", Step::close_without_answer(), "broken", Phase::Wait, ConnectionLost),
        ("half a status line", Step::half_status_line(), "broken", Phase::Head, ResponseInvalid),
        ("half a head", Step::half_headers(), "broken", Phase::Head, ResponseInvalid),
        (
            "half a head, then reset",
            Step::half_headers().then_reset(),
            "broken",
            Phase::Head,
            ResponseInvalid,
        ),
        ("100, then closed", half_interim(), "broken", Phase::Head, ResponseInvalid),
        ("another protocol", not_http(), "invalid", Phase::Head, ResponseInvalid),
        ("no status code", bad_status(), "invalid", Phase::Head, ResponseInvalid),
        ("two lengths", bad_length(), "invalid", Phase::Head, ResponseInvalid),
        ("101 unasked", Step::switching_protocols_101(), "invalid", Phase::Head, ResponseInvalid),
    ];
    for (what, step, expected, phase, kind) in table {
        let receiver = Receiver::start([step, Step::status(200)]).await;
        let seen = send(&sink(), post(receiver.url("/in"))).await;
        assert_eq!(ending(&seen.sent), expected, "{what}: {:?}", seen.sent);
        assert_eq!(seen.sent.evidence.phase, phase, "{what}: {:?}", seen.sent);
        assert!(seen.sent.request_complete, "{what}");
        assert_eq!(seen.sent.evidence.status, None, "{what}");
        assert_eq!(word(&seen.verdict.outcome), "unknown", "{what}: {:?}", seen.verdict);
        assert_eq!((seen.verdict.effect, seen.verdict.failure_kind), (Possible, Some(kind)), "{what}");
        assert_eq!((receiver.requests().len(), receiver.connections()), (1, 1), "{what}");
    }
}

#[tokio::test]
async fn a_silent_receiver_is_a_deadline_after_the_request() {
    let receiver = Receiver::start([Step::hang(), Step::status(200)]).await;
    let seen = send(&sink_within(200), post(receiver.url("/"))).await;
    assert_eq!((&seen.sent.ending, seen.sent.evidence.phase), (&Ending::Deadline, Phase::Wait));
    assert_eq!(word(&seen.verdict.outcome), "unknown");
    assert_eq!((seen.verdict.effect, seen.verdict.failure_kind), (Possible, Some(ResponseTimeout)));
    receiver.wait_for_closed_by_client(1).await;
    assert_eq!((receiver.requests().len(), receiver.connections()), (1, 1));
}

#[tokio::test]
async fn a_request_that_breaks_off_halfway_may_have_had_an_effect() {
    let receiver = Receiver::start([Step::reset_before_reading(), Step::status(200)]).await;
    let mut request = post(receiver.url("/"));
    request.body = Bytes::from(vec![b'x'; 32 * 1024 * 1024]);
    let seen = send(&sink(), request).await;
    assert_eq!((ending(&seen.sent), seen.sent.evidence.phase), ("broken", Phase::Write), "{:?}", seen.sent);
    assert!(!seen.sent.request_complete && seen.sent.evidence.bytes_written > 0);
    assert_eq!(word(&seen.verdict.outcome), "unknown");
    assert_eq!((seen.verdict.effect, seen.verdict.failure_kind), (Possible, Some(WriteAborted)));
    assert_eq!((receiver.requests().len(), receiver.connections()), (1, 1));
}

#[tokio::test]
async fn a_receiver_that_never_reads_ends_in_a_deadline_while_writing() {
    let receiver = Receiver::start([Step::accept_but_never_read()]).await;
    let mut request = post(receiver.url("/"));
    request.body = Bytes::from(vec![b'x'; 32 * 1024 * 1024]);
    let limits = HttpLimits { write_ms: 200, ..HttpLimits::default() };
    let seen = send(&sink_with(|config| config.limits = limits), request).await;
    assert_eq!((&seen.sent.ending, seen.sent.evidence.phase), (&Ending::Deadline, Phase::Write));
    assert!(!seen.sent.request_complete);
    assert_eq!((word(&seen.verdict.outcome), seen.verdict.effect), ("unknown", Possible));
    receiver.wait_for_closed_by_client(1).await;
}

#[tokio::test]
async fn a_refused_connection_had_no_effect() {
    let seen = send(&sink(), post(format!("http://127.0.0.1:{}/", unused_port()))).await;
    assert_eq!((ending(&seen.sent), seen.sent.evidence.phase), ("connect", Phase::Connect));
    assert_eq!((word(&seen.verdict.outcome), seen.verdict.effect), ("retryable", NoEffect));
    assert_eq!(seen.verdict.failure_kind, Some(Connect));
    assert_eq!((seen.sent.evidence.bytes_written, seen.sent.evidence.address), (0, None));
    assert!(reason(&seen.verdict.outcome).contains("refused"), "{:?}", seen.verdict);
}

#[tokio::test]
async fn the_next_address_is_tried_when_one_refuses() {
    let receiver = Receiver::start([Step::status(200)]).await;
    // Nothing listens on that port of 127.0.0.9.
    let addresses = vec!["127.0.0.9:1".parse().unwrap(), "127.0.0.1:1".parse().unwrap()];
    let resolver = ScriptedResolver::new([Ok(addresses)]);
    let sink = sink_with(|config| config.resolver = resolver.clone());
    let seen = send(&sink, post(format!("http://hooks.example.com:{}/", receiver.addr().port()))).await;
    assert_eq!(seen.sent.ending, Ending::Answer { status: 200 });
    assert_eq!(seen.sent.evidence.address, Some(receiver.addr().to_string()));
    assert_eq!((receiver.requests().len(), resolver.times_asked()), (1, 1));
}

#[tokio::test]
async fn a_name_that_does_not_resolve_had_no_effect() {
    let not_found = || Err(io::Error::new(io::ErrorKind::NotFound, "no such name"));
    let failure = || Err(io::Error::other("server failure"));
    for (answer, why) in
        [(not_found(), "no such name"), (failure(), "server failure"), (Ok(vec![]), "no address")]
    {
        let resolver = ScriptedResolver::new([answer]);
        let sink = sink_with(|config| config.resolver = resolver.clone());
        let seen = send(&sink, post("https://hooks.example.com/a?secret")).await;
        assert_eq!((ending(&seen.sent), seen.sent.evidence.phase), ("dns", Phase::Dns), "{why}");
        assert_eq!((word(&seen.verdict.outcome), seen.verdict.effect), ("retryable", NoEffect), "{why}");
        assert_eq!(seen.verdict.failure_kind, Some(Dns));
        let said = reason(&seen.verdict.outcome);
        assert!(
            said.contains(why) && said.contains("hooks.example.com") && !said.contains("secret"),
            "{said}"
        );
        assert_eq!(resolver.times_asked(), 1, "one attempt is one look-up");
    }
}

#[tokio::test]
async fn a_resolver_that_hangs_is_given_up() {
    struct Hanging;
    #[async_trait::async_trait]
    impl tidings::sink::http::Resolve for Hanging {
        async fn resolve(&self, _: &str, _: u16) -> io::Result<Vec<std::net::SocketAddr>> {
            std::future::pending().await
        }
    }
    for limits in [
        HttpLimits { dns_ms: 100, ..HttpLimits::default() },
        HttpLimits { total_ms: 100, ..HttpLimits::default() },
    ] {
        let sink = sink_with(|config| {
            config.resolver = std::sync::Arc::new(Hanging);
            config.limits = limits;
        });
        let seen = send(&sink, post("https://hooks.example.com/")).await;
        assert_eq!((ending(&seen.sent), seen.sent.evidence.phase), ("dns", Phase::Dns));
        assert_eq!((word(&seen.verdict.outcome), seen.verdict.effect), ("retryable", NoEffect));
    }
}

#[tokio::test]
async fn dropping_the_future_closes_the_connection_and_the_trail_tells_how_far_it_got() {
    let receiver = Receiver::start([Step::hang()]).await;
    let (sink, trail) = (sink(), Trail::default());
    assert_eq!((trail.evidence(), trail.nothing_was_sent()), (None, false));
    let working = tokio::spawn({
        let (sink, trail, request) = (sink.clone(), trail.clone(), post(receiver.url("/")));
        async move { sink.send(request, crate::fixture::NOW, &trail).await }
    });
    receiver.wait_for_bodies(1).await;
    working.abort();
    receiver.wait_for_closed_by_client(1).await;

    let evidence = trail.evidence().unwrap();
    assert!(evidence.bytes_written > 0 && evidence.status.is_none());
    assert!(trail.request_complete() && !trail.nothing_was_sent());
    let request_complete = trail.request_complete();
    let verdict = classify_sent(&Sent { ending: Ending::Deadline, request_complete, evidence });
    assert_eq!((word(&verdict.outcome), verdict.effect), ("unknown", Possible));
}

#[tokio::test]
async fn a_future_that_is_dropped_before_it_connected_has_sent_nothing() {
    let resolver = std::sync::Arc::new(crate::guard::NeverResolves::default());
    let sink = sink_with(|config| config.resolver = resolver.clone());
    let trail = Trail::default();
    {
        let mut sending =
            std::pin::pin!(sink.send(post("https://hooks.example.com/"), crate::fixture::NOW, &trail));
        tokio::select! {
            biased;
            _ = &mut sending => panic!("nothing resolves"),
            () = resolver.asked.notified() => {}
        }
    }
    assert!(trail.nothing_was_sent());
    assert_eq!(trail.evidence().unwrap().phase, Phase::Dns);
}

#[tokio::test]
async fn a_second_request_of_an_attempt_does_not_forget_that_the_first_one_left() {
    let receiver = Receiver::start([Step::status(200)]).await;
    let (sink, trail) = (sink(), Trail::default());
    sink.send(post(receiver.url("/")), crate::fixture::NOW, &trail).await;
    sink.send(post("https://nowhere.invalid/"), crate::fixture::NOW, &trail).await;
    assert_eq!(trail.evidence().unwrap().bytes_written, 0, "of the second one");
    assert!(trail.something_was_sent() && !trail.nothing_was_sent());
}

#[tokio::test]
async fn the_systems_resolver_finds_the_local_host() {
    let receiver = Receiver::start([Step::status(200)]).await;
    let seen = send(&sink(), post(format!("http://localhost:{}/", receiver.addr().port()))).await;
    assert_eq!(seen.sent.ending, Ending::Answer { status: 200 }, "{:?}", seen.sent);
    assert_eq!(seen.sent.evidence.origin, receiver.url("").replace("127.0.0.1", "localhost"));
}
