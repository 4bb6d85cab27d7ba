//! What is kept of an answer's body, whatever its size and bytes.

use crate::fixture::{header, post, send, sink, word};
use sha2::{Digest, Sha256};
use testkit::receiver::{Receiver, Step};
use tidings_core::classify::Ending;
use tidings_core::evidence::Phase;
use tidings_core::limits::{ANSWER_BYTES_MAX, EXCERPT_BYTES_MAX};
use tidings_core::outcome::Effect;

pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn a_body_is_kept_up_to_exact_bounds_in_bytes() {
    let table: [(usize, bool); 6] = [
        (0, false),
        (EXCERPT_BYTES_MAX, false),
        (ANSWER_BYTES_MAX - 1, false),
        (ANSWER_BYTES_MAX, false),
        (ANSWER_BYTES_MAX + 1, true),
        (300 * 1024, true),
    ];
    for (length, truncated) in table {
        // Two bytes a character, with one byte before: every cut falls inside one.
        let body: Vec<u8> = std::iter::once(b'a').chain("é".bytes().cycle()).take(length).collect();
        let receiver = Receiver::start([Step::status(200).body(&body)]).await;
        let seen = send(&sink(), post(receiver.url("/"))).await;
        let evidence = seen.sent.evidence;
        assert_eq!(seen.sent.ending, Ending::Answer { status: 200 }, "{length}");
        assert_eq!(word(&seen.verdict.outcome), "accepted", "{length}");
        assert_eq!(evidence.truncated, truncated, "{length}");
        assert_eq!(evidence.phase, if truncated { Phase::Body } else { Phase::Done }, "{length}");
        assert!(evidence.excerpt.len() <= EXCERPT_BYTES_MAX, "{length}");
        if length > EXCERPT_BYTES_MAX {
            assert_eq!(evidence.excerpt.len(), EXCERPT_BYTES_MAX - 1, "{length}");
            assert!(!evidence.excerpt.contains('\u{fffd}'), "{length}");
        }
        let read = &body[..length.min(ANSWER_BYTES_MAX)];
        let expected = if read.is_empty() { String::new() } else { sha256_hex(read) };
        assert_eq!(evidence.body_sha256, expected, "{length}");
        assert_eq!(receiver.requests().len(), 1, "{length}");
    }
}

#[tokio::test]
async fn any_bytes_become_text_that_can_be_kept() {
    let body = b"\xe2\x5c\x78\xff\xfe\x00<script>\x1b[31m\r\nforged line";
    let receiver = Receiver::start([Step::status(200).body(body)]).await;
    let seen = send(&sink(), post(receiver.url("/"))).await;
    assert_eq!(word(&seen.verdict.outcome), "accepted");
    assert_eq!(
        seen.sent.evidence.excerpt,
        "\u{fffd}\\x\u{fffd}\u{fffd}\u{fffd}<script>\u{fffd}[31m  forged line"
    );
    assert_eq!(seen.sent.evidence.body_sha256, sha256_hex(body));
    assert_eq!(receiver.requests().len(), 1);
}

#[tokio::test]
async fn a_body_that_breaks_off_leaves_the_status_standing() {
    let bad_chunk = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n";
    for (what, step, outcome) in [
        ("closed early", Step::status(200).truncated_body("abc", 100), "accepted"),
        ("reset", Step::status(200).truncated_body("abc", 100).then_reset(), "accepted"),
        ("a bad chunk", Step::raw(bad_chunk), "accepted"),
        ("a refusal", Step::status(500).truncated_body("abc", 100), "retryable"),
    ] {
        let receiver = Receiver::start([step]).await;
        let seen = send(&sink(), post(receiver.url("/"))).await;
        assert_eq!(word(&seen.verdict.outcome), outcome, "{what}");
        assert_eq!(seen.sent.evidence.excerpt, "abc", "{what}");
        assert_eq!((seen.sent.evidence.truncated, seen.sent.evidence.phase), (true, Phase::Body), "{what}");
        assert_eq!(receiver.requests().len(), 1, "{what}");
    }
}

#[tokio::test]
async fn a_secret_that_is_echoed_is_not_kept() {
    let receiver = Receiver::start([Step::answer_with(|received| {
        let mut echo = Vec::new();
        for (_, value) in &received.headers {
            echo.extend_from_slice(value);
            echo.push(b'\n');
        }
        Step::status(500).body([&echo, &b"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"[..]].concat())
    })])
    .await;
    let mut request = post(receiver.url("/"));
    request.headers.push(header("authorization", "Bearer tok_0123456789"));
    request.headers.push(header("x-api-key", "key-of-the-endpoint"));
    request.headers.push(header("webhook-signature", "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4="));
    let seen = send(&sink(), request).await;
    let excerpt = &seen.sent.evidence.excerpt;
    for secret in ["tok_0123456789", "key-of-the-endpoint", "K5oZfzN95", "MfKQ9r8GKY"] {
        assert!(!excerpt.contains(secret), "{excerpt}");
    }
    assert!(excerpt.contains("application/json"), "what is no secret stays: {excerpt}");
    assert_eq!(seen.verdict.effect, Effect::Possible);
}

#[tokio::test]
async fn a_compressed_body_is_kept_as_it_came() {
    let gzip = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03not really";
    let receiver = Receiver::start([Step::status(200).header("Content-Encoding", "gzip").body(gzip)]).await;
    let seen = send(&sink(), post(receiver.url("/"))).await;
    assert_eq!(seen.sent.evidence.body_sha256, sha256_hex(gzip));
    assert_eq!(receiver.requests()[0].header("accept-encoding"), Some("identity"));
}
