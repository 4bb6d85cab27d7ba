use super::*;
use proptest::prelude::*;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const LONGEST: &str =
    "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+Pw==";
const ID: &str = "job_018f6f3e0d5c7aa08000000000000001";
const AT: Time = Time(1_795_996_800_000);
const BODY: &[u8] = "{\"b\":1,\"a\":\"é\",\"c\":[1,2]}".as_bytes();
const TOLERANCE: Millis = Millis::from_minutes(5);

fn secret(text: &str) -> Secret {
    text.parse().expect("the tests' secrets are valid")
}

fn signature(secret_text: &str, id: &str, at: Time, body: &[u8]) -> String {
    sign(&[secret(secret_text)], id, at, body).expect("the id is valid").signature
}

#[test]
fn the_published_vector_of_standard_webhooks_passes() {
    let headers = sign(
        &[secret(SECRET)],
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        Time(1_614_265_330_000),
        br#"{"test": 2432232314}"#,
    )
    .expect("the id is valid");
    assert_eq!(headers.id, "msg_p5jXN8AQM9LWM0D4loKWxJek");
    assert_eq!(headers.timestamp, "1614265330");
    assert_eq!(headers.signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
}

/// The expected values come from `standardwebhooks` 1 for Python.
#[test]
fn the_exact_bytes_are_signed_as_the_reference_library_signs_them() {
    for (body, expected) in [
        (BODY, "WLfgkcSobc8j2JSqpaN0fRD987pTV99J7HqOq1c3vrE="),
        ("{\"b\":1,\"a\":\"é\",\"c\":[1,2]}\n".as_bytes(), "Zo/MwlqVqGvoQDqPUBFoKRAPwIFAECu8nwLFcJzhRhc="),
        (b"{\"n\":1.0}", "i92qDLmlCc0qXg2bXPcnxlv8BT8ThPwpu/BToDwnsZI="),
        (b"{\"a\":1,\"a\":2}", "OJVDAaz5N+9feuvzdJzBwZJtGyS2c9Wu4RPvRiMlF6k="),
        (b"", "n/jMbo/yNRtq0TVdNTWMNFh60acll6tINJ3jzk5Cbeo="),
    ] {
        assert_eq!(signature(SECRET, ID, AT, body), format!("v1,{expected}"));
    }
    let expected = "v1,RjTKIWSIbz41AgtbOFfRGOxBUS6eaG33sKIHDysHOu8=";
    assert_eq!(signature(LONGEST, ID, AT, BODY), expected, "a key as long as SHA-256's block");
}

#[test]
fn each_attempt_has_its_own_timestamp_and_the_same_id() {
    let first = sign(&[secret(SECRET)], ID, AT, BODY).expect("the id is valid");
    let later = sign(&[secret(SECRET)], ID, AT + Millis(3_600_999), BODY).expect("the id is valid");
    assert_eq!(first.id, later.id);
    assert_eq!((first.timestamp.as_str(), later.timestamp.as_str()), ("1795996800", "1796000400"));
    assert_ne!(first.signature, later.signature);
}

#[test]
fn several_secrets_sign_in_the_order_given_and_each_alone_verifies() {
    let (new, old) = (secret(LONGEST), secret(SECRET));
    let headers = sign(&[new.clone(), old.clone()], ID, AT, BODY).expect("the id is valid");
    let expected = format!("{} {}", signature(LONGEST, ID, AT, BODY), signature(SECRET, ID, AT, BODY));
    assert_eq!(headers.signature, expected);
    for known in [new, old] {
        assert_eq!(verify(&[known], &headers, BODY, AT, TOLERANCE), Ok(()));
    }
}

#[test]
fn what_cannot_be_signed_is_refused() {
    assert_eq!(sign(&[], ID, AT, BODY), Err(SignError::NoSecret));
    for id in ["", "a.b", "a b", "a\r\nX-Injected: 1", "a\u{0}", "é", "a\u{7f}"] {
        assert_eq!(sign(&[secret(SECRET)], id, AT, BODY), Err(SignError::BadId), "{id:?}");
    }
}

#[test]
fn a_request_that_was_changed_in_any_part_is_refused() {
    let good = sign(&[secret(SECRET)], ID, AT, BODY).expect("the id is valid");
    let mut other_id = good.clone();
    other_id.id.push('x');
    let mut other_time = good.clone();
    other_time.timestamp = "1795996801".into();
    let mut cut = good.clone();
    cut.signature.pop();
    for (what, headers, body, key) in [
        ("body", &good, b"{}".as_slice(), SECRET),
        ("trailing newline", &good, &[BODY, b"\n"].concat(), SECRET),
        ("id", &other_id, BODY, SECRET),
        ("time", &other_time, BODY, SECRET),
        ("signature", &cut, BODY, SECRET),
        ("secret", &good, BODY, LONGEST),
    ] {
        assert_eq!(
            verify(&[secret(key)], headers, body, AT, TOLERANCE),
            Err(VerifyError::Mismatch),
            "{what}"
        );
    }
}

#[test]
fn headers_that_are_not_signed_ones_are_refused_with_the_reason() {
    let good = sign(&[secret(SECRET)], ID, AT, BODY).expect("the id is valid");
    let with = |id: &str, timestamp: &str, signature: &str| SignedHeaders {
        id: id.into(),
        timestamp: timestamp.into(),
        signature: signature.into(),
    };
    let v1a = good.signature.replace("v1,", "v1a,");
    for (headers, expected) in [
        (with("", &good.timestamp, &good.signature), VerifyError::BadId),
        (with("a.b", &good.timestamp, &good.signature), VerifyError::BadId),
        (with(ID, "", &good.signature), VerifyError::BadTimestamp),
        (with(ID, "+1795996800", &good.signature), VerifyError::BadTimestamp),
        (with(ID, "1795996800.0", &good.signature), VerifyError::BadTimestamp),
        (with(ID, "99999999999999999999", &good.signature), VerifyError::BadTimestamp),
        (with(ID, &good.timestamp, ""), VerifyError::NoSignature),
        (with(ID, &good.timestamp, &v1a), VerifyError::NoSignature),
        (with(ID, &good.timestamp, "v1,"), VerifyError::Mismatch),
        (with(ID, &good.timestamp, "v1,not base64"), VerifyError::Mismatch),
    ] {
        assert_eq!(verify(&[secret(SECRET)], &headers, BODY, AT, TOLERANCE), Err(expected), "{headers:?}");
    }
    assert_eq!(verify(&[], &good, BODY, AT, TOLERANCE), Err(VerifyError::NoSecret));
}

#[test]
fn signatures_of_other_kinds_are_passed_over() {
    let mut headers = sign(&[secret(SECRET)], ID, AT, BODY).expect("the id is valid");
    headers.signature = format!("v1a,AAAA v2,x v1,wrong {}", headers.signature);
    assert_eq!(verify(&[secret(SECRET)], &headers, BODY, AT, TOLERANCE), Ok(()));
}

#[test]
fn a_timestamp_outside_the_tolerance_is_refused_on_either_side() {
    let headers = sign(&[secret(SECRET)], ID, AT, BODY).expect("the id is valid");
    for (now, expected) in [
        (AT + TOLERANCE, Ok(())),
        (AT + TOLERANCE + Millis(1), Err(VerifyError::TooOld)),
        (AT - TOLERANCE, Ok(())),
        (AT - TOLERANCE - Millis(1), Err(VerifyError::TooNew)),
        (Time(i64::MAX), Err(VerifyError::TooOld)),
        (Time(i64::MIN), Err(VerifyError::TooNew)),
    ] {
        assert_eq!(verify(&[secret(SECRET)], &headers, BODY, now, TOLERANCE), expected, "{now:?}");
    }
}

#[test]
fn a_secret_that_libraries_would_read_differently_is_refused_when_it_is_given() {
    let encoded = |length: usize| format!("whsec_{}", STANDARD.encode(vec![0xfb_u8; length]));
    for (text, expected) in [
        (String::new(), BadSecret::NoPrefix),
        ("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".into(), BadSecret::NoPrefix),
        (" whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".into(), BadSecret::NoPrefix),
        ("WHSEC_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".into(), BadSecret::NoPrefix),
        (SECRET.replace("whsec_", "whsk_"), BadSecret::Asymmetric),
        (SECRET.replace("whsec_", "whpk_"), BadSecret::Asymmetric),
        ("whsec_".into(), BadSecret::Length(0)),
        (encoded(1), BadSecret::Length(1)),
        (encoded(23), BadSecret::Length(23)),
        (encoded(65), BadSecret::Length(65)),
        (encoded(200), BadSecret::Length(200)),
        (encoded(32).trim_end_matches('=').into(), BadSecret::Unpadded),
        (encoded(32).replace('+', "-").replace('/', "_"), BadSecret::UrlSafe),
        (format!("{SECRET}\n"), BadSecret::NotBase64),
        ("whsec_not base64 at all, really not!".into(), BadSecret::NotBase64),
        ("whsec_é".into(), BadSecret::NotBase64),
    ] {
        assert_eq!(text.parse::<Secret>().err(), Some(expected), "{text}");
    }
    for text in [encoded(24), encoded(32), encoded(64)] {
        assert!(text.parse::<Secret>().is_ok(), "{text}");
    }
}

#[test]
fn a_secret_shows_itself_nowhere() {
    assert_eq!(format!("{:?}", secret(SECRET)), "[REDACTED]");
    for text in ["whsec_hunter2hunter2", "hunter2", "whsec_hunter2!"] {
        let error = text.parse::<Secret>().expect_err("not a secret");
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    }
}

proptest! {
    #[test]
    fn any_text_is_a_secret_or_a_clear_error(text in "(whsec_)?\\PC{0,100}") {
        let _ = text.parse::<Secret>();
    }

    #[test]
    fn what_was_signed_verifies_and_no_other_header_panics(
        key in prop::collection::vec(any::<u8>(), 24..=64),
        body in prop::collection::vec(any::<u8>(), 0..200),
        at in 0..=i64::MAX,
        junk in "\\PC{0,60}",
    ) {
        let key: Secret = format!("whsec_{}", STANDARD.encode(key)).parse().expect("24 to 64 bytes");
        let headers = sign(std::slice::from_ref(&key), ID, Time(at), &body).expect("the id is valid");
        let tolerance = Millis::from_seconds(1);
        let verdict = verify(std::slice::from_ref(&key), &headers, &body, Time(at), tolerance);
        prop_assert_eq!(verdict, Ok(()));
        let broken = SignedHeaders { id: junk.clone(), timestamp: junk.clone(), signature: junk };
        prop_assert!(verify(&[key], &broken, &body, Time(at), TOLERANCE).is_err());
    }
}
