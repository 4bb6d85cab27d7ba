//! How long each phase of an exchange may take, and the clock that says when.

use std::time::Duration;
use tidings_core::time::{Millis, Time};
use tokio::time::Instant;

/// Limits of one exchange, in milliseconds. What a phase may take is never more
/// than what `total_ms` leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpLimits {
    /// Resolving the name.
    pub dns_ms: u64,
    /// Opening a TCP connection to one address.
    pub connect_ms: u64,
    /// Opening a TCP connection, all addresses together.
    pub connect_all_ms: u64,
    /// The TLS handshake.
    pub tls_ms: u64,
    /// Writing the request.
    pub write_ms: u64,
    /// From the written request to the first byte of the answer.
    pub first_byte_ms: u64,
    /// From the first byte of the answer to the end of its head.
    pub head_ms: u64,
    /// Reading the body.
    pub body_ms: u64,
    /// Everything together.
    pub total_ms: u64,
}

impl Default for HttpLimits {
    fn default() -> HttpLimits {
        HttpLimits {
            dns_ms: 5_000,
            connect_ms: 5_000,
            connect_all_ms: 10_000,
            tls_ms: 5_000,
            write_ms: 10_000,
            first_byte_ms: 10_000,
            head_ms: 5_000,
            body_ms: 5_000,
            total_ms: 10_000,
        }
    }
}

/// The limits of one exchange that has begun.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    pub(super) limits: HttpLimits,
    pub(super) started: Instant,
    started_at: Time,
}

impl Clock {
    pub(super) fn start(limits: HttpLimits, now: Time) -> Clock {
        Clock { limits, started: Instant::now(), started_at: now }
    }

    /// When something must be over that began at `from` and may take `limit_ms`.
    pub(super) fn deadline(&self, from: Instant, limit_ms: u64) -> Instant {
        let total = self.started + Duration::from_millis(self.limits.total_ms);
        total.min(from + Duration::from_millis(limit_ms))
    }

    /// As [`Clock::deadline`], for something that begins now.
    pub(super) fn deadline_from_now(&self, limit_ms: u64) -> Instant {
        self.deadline(Instant::now(), limit_ms)
    }

    /// The time of day, from that of the start.
    pub(super) fn now(&self) -> Time {
        self.started_at + Millis(milliseconds(self.started.elapsed()))
    }
}

/// Whole milliseconds of a span.
pub(super) fn milliseconds(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}
