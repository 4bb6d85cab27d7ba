//! Every phase and size has its bound, and one deadline stands over all.

use crate::fixture::{post, send, sink, sink_with, sink_within, word};
use testkit::receiver::{Receiver, Step};
use tidings::sink::http::HttpLimits;
use tidings_core::classify::Ending;
use tidings_core::evidence::Phase;
use tidings_core::limits::{ANSWER_BYTES_MAX, ANSWER_HEADERS_MAX};
use tidings_core::outcome::Effect;

#[tokio::test]
async fn one_deadline_stands_over_all_phases() {
    // Each phase alone would be within its limit; together they are not.
    let drip = "HTTP/1.1 200 OK\r\nX-Slow: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n";
    let steps: Vec<(&str, Step, Ending, Phase)> = vec![
        ("a silent receiver", Step::hang(), Ending::Deadline, Phase::Wait),
        ("headers that never end", Step::raw(drip).then_hang(), Ending::Deadline, Phase::Head),
        ("102 every 50 ms", Step::informational(102, 1_000).every_ms(50), Ending::Deadline, Phase::Head),
        (
            "a body of one byte every 50 ms",
            Step::status(200).drip_body([b'x'; 1_000], 50),
            Ending::Answer { status: 200 },
            Phase::Body,
        ),
    ];
    for (what, step, ending, phase) in steps {
        let receiver = Receiver::start([step]).await;
        let seen = send(&sink_within(300), post(receiver.url("/"))).await;
        assert_eq!((&seen.sent.ending, seen.sent.evidence.phase), (&ending, phase), "{what}");
        receiver.wait_for_closed_by_client(1).await;
        assert_eq!((receiver.requests().len(), receiver.connections()), (1, 1), "{what}");
    }
}

#[tokio::test]
async fn every_phase_after_the_request_has_a_limit_of_its_own() {
    let limits = HttpLimits {
        write_ms: 60_000,
        first_byte_ms: 60_000,
        head_ms: 60_000,
        body_ms: 60_000,
        total_ms: 60_000,
        ..HttpLimits::default()
    };
    let half_head = || Step::half_headers().then_hang();
    let silent_body = || Step::status(200).truncated_body("ab", 100).then_hang();
    let silent_after_103 = || Step::raw("HTTP/1.1 103 Early Hints\r\n\r\n").then_hang();
    let table = [
        ("first byte", HttpLimits { first_byte_ms: 150, ..limits }, Step::hang(), None, Phase::Wait),
        ("head", HttpLimits { head_ms: 150, ..limits }, half_head(), None, Phase::Head),
        (
            "first byte after 103",
            HttpLimits { first_byte_ms: 150, ..limits },
            silent_after_103(),
            None,
            Phase::Head,
        ),
        ("body", HttpLimits { body_ms: 150, ..limits }, silent_body(), Some(200), Phase::Body),
    ];
    for (what, limits, step, status, phase) in table {
        let receiver = Receiver::start([step]).await;
        let seen = send(&sink_with(|config| config.limits = limits), post(receiver.url("/"))).await;
        let ending = status.map_or(Ending::Deadline, |status| Ending::Answer { status });
        assert_eq!((&seen.sent.ending, seen.sent.evidence.phase), (&ending, phase), "{what}");
        receiver.wait_for_closed_by_client(1).await;
    }
}

#[tokio::test]
async fn a_slow_interim_answer_does_not_shorten_the_wait_for_the_final_one() {
    let limits = HttpLimits { head_ms: 100, ..HttpLimits::default() };
    let receiver = Receiver::start([Step::informational(102, 4).every_ms(60)]).await;
    let seen = send(&sink_with(|config| config.limits = limits), post(receiver.url("/"))).await;
    assert_eq!(seen.sent.ending, Ending::Answer { status: 200 });
}

#[tokio::test]
async fn interim_answers_are_passed_over_up_to_a_bound() {
    for (code, count) in [(100, 1), (103, 1), (102, 8)] {
        let receiver = Receiver::start([Step::informational(code, count).finally(201)]).await;
        let seen = send(&sink(), post(receiver.url("/"))).await;
        assert_eq!(seen.sent.ending, Ending::Answer { status: 201 }, "{count} x {code}");
        assert_eq!(seen.sent.evidence.status, Some(201));
    }
    for count in [9, 100_000] {
        let receiver = Receiver::start([Step::informational(100, count)]).await;
        let seen = send(&sink(), post(receiver.url("/"))).await;
        if count == 9 {
            // All of it may be in one read, and then the final answer stands.
            assert!(matches!(seen.sent.ending, Ending::Invalid(_) | Ending::Answer { status: 200 }));
            continue;
        }
        assert!(matches!(seen.sent.ending, Ending::Invalid(_)), "{:?}", seen.sent);
        assert_eq!((word(&seen.verdict.outcome), seen.verdict.effect), ("unknown", Effect::Possible));
        assert_eq!((receiver.requests().len(), receiver.connections()), (1, 1));
    }
}

#[tokio::test]
async fn a_head_over_the_bound_is_refused_without_reading_on() {
    let long_value = "v".repeat(40 * 1024);
    for (what, step) in [
        ("headers without end", Step::endless_headers()),
        ("100,000 headers", Step::many_headers(100_000)),
        ("one more header than allowed", Step::many_headers(ANSWER_HEADERS_MAX - 1)),
        ("one long value", Step::status(200).header("X-Long", &long_value)),
    ] {
        let receiver = Receiver::start([step]).await;
        let seen = send(&sink(), post(receiver.url("/"))).await;
        assert!(matches!(seen.sent.ending, Ending::Invalid(_)), "{what}: {:?}", seen.sent);
        assert_eq!(
            (word(&seen.verdict.outcome), seen.verdict.effect),
            ("unknown", Effect::Possible),
            "{what}"
        );
        assert!(seen.sent.evidence.bytes_read < 256 * 1024, "{what}: {}", seen.sent.evidence.bytes_read);
        assert_eq!((receiver.requests().len(), receiver.connections()), (1, 1), "{what}");
    }
}

#[tokio::test]
async fn as_many_headers_as_allowed_are_read() {
    // The receiver adds Content-Length and Connection.
    let receiver = Receiver::start([Step::many_headers(ANSWER_HEADERS_MAX - 2)]).await;
    let seen = send(&sink(), post(receiver.url("/"))).await;
    assert_eq!(seen.sent.ending, Ending::Answer { status: 200 });
}

#[tokio::test]
async fn a_body_without_end_is_cut_at_exactly_its_bound_and_the_status_stands() {
    let receiver = Receiver::start([Step::status(200).endless_body()]).await;
    let seen = send(&sink(), post(receiver.url("/"))).await;
    assert_eq!(seen.sent.ending, Ending::Answer { status: 200 });
    assert!(seen.sent.evidence.truncated);
    assert_eq!(seen.sent.evidence.body_sha256, crate::bodies::sha256_hex(&vec![b'z'; ANSWER_BYTES_MAX]));
    receiver.wait_for_closed_by_client(1).await;
    assert_eq!(receiver.requests().len(), 1);
}
