//! What a receiver asks for by Retry-After (RFC 9110 section 10.2.3), read
//! strictly and kept as evidence whatever it says.
//!
//! A field that is read too kindly does harm in both directions: a date taken
//! for zero becomes a storm of requests, a number that overflows becomes no
//! wait at all. So there are two valid forms, digits and an HTTP date, and all
//! else is ignored with a note: the policy's own backoff then stands, and it is
//! also what stands for zero and for a time that has passed.
//!
//! Absent on purpose: the policy's backoff. That a wait is never shorter than
//! it is decided where the policy is known, in [`crate::decide`].

mod date;

use crate::evidence::RetryAfterEvidence;
use crate::limits::RETRY_AFTER_MAX;
use crate::text;
use crate::time::{Millis, Time};

/// Longest raw field that is kept, in bytes.
const RAW_BYTES_MAX: usize = 256;

/// How far the answer's Date may be from the time here and still be the clock
/// that a date in Retry-After is read by.
const CLOCK_SKEW_MAX: Millis = Millis::from_minutes(5);

/// Reads the Retry-After of one answer.
///
/// `fields` holds the raw bytes of every Retry-After field line and `date` the
/// answer's Date field, if it has one. `None` when there is no such field. Zero,
/// past and invalid values, and a field that came more than once, yield evidence
/// with `used_ms: None` and a note that says why. `used_ms` is what was asked
/// for, at most [`RETRY_AFTER_MAX`]; it is never zero or negative.
pub fn read(fields: &[&[u8]], date: Option<&[u8]>, now: Time) -> Option<RetryAfterEvidence> {
    let raw = kept(fields)?;
    let [field] = fields else {
        let note = format!("was sent {} times, which has no meaning: ignored", fields.len());
        return Some(ignored(raw, None, note));
    };
    let asked = match printable(field) {
        Some(text) if is_digits(text) => Some((seconds(text), String::new())),
        Some(text) => date::parse(text, now).map(|until| from_date(until, date, now)),
        None => None,
    };
    Some(match asked {
        Some((asked_ms, _)) if asked_ms <= 0 => {
            ignored(raw, Some(0), "asks for no wait at all: ignored, the policy's own delay stands".into())
        }
        Some((asked_ms, note)) => RetryAfterEvidence {
            raw,
            asked_ms: Some(asked_ms),
            used_ms: Some(asked_ms.min(RETRY_AFTER_MAX.0)),
            capped: asked_ms > RETRY_AFTER_MAX.0,
            note,
        },
        None => ignored(raw, None, "is neither whole seconds nor an HTTP date: ignored".into()),
    })
}

/// The field lines as one text that is safe to keep; `None` when there are none.
fn kept(fields: &[&[u8]]) -> Option<String> {
    if fields.is_empty() {
        return None;
    }
    let mut all = String::new();
    for (index, field) in fields.iter().enumerate() {
        if all.len() > RAW_BYTES_MAX {
            break;
        }
        if index > 0 {
            all.push_str(", ");
        }
        all.push_str(&String::from_utf8_lossy(&field[..field.len().min(RAW_BYTES_MAX)]));
    }
    Some(text::safe(&all, RAW_BYTES_MAX))
}

/// The field without the blanks around it, when all of it is printable ASCII.
fn printable(field: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(field).ok()?.trim_matches([' ', '\t']);
    text.bytes().all(|byte| (0x20..0x7f).contains(&byte)).then_some(text)
}

/// `1*DIGIT` and nothing else: Rust's own parser would take `+5` too.
fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Seconds to milliseconds; more digits than fit are the longest wait there is.
fn seconds(digits: &str) -> i64 {
    digits.parse::<i64>().unwrap_or(i64::MAX).saturating_mul(1_000)
}

/// What a date asks for, from the receiver's own clock where the answer shows
/// it and it is near ours, else from the time here.
fn from_date(until: Time, date: Option<&[u8]>, now: Time) -> (i64, String) {
    let receiver_now = date.and_then(printable).and_then(|text| date::parse(text, now));
    let near = |at: &Time| at.0.abs_diff(now.0) <= CLOCK_SKEW_MAX.0.unsigned_abs();
    let (base, note) = match receiver_now {
        Some(at) if near(&at) => (at, "a date, counted from the answer's Date"),
        Some(_) => (now, "a date, counted from the time here: the answer's Date is more than 5 min off"),
        None => (now, "a date, counted from the time here: the answer has no usable Date"),
    };
    (until.0.saturating_sub(base.0), note.to_owned())
}

fn ignored(raw: String, asked_ms: Option<i64>, note: String) -> RetryAfterEvidence {
    RetryAfterEvidence { raw, asked_ms, used_ms: None, capped: false, note }
}

#[cfg(test)]
mod tests;
