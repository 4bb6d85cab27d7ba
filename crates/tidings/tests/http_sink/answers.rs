//! What goes over the wire, and what is kept of the answer's head.

use crate::bodies::sha256_hex;
use crate::fixture::{header, post, send, sink, word};
use bytes::Bytes;
use http::Method;
use testkit::receiver::{Receiver, Step};
use tidings_core::classify::Ending;
use tidings_core::evidence::Phase;
use tidings_core::outcome::Effect;

#[tokio::test]
async fn the_request_on_the_wire_is_what_was_asked_for() {
    let receiver = Receiver::start([Step::status(200)]).await;
    let mut request = post(receiver.url("/path?q=%20x&y"));
    request.headers.push(header("x-own", "kept as given"));
    // Headers of the connection are the sink's own.
    for (name, value) in [("host", "evil.test"), ("content-length", "3"), ("connection", "keep-alive")] {
        request.headers.push(header(name, value));
    }
    request.headers.push(header("transfer-encoding", "chunked"));
    request.headers.push(header("accept-encoding", "gzip"));
    let seen = send(&sink(), request).await;

    let received = receiver.wait_for_bodies(1).await.remove(0);
    assert_eq!((received.method.as_str(), received.path.as_str()), ("POST", "/path?q=%20x&y"));
    let mut headers: Vec<(String, String)> = received
        .headers
        .iter()
        .map(|(name, value)| (name.to_ascii_lowercase(), String::from_utf8_lossy(value).into_owned()))
        .collect();
    headers.sort();
    let user_agent = concat!("tidings/", env!("CARGO_PKG_VERSION"));
    let expected = [
        ("accept-encoding", "identity"),
        ("connection", "close"),
        ("content-length", "7"),
        ("content-type", "application/json"),
        ("host", &receiver.addr().to_string()),
        ("user-agent", user_agent),
        ("x-own", "kept as given"),
    ];
    assert_eq!(headers, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert_eq!(received.body, b"{\"a\":1}");

    let evidence = seen.sent.evidence;
    assert_eq!((evidence.method.as_str(), evidence.request_body_bytes), ("POST", 7));
    assert_eq!(evidence.origin, receiver.url(""));
    assert_eq!(evidence.address, Some(receiver.addr().to_string()));
    assert_eq!(evidence.request_body_sha256, sha256_hex(b"{\"a\":1}"));
}

#[tokio::test]
async fn the_length_of_a_body_is_in_bytes() {
    let body = "{\"name\":\"José 🎉\"}";
    let receiver = Receiver::start([Step::status(200)]).await;
    let mut request = post(receiver.url("/"));
    request.body = Bytes::from_static(body.as_bytes());
    send(&sink(), request).await;
    let received = receiver.wait_for_bodies(1).await.remove(0);
    assert_eq!(received.header("content-length"), Some(body.len().to_string().as_str()));
    assert_eq!(received.body, body.as_bytes());
}

#[tokio::test]
async fn a_request_without_a_body_is_complete_with_its_head() {
    for (method, length) in
        [(Method::GET, None), (Method::HEAD, None), (Method::DELETE, None), (Method::POST, Some("0"))]
    {
        let receiver = Receiver::start([Step::status(204)]).await;
        let mut request = post(receiver.url("/"));
        (request.method, request.body) = (method.clone(), Bytes::new());
        let seen = send(&sink(), request).await;
        assert!(seen.sent.request_complete, "{method}");
        assert_eq!(seen.sent.evidence.phase, Phase::Done, "{method}");
        assert_eq!(receiver.requests()[0].header("content-length"), length, "{method}");
    }
}

#[tokio::test]
async fn phases_are_noted_in_order_with_their_times() {
    let receiver = Receiver::start([Step::status(200).body("ok")]).await;
    let seen = send(&sink(), post(receiver.url("/"))).await;
    let evidence = seen.sent.evidence;
    let phases: Vec<Phase> = evidence.phases_ms.iter().map(|(phase, _)| *phase).collect();
    use Phase::*;
    assert_eq!(phases, [Guard, Connect, Write, Wait, Head, Body, Done]);
    assert!(evidence.phases_ms.is_sorted_by_key(|(_, at_ms)| *at_ms), "{:?}", evidence.phases_ms);
    assert!(evidence.bytes_written > 7 && evidence.bytes_read > 2);
}

#[tokio::test]
async fn only_listed_headers_are_kept_and_any_bytes_are_decoded() {
    let step = Step::status(503)
        .reason(b"Nicht verf\xfcgbar")
        .header("X", b"\xe4")
        .header("Location", b"\xff")
        .header("Retry-After", b"\xff")
        .header("Server", b"caf\xe9/1")
        .header("Set-Cookie", "session=secret")
        .header("X-Request-Id", "r".repeat(1_000));
    let receiver = Receiver::start([step]).await;
    let seen = send(&sink(), post(receiver.url("/"))).await;
    let evidence = seen.sent.evidence;
    assert_eq!(seen.sent.ending, Ending::Answer { status: 503 });
    assert_eq!((word(&seen.verdict.outcome), seen.verdict.effect), ("retryable", Effect::Possible));
    let expected = [
        ("retry-after", "\u{fffd}".to_owned()),
        ("content-length", "0".to_owned()),
        ("server", "caf\u{fffd}/1".to_owned()),
        ("x-request-id", "r".repeat(256)),
    ];
    assert_eq!(evidence.headers, expected.map(|(name, value)| (name.to_owned(), value)));
    assert_eq!(evidence.retry_after.unwrap().used_ms, None);
}

#[tokio::test]
async fn a_redirect_with_any_bytes_is_no_panic() {
    let receiver = Receiver::start([Step::redirect(b"\xff\xfe//\x80")]).await;
    let seen = send(&sink(), post(receiver.url("/"))).await;
    assert_eq!(seen.sent.ending, Ending::Answer { status: 302 });
    assert_eq!(word(&seen.verdict.outcome), "discard");
}

#[tokio::test]
async fn an_early_answer_is_read_while_the_request_is_still_being_written() {
    for status in [413, 401, 200] {
        let receiver = Receiver::start([Step::early_answer(status).then_hang(), Step::status(500)]).await;
        let mut request = post(receiver.url("/"));
        request.body = Bytes::from(vec![b'x'; 5 * 1024 * 1024]);
        let seen = send(&sink(), request).await;
        assert_eq!(seen.sent.ending, Ending::Answer { status });
        assert_eq!((receiver.requests().len(), receiver.connections()), (1, 1), "{status}");
    }
}

#[tokio::test]
async fn an_early_answer_is_read_although_the_connection_is_reset_behind_it() {
    for round in 0..6 {
        for status in [413, 401, 200] {
            let receiver = Receiver::start([Step::early_answer_then_reset(status), Step::status(500)]).await;
            let mut request = post(receiver.url("/"));
            request.body = Bytes::from(vec![b'x'; 5 * 1024 * 1024]);
            let seen = send(&sink(), request).await;
            assert_eq!(seen.sent.ending, Ending::Answer { status }, "round {round}: {:?}", seen.sent);
            assert!(!seen.sent.request_complete, "round {round}");
            assert_eq!((receiver.requests().len(), receiver.connections()), (1, 1), "round {round}");
        }
    }
}
