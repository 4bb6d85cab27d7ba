use super::*;
use proptest::prelude::*;

/// 2026-10-21 07:26:00 UTC.
const NOW: Time = Time(1_792_567_560_000);
const HOURS_10: i64 = 36_000_000;

fn one(field: &str) -> RetryAfterEvidence {
    read(&[field.as_bytes()], None, NOW).expect("there is a field")
}

/// What was asked for and what is used.
fn pair(evidence: &RetryAfterEvidence) -> (Option<i64>, Option<i64>) {
    (evidence.asked_ms, evidence.used_ms)
}

#[test]
fn no_field_is_no_evidence() {
    assert_eq!(read(&[], Some(b"Wed, 21 Oct 2026 07:26:00 GMT"), NOW), None);
}

#[test]
fn digits_are_seconds_and_the_cap_is_ten_hours() {
    for (field, asked_ms, used_ms) in [
        ("120", 120_000, 120_000),
        (" 120", 120_000, 120_000),
        ("\t120 \t", 120_000, 120_000),
        ("0007", 7_000, 7_000),
        ("36000", HOURS_10, HOURS_10),
        ("36001", 36_001_000, HOURS_10),
        ("86400", 86_400_000, HOURS_10),
        ("9223372036854775807", i64::MAX, HOURS_10),
        ("99999999999999999999", i64::MAX, HOURS_10),
    ] {
        let evidence = one(field);
        assert_eq!(pair(&evidence), (Some(asked_ms), Some(used_ms)), "{field}");
        assert_eq!(evidence.capped, asked_ms > HOURS_10, "{field}");
    }
}

#[test]
fn zero_and_past_values_ask_for_no_wait_and_are_ignored_with_a_note() {
    for field in ["0", "000", "Wed, 21 Oct 2026 07:25:50 GMT", "Wed, 21 Oct 2026 07:26:00 GMT"] {
        let evidence = one(field);
        assert_eq!(pair(&evidence), (Some(0), None), "{field}");
        assert!(evidence.note.contains("ignored"), "{field}: {}", evidence.note);
    }
}

#[test]
fn what_is_neither_digits_nor_a_date_is_ignored_with_a_note() {
    for field in [
        "",
        " ",
        "soon",
        "-1",
        "-43",
        "+5",
        " +5",
        "1.5",
        "5.5",
        "1e3",
        "120s",
        "5, 10",
        "1 2",
        "0x10",
        "１２０",
        "120\u{0}",
        "\u{b}120",
        "Wed, 21 Oct 2026 07:28:00 UTC",
        "Wed, 21 Oct 2026 07:28:00 +0000",
        "wed, 21 oct 2026 07:28:00 gmt",
        "Thu, 21 Oct 2026 07:28:00 GMT",
        "Wed, 21 Oct 2026 07:28:60 GMT",
        "Wed, 31 Sep 2026 07:28:00 GMT",
        "Wednesday, 21-Oct-2026 07:28:00 GMT",
        "Thursday, 21-Oct-26 07:28:00 GMT",
        "Wed, 21-Oct-26 07:28:00 GMT",
        "2026-10-21T07:28:00Z",
        "\u{b}Wed, 21 Oct 2026 07:28:00 GMT",
    ] {
        let evidence = one(field);
        assert_eq!(pair(&evidence), (None, None), "{field:?}");
        assert!(evidence.note.contains("ignored"), "{field:?}: {}", evidence.note);
    }
}

#[test]
fn bytes_that_are_no_text_are_invalid_and_kept_as_safe_text() {
    let evidence = read(&[b"\xff\xfe12\r\n0"], Some(b"\xff"), NOW).expect("there is a field");
    assert_eq!(pair(&evidence), (None, None));
    assert_eq!(evidence.raw, "\u{fffd}\u{fffd}12  0");
}

#[test]
fn a_field_that_came_twice_is_ignored_even_where_both_agree() {
    for fields in [[b"5".as_slice(), b"500"], [b"120", b"120"]] {
        let evidence = read(&fields, None, NOW).expect("there is a field");
        assert_eq!(pair(&evidence), (None, None));
        assert!(evidence.note.contains("2 times"), "{}", evidence.note);
    }
    assert_eq!(read(&[b"5", b"500"], None, NOW).expect("there is a field").raw, "5, 500");
}

#[test]
fn the_three_date_forms_name_the_same_instant() {
    for field in
        ["Wed, 21 Oct 2026 07:28:00 GMT", "Wednesday, 21-Oct-26 07:28:00 GMT", "Wed Oct 21 07:28:00 2026"]
    {
        assert_eq!(pair(&one(field)), (Some(120_000), Some(120_000)), "{field}");
    }
    let padded = read(&[b"Sun Nov  1 07:26:00 2026"], None, Time(1_793_517_900_000));
    assert_eq!(padded.expect("there is a field").used_ms, Some(60_000));
}

#[test]
fn a_two_digit_year_is_at_most_fifty_years_ahead() {
    let year_ms = 365 * 86_400_000;
    // 2070 is 44 years ahead and 2076 just under 50: this century.
    for (field, years) in [("Tuesday, 21-Oct-70 07:26:00 GMT", 44), ("Wednesday, 21-Oct-76 07:26:00 GMT", 50)]
    {
        let asked_ms = one(field).asked_ms.unwrap_or_else(|| panic!("{field} is valid"));
        assert_eq!(asked_ms / year_ms, years, "{field}");
    }
    // 2077 would be 51 ahead: it is 1977, in the past. So is 1999.
    for field in ["Friday, 21-Oct-77 07:26:00 GMT", "Thursday, 21-Oct-99 07:26:00 GMT"] {
        assert_eq!(pair(&one(field)), (Some(0), None), "{field}");
    }
    // A year later the rule has moved on.
    let later = Time(NOW.0 + 366 * 86_400_000);
    let evidence = read(&[b"Thursday, 21-Oct-77 07:26:00 GMT"], None, later).expect("there is a field");
    assert_eq!(evidence.used_ms, Some(HOURS_10));
    // Seen from 1999, the year 05 is not 1905.
    let in_1999 = Time(940_000_000_000);
    let evidence = read(&[b"Friday, 21-Oct-05 07:26:00 GMT"], None, in_1999).expect("there is a field");
    assert_eq!(evidence.used_ms, Some(HOURS_10));
}

#[test]
fn a_far_date_is_cut_to_the_cap() {
    let evidence = one("Fri, 31 Dec 9999 23:59:59 GMT");
    assert_eq!(evidence.used_ms, Some(HOURS_10));
    assert!(evidence.capped);
}

#[test]
fn a_date_is_counted_from_the_answers_own_date_when_the_clocks_are_near() {
    let until = b"Wed, 21 Oct 2026 07:30:00 GMT".as_slice();
    for (date, used_ms) in [
        (None, 240_000),
        // Two minutes fast, and exactly five minutes slow: the receiver's clock counts.
        (Some("Wed, 21 Oct 2026 07:28:00 GMT"), 120_000),
        (Some("Wednesday, 21-Oct-26 07:28:00 GMT"), 120_000),
        (Some("Wed, 21 Oct 2026 07:21:00 GMT"), 540_000),
        // Farther off, or unreadable: ours does.
        (Some("Wed, 21 Oct 2026 07:20:59 GMT"), 240_000),
        (Some("Tue, 21 Oct 2036 07:28:00 GMT"), 240_000),
        (Some("today"), 240_000),
    ] {
        let evidence = read(&[until], date.map(str::as_bytes), NOW).expect("there is a field");
        assert_eq!(evidence.used_ms, Some(used_ms), "{date:?}");
        assert!(evidence.note.starts_with("a date, counted from"), "{}", evidence.note);
    }
}

proptest! {
    #[test]
    fn whatever_comes_the_wait_is_above_zero_and_within_the_cap(
        fields in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..400), 0..4),
        date in prop::option::of(prop::collection::vec(any::<u8>(), 0..40)),
        now in any::<i64>(),
    ) {
        let lines: Vec<&[u8]> = fields.iter().map(Vec::as_slice).collect();
        check(&lines, date.as_deref(), Time(now));
    }

    #[test]
    fn whatever_date_comes_the_wait_is_above_zero_and_within_the_cap(
        weekday in "(Mon|Tue|Wednesday|Sunday|Fri),?",
        day in "[0-9]{2}[ -](Jan|Feb|Oct|Dec)[ -]([0-9]{2}){1,2}",
        clock in "[0-2][0-9]:[0-6][0-9]:[0-6][0-9]",
        now in any::<i64>(),
    ) {
        let field = format!("{weekday} {day} {clock} GMT");
        check(&[field.as_bytes()], Some(field.as_bytes()), Time(now));
    }
}

fn check(lines: &[&[u8]], date: Option<&[u8]>, now: Time) {
    let Some(evidence) = read(lines, date, now) else {
        assert!(lines.is_empty());
        return;
    };
    assert!(evidence.raw.len() <= RAW_BYTES_MAX);
    assert!(evidence.asked_ms.is_none_or(|ms| ms >= 0));
    assert!(evidence.used_ms.is_none_or(|ms| ms > 0 && ms <= RETRY_AFTER_MAX.0));
    assert!(evidence.used_ms.is_some() || !evidence.note.is_empty());
}
