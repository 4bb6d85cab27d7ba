//! Instants and spans, in milliseconds. The core never asks what time it is.
//!
//! Absent on purpose: a clock. Whoever calls the core passes the time in.

use serde::{Deserialize, Serialize};

/// Milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Time(pub i64);

/// A span of time in milliseconds. Spans that rules produce are never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub i64);

impl Millis {
    /// No time at all.
    pub const ZERO: Millis = Millis(0);

    /// A span of whole seconds.
    pub const fn from_seconds(seconds: i64) -> Millis {
        Millis(seconds.saturating_mul(1_000))
    }

    /// A span of whole minutes.
    pub const fn from_minutes(minutes: i64) -> Millis {
        Millis::from_seconds(minutes.saturating_mul(60))
    }

    /// A span of whole hours.
    pub const fn from_hours(hours: i64) -> Millis {
        Millis::from_minutes(hours.saturating_mul(60))
    }

    /// A span of whole days of 24 hours.
    pub const fn from_days(days: i64) -> Millis {
        Millis::from_hours(days.saturating_mul(24))
    }
}

impl Time {
    /// The span since `earlier`, or zero when a clock was set back in between:
    /// a duration is never negative.
    pub fn since(self, earlier: Time) -> Millis {
        Millis(self.0.saturating_sub(earlier.0).max(0))
    }
}

impl core::ops::Add<Millis> for Time {
    type Output = Time;

    /// Saturates: a far instant stays far, it never wraps into the past.
    fn add(self, span: Millis) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl core::ops::Sub<Millis> for Time {
    type Output = Time;

    fn sub(self, span: Millis) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}
