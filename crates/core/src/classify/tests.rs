use super::*;
use crate::outcome::SnoozeSource;
use crate::retry_after;
use crate::time::Millis;
use proptest::prelude::*;

const NOW: Time = Time(1_792_567_560_000);

/// An exchange whose whole request went out and that was answered.
fn answered(ending: &Ending) -> Exchange<'_> {
    Exchange {
        ending,
        phase: Phase::Done,
        bytes_written: 300,
        request_complete: true,
        retry_after: None,
        redirect_host: None,
    }
}

fn of_status(status: u16) -> Verdict {
    classify(&answered(&Ending::Answer { status }), &[], NOW)
}

/// A 429 or 503 with this Retry-After.
fn asking(status: u16, field: &str) -> Verdict {
    let evidence = retry_after::read(&[field.as_bytes()], None, NOW);
    let ending = Ending::Answer { status };
    classify(&Exchange { retry_after: evidence.as_ref(), ..answered(&ending) }, &[], NOW)
}

/// The outcome's word and its reason.
fn parts(outcome: &Outcome) -> (&'static str, &str) {
    match outcome {
        Outcome::Accepted => ("accepted", ""),
        Outcome::Retryable(reason) => ("retryable", reason),
        Outcome::Snooze { reason, .. } => ("snooze", reason),
        Outcome::Discard(reason) => ("discard", reason),
        Outcome::Unknown(reason) => ("unknown", reason),
    }
}

#[test]
fn each_status_has_its_outcome_effect_and_kind() {
    use Effect::{Done, None as Never, Possible};
    use FailureKind::{Auth, Connect, Gone, Http4xx, Http5xx, RateLimited, Redirect};
    for (status, outcome, effect, kind) in [
        (200, "accepted", Done, None),
        (201, "accepted", Done, None),
        (202, "accepted", Possible, None),
        (204, "accepted", Done, None),
        (299, "accepted", Done, None),
        (300, "discard", Never, Some(Redirect)),
        (301, "discard", Never, Some(Redirect)),
        (302, "discard", Never, Some(Redirect)),
        (303, "discard", Never, Some(Redirect)),
        (304, "discard", Never, Some(Redirect)),
        (307, "discard", Never, Some(Redirect)),
        (308, "discard", Never, Some(Redirect)),
        (400, "discard", Never, Some(Http4xx)),
        (401, "discard", Never, Some(Auth)),
        (403, "discard", Never, Some(Auth)),
        (404, "discard", Never, Some(Http4xx)),
        (405, "discard", Never, Some(Http4xx)),
        (406, "discard", Never, Some(Http4xx)),
        (407, "discard", Never, Some(Auth)),
        (408, "retryable", Possible, Some(Http4xx)),
        (409, "retryable", Possible, Some(Http4xx)),
        (410, "discard", Never, Some(Gone)),
        (411, "discard", Never, Some(Http4xx)),
        (413, "discard", Never, Some(Http4xx)),
        (414, "discard", Never, Some(Http4xx)),
        (415, "discard", Never, Some(Http4xx)),
        (418, "discard", Never, Some(Http4xx)),
        (421, "retryable", Never, Some(Http4xx)),
        (422, "discard", Never, Some(Http4xx)),
        (425, "retryable", Never, Some(Http4xx)),
        (426, "discard", Never, Some(Http4xx)),
        (429, "retryable", Never, Some(RateLimited)),
        (431, "discard", Never, Some(Http4xx)),
        (451, "discard", Never, Some(Http4xx)),
        (499, "discard", Never, Some(Http4xx)),
        (500, "retryable", Possible, Some(Http5xx)),
        (501, "discard", Never, Some(Http5xx)),
        (502, "retryable", Possible, Some(Http5xx)),
        (503, "retryable", Possible, Some(Http5xx)),
        (504, "retryable", Possible, Some(Http5xx)),
        (505, "discard", Never, Some(Http5xx)),
        (511, "retryable", Never, Some(Connect)),
        (599, "retryable", Possible, Some(Http5xx)),
        (0, "retryable", Possible, Some(Http5xx)),
        (99, "retryable", Possible, Some(Http5xx)),
        (600, "retryable", Possible, Some(Http5xx)),
        (999, "retryable", Possible, Some(Http5xx)),
        (u16::MAX, "retryable", Possible, Some(Http5xx)),
    ] {
        let verdict = of_status(status);
        let found = (parts(&verdict.outcome).0, verdict.effect, verdict.failure_kind);
        assert_eq!(found, (outcome, effect, kind), "{status}");
    }
}

#[test]
fn every_status_has_a_verdict_whose_parts_agree() {
    for status in 0..=1_100 {
        let verdict = of_status(status);
        let (outcome, reason) = parts(&verdict.outcome);
        let success = (200..=299).contains(&status);
        assert_eq!(outcome == "accepted", success, "{status}");
        assert_eq!(verdict.failure_kind.is_none(), success, "{status}");
        assert!(verdict.effect != Effect::Done || success, "{status}");
        // What is discarded without a look was never acted upon.
        assert!(outcome != "discard" || verdict.effect == Effect::None, "{status}");
        assert_eq!(outcome == "unknown", (100..=199).contains(&status), "{status}");
        if !success {
            assert!(reason.starts_with(&status.to_string()) && reason.len() > 20, "{status}: {reason}");
        }
    }
}

#[test]
fn the_reason_names_the_remedy() {
    for (status, word) in [
        (401, "credentials"),
        (403, "credentials"),
        (404, "address"),
        (407, "proxy"),
        (410, "gone"),
        (413, "size"),
        (431, "size"),
        (500, "may have acted"),
        (511, "network"),
    ] {
        let verdict = of_status(status);
        assert!(parts(&verdict.outcome).1.contains(word), "{:?}", verdict.outcome);
    }
}

#[test]
fn a_policy_may_name_further_4xx_as_retryable_but_nothing_else() {
    for (status, outcome) in [
        (404, "retryable"),
        (401, "retryable"),
        (410, "retryable"),
        (403, "discard"),
        (302, "discard"),
        (501, "discard"),
        (200, "accepted"),
    ] {
        let verdict = classify(&answered(&Ending::Answer { status }), &[404, 401, 410, 302, 501, 200], NOW);
        assert_eq!(parts(&verdict.outcome).0, outcome, "{status}");
        assert_eq!(verdict.failure_kind, of_status(status).failure_kind, "{status}");
    }
}

#[test]
fn a_retry_after_with_429_or_503_snoozes_until_then_and_spends_nothing() {
    for (status, effect) in [(429, Effect::None), (503, Effect::Possible)] {
        for (field, wait_ms) in
            [("120", 120_000), ("Wed, 21 Oct 2026 07:28:00 GMT", 120_000), ("86400", 36_000_000)]
        {
            let verdict = asking(status, field);
            let Outcome::Snooze { until, source, reason } = &verdict.outcome else {
                panic!("{status} {field}: {verdict:?}");
            };
            assert_eq!((*until, *source), (NOW + Millis(wait_ms), SnoozeSource::RetryAfter), "{field}");
            assert_eq!((verdict.effect, verdict.failure_kind), (effect, Some(FailureKind::RateLimited)));
            assert_eq!(reason.contains("86400 s, cut to 36000 s"), wait_ms == 36_000_000, "{reason}");
        }
    }
}

#[test]
fn a_retry_after_that_is_of_no_use_leaves_the_policys_own_delay() {
    for (status, kind) in [(429, FailureKind::RateLimited), (503, FailureKind::Http5xx)] {
        for field in ["0", "soon", "", "-43", "Wed, 21 Oct 2026 07:25:50 GMT"] {
            let verdict = asking(status, field);
            let (outcome, reason) = parts(&verdict.outcome);
            assert_eq!((outcome, verdict.failure_kind), ("retryable", Some(kind)), "{status} {field}");
            assert!(reason.contains("Retry-After") && reason.contains("ignored"), "{reason}");
        }
    }
}

#[test]
fn a_retry_after_with_another_status_changes_nothing() {
    for status in [200, 301, 404, 413, 500, 502] {
        assert_eq!(asking(status, "120"), of_status(status), "{status}");
    }
}

#[test]
fn a_redirect_is_not_followed_and_shows_its_host_alone() {
    for status in [300, 301, 302, 303, 307, 308] {
        let ending = Ending::Answer { status };
        let exchange = Exchange { redirect_host: Some("login.example.com"), ..answered(&ending) };
        let verdict = classify(&exchange, &[], NOW);
        let (outcome, reason) = parts(&verdict.outcome);
        assert_eq!(outcome, "discard", "{status}");
        for word in ["login.example.com", "not followed", "URL"] {
            assert!(reason.contains(word), "{reason}");
        }
        let without = of_status(status);
        assert!(parts(&without.outcome).1.contains("without a target"), "{without:?}");
    }
}

/// Every way to end without an answer.
fn broken_endings() -> Vec<Ending> {
    let seen = || "as seen".to_owned();
    vec![
        Ending::Blocked(seen()),
        Ending::DnsFailed(seen()),
        Ending::ConnectFailed(seen()),
        Ending::TlsFailed(seen()),
        Ending::Broken(seen()),
        Ending::Deadline,
        Ending::Invalid(seen()),
    ]
}

const PHASES: [Phase; 9] = [
    Phase::Guard,
    Phase::Dns,
    Phase::Connect,
    Phase::Tls,
    Phase::Write,
    Phase::Wait,
    Phase::Head,
    Phase::Body,
    Phase::Done,
];

#[test]
fn what_broke_before_a_byte_was_written_had_no_effect() {
    for ending in broken_endings() {
        for phase in PHASES {
            let exchange = Exchange { phase, bytes_written: 0, request_complete: false, ..answered(&ending) };
            let verdict = classify(&exchange, &[], NOW);
            let (outcome, reason) = parts(&verdict.outcome);
            let expected = if matches!(ending, Ending::Blocked(_)) { "discard" } else { "retryable" };
            assert_eq!((outcome, verdict.effect), (expected, Effect::None), "{ending:?} {phase:?}");
            assert!(reason.ends_with("Nothing was sent"), "{reason}");
        }
    }
}

#[test]
fn what_broke_after_a_byte_was_written_is_unknown() {
    for ending in broken_endings() {
        for phase in PHASES {
            for (bytes_written, request_complete) in [(1, false), (299, false), (300, true), (0, true)] {
                let exchange = Exchange { phase, bytes_written, request_complete, ..answered(&ending) };
                let verdict = classify(&exchange, &[], NOW);
                let (outcome, reason) = parts(&verdict.outcome);
                let found = (outcome, verdict.effect);
                assert_eq!(found, ("unknown", Effect::Possible), "{ending:?} {phase:?}");
                assert_eq!(reason.contains("a part of the request"), !request_complete, "{reason}");
            }
        }
    }
}

#[test]
fn the_kind_of_failure_follows_the_ending_and_the_phase() {
    use FailureKind::{ConnectionLost, ResponseInvalid, ResponseTimeout, WriteAborted};
    let seen = || "as seen".to_owned();
    for (ending, phase, complete, kind) in [
        (Ending::Blocked(seen()), Phase::Guard, false, FailureKind::DestinationBlocked),
        (Ending::DnsFailed(seen()), Phase::Dns, false, FailureKind::Dns),
        (Ending::ConnectFailed(seen()), Phase::Connect, false, FailureKind::Connect),
        (Ending::TlsFailed(seen()), Phase::Tls, false, FailureKind::Tls),
        (Ending::Broken(seen()), Phase::Write, false, WriteAborted),
        (Ending::Broken(seen()), Phase::Wait, true, ConnectionLost),
        (Ending::Broken(seen()), Phase::Head, true, ResponseInvalid),
        (Ending::Deadline, Phase::Dns, false, FailureKind::Dns),
        (Ending::Deadline, Phase::Connect, false, FailureKind::Connect),
        (Ending::Deadline, Phase::Tls, false, FailureKind::Tls),
        (Ending::Deadline, Phase::Write, false, ResponseTimeout),
        (Ending::Deadline, Phase::Wait, true, ResponseTimeout),
        (Ending::Deadline, Phase::Head, true, ResponseTimeout),
        (Ending::Invalid(seen()), Phase::Head, true, ResponseInvalid),
    ] {
        let bytes_written = if complete { 300 } else { 0 };
        let exchange = Exchange { phase, bytes_written, request_complete: complete, ..answered(&ending) };
        let verdict = classify(&exchange, &[], NOW);
        assert_eq!(verdict.failure_kind, Some(kind), "{ending:?} {phase:?}");
        assert!(ending == Ending::Deadline || parts(&verdict.outcome).1.contains("as seen"));
    }
}

#[test]
fn an_interim_answer_is_never_taken_for_the_final_one() {
    for status in [100, 101, 102, 103, 199] {
        let verdict = of_status(status);
        assert_eq!(parts(&verdict.outcome).0, "unknown", "{status}");
        assert_eq!(verdict.effect, Effect::Possible);
        assert_eq!(verdict.failure_kind, Some(FailureKind::ResponseInvalid));
    }
}

#[test]
fn an_answer_that_came_before_the_request_was_sent_is_nobodys_success() {
    for status in [200, 204, 301, 408, 500] {
        let ending = Ending::Answer { status };
        let exchange = Exchange { bytes_written: 0, request_complete: false, ..answered(&ending) };
        let verdict = classify(&exchange, &[], NOW);
        assert_eq!((parts(&verdict.outcome).0, verdict.effect), ("retryable", Effect::None), "{status}");
    }
}

#[test]
fn an_early_answer_counts_though_the_request_was_not_complete() {
    for (status, outcome) in [(200, "accepted"), (401, "discard"), (413, "discard"), (503, "retryable")] {
        let ending = Ending::Answer { status };
        let exchange = Exchange { request_complete: false, ..answered(&ending) };
        assert_eq!(parts(&classify(&exchange, &[], NOW).outcome).0, outcome, "{status}");
    }
}

proptest! {
    #[test]
    fn whatever_a_peer_says_the_reason_is_bounded_and_one_line(
        line in "(\\PC|\\n|\\r|\u{1b}){0,40}",
        times in 0..80_usize,
        which in 0..8_usize,
        bytes_written in 0..3_u64,
    ) {
        let said = line.repeat(times);
        let ending = match which {
            0 => Ending::Blocked(said.clone()),
            1 => Ending::DnsFailed(said.clone()),
            2 => Ending::ConnectFailed(said.clone()),
            3 => Ending::TlsFailed(said.clone()),
            4 => Ending::Broken(said.clone()),
            5 => Ending::Invalid(said.clone()),
            6 => Ending::Deadline,
            _ => Ending::Answer { status: 302 },
        };
        let exchange = Exchange {
            bytes_written,
            request_complete: false,
            redirect_host: Some(&said),
            ..answered(&ending)
        };
        let verdict = classify(&exchange, &[], NOW);
        let (_, reason) = parts(&verdict.outcome);
        prop_assert!(reason.len() <= crate::limits::REASON_BYTES_MAX);
        prop_assert!(!reason.chars().any(char::is_control), "{reason:?}");
        prop_assert!(which >= 6 || bytes_written > 0 || reason.ends_with("Nothing was sent"));
    }
}
