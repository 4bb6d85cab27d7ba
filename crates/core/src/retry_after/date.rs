//! HTTP dates in the three forms that RFC 9110 section 5.6.7 makes every
//! recipient accept: `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94
//! 08:49:37 GMT` and `Sun Nov  6 08:49:37 1994`.
//!
//! `httpdate` reads them, but takes the two-digit years 70 to 99 for the last
//! century for good. The rule moves with the time: a year that seems more than
//! 50 years ahead is the last one in the past that ends in the same digits. So
//! the middle form is given its century here before `httpdate` sees it.

use crate::time::{Millis, Time};
use std::time::{Duration, UNIX_EPOCH};

const WEEKDAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// The longest that 50 calendar years can be: 13 of them leap years.
const FIFTY_YEARS: Millis = Millis::from_days(50 * 365 + 13);

/// The last second that `httpdate` can write, 9999-12-31 23:59:59.
const LAST_SECOND: u64 = 253_402_300_799;

/// The instant that `text` names; `None` when it is not an HTTP date, lies
/// before 1970, or names the wrong day of the week.
pub(super) fn parse(text: &str, now: Time) -> Option<Time> {
    match text.as_bytes().get(3)? {
        b',' | b' ' => four_digit_year(text),
        _ => two_digit_year(text, now),
    }
}

fn four_digit_year(text: &str) -> Option<Time> {
    let since_epoch = httpdate::parse_http_date(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since_epoch.as_millis()).ok().map(Time)
}

fn two_digit_year(text: &str, now: Time) -> Option<Time> {
    let (weekday, rest) = text.split_once(", ")?;
    let weekday = WEEKDAYS.iter().find(|name| **name == weekday)?;
    let (date, time) = rest.split_once(' ')?;
    let mut parts = date.split('-');
    let (day, month, digits) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || digits.len() != 2 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let at = |year: u64| {
        // Weekdays are ASCII names of more than three letters.
        four_digit_year(&format!("{}, {day} {month} {year:04} {time}", &weekday[..3]))
    };
    let newest = year_of(now) + 50;
    let year = newest - (newest - digits.parse::<u64>().ok()?) % 100;
    at(year).filter(|instant| *instant <= now + FIFTY_YEARS).or_else(|| at(year - 100))
}

/// The calendar year of an instant, within what `httpdate` can write.
fn year_of(now: Time) -> u64 {
    let seconds = u64::try_from(now.0 / 1_000).unwrap_or(0).min(LAST_SECOND);
    let text = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds));
    text[12..16].parse().expect("httpdate writes the year as four digits at this place")
}
