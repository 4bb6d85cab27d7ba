//! Times as people and programs write them: RFC 3339.
//!
//! Printed they are always UTC with milliseconds, so that they sort as text; read,
//! any offset and any sub-second length is taken.

use serde::{Deserialize, Deserializer};
use tidings::Time;

/// `2026-11-30T09:15:00.250Z`.
pub(crate) fn text(time: Time) -> String {
    // Beyond the calendar's ends there is nothing to print but the end.
    let stamp = jiff::Timestamp::from_millisecond(time.0).unwrap_or(if time.0 < 0 {
        jiff::Timestamp::MIN
    } else {
        jiff::Timestamp::MAX
    });
    stamp.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

/// The instant that a text names. Anything below a millisecond is cut off.
pub(crate) fn parse(written: &str) -> Result<Time, String> {
    let refused = || {
        let shown: String = written.chars().take(40).collect();
        format!("`{shown}` is not a time; write RFC 3339 with an offset, like 2026-11-30T09:15:00Z")
    };
    // Intervals and annotations, which jiff would take, are no RFC 3339.
    if written.contains('[') {
        return Err(refused());
    }
    let stamp: jiff::Timestamp = written.parse().map_err(|_| refused())?;
    Ok(Time(stamp.as_millisecond()))
}

/// A span for people: `850 ms`, `5.0 s`, `2 min 3 s`, `10 h 0 min`, `5 d 7 h`.
pub(crate) fn span(ms: i64) -> String {
    if ms < 1_000 {
        return format!("{ms} ms");
    }
    let (tenths, seconds) = ((ms + 50) / 100, (ms + 500) / 1_000);
    match seconds {
        ..60 => format!("{}.{} s", tenths / 10, tenths % 10),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3_600..172_800 => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

/// Reads an optional time of a JSON document.
pub(crate) fn optional<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Time>, D::Error> {
    let written = Option::<String>::deserialize(deserializer)?;
    written.map(|written| parse(&written).map_err(serde::de::Error::custom)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// DB20.
    #[test]
    fn any_offset_and_sub_second_length_is_the_same_instant() {
        for written in [
            "2026-11-30T09:15:00.25Z",
            "2026-11-30T10:15:00.250+01:00",
            "2026-11-30T09:15:00.250999999Z",
            "2026-11-30T04:45:00.250-04:30",
            "2026-11-30t09:15:00.250z",
        ] {
            assert_eq!(text(parse(written).unwrap()), "2026-11-30T09:15:00.250Z", "{written}");
        }
        assert_eq!(text(parse("2026-11-30T09:15:00Z").unwrap()), "2026-11-30T09:15:00.000Z");
    }

    #[test]
    fn what_is_no_instant_is_refused_with_an_example() {
        for written in
            ["", "tomorrow", "2026-11-30", "2026-11-30T09:15:00", "1764494100", "2026-11-30T25:00:00Z"]
        {
            let refusal = parse(written).unwrap_err();
            assert!(refusal.contains("RFC 3339"), "{written}: {refusal}");
        }
    }

    #[test]
    fn spans_read_in_their_largest_units() {
        for (ms, shown) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_034, "1.0 s"),
            (59_400, "59.4 s"),
            (59_999, "1 min 0 s"),
            (300_000, "5 min 0 s"),
            (3_599_995, "1 h 0 min"),
            (36_000_000, "10 h 0 min"),
            (457_920_000, "5 d 7 h"),
        ] {
            assert_eq!(span(ms), shown);
        }
    }

    #[test]
    fn a_time_beyond_the_calendar_is_printed_all_the_same() {
        assert!(text(Time(i64::MAX)).starts_with("9999"));
        assert!(text(Time(i64::MIN)).starts_with('-'));
    }
}
