//! When an event is fanned out again after a failure, and when it is set aside.
//!
//! An event waits, is fanned out, or is poisoned: a person looks at it and puts it
//! back. One bad event never blocks others.

use crate::limits;
use crate::policy::{Draw, Policy, PolicyData};
use crate::text;
use crate::time::{Millis, Time};
use serde::{Deserialize, Serialize};

/// Failures of one event's own fan-out before it is set aside.
pub const FAILURES_MAX: u32 = 10;
const FIRST_PAUSE: Millis = Millis::from_seconds(2);
const LONGEST_PAUSE: Millis = Millis::from_minutes(1);

/// Where an event stands with the relay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum RelayState {
    /// Not fanned out.
    Waiting {
        /// When it is to be looked at.
        due_at: Time,
        /// Failures of its own so far.
        failures: u32,
        /// What went wrong last, if anything did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Its jobs are there.
    FannedOut {
        /// Since when.
        at: Time,
    },
    /// Set aside.
    Poisoned {
        /// Since when.
        at: Time,
        /// What went wrong last.
        reason: String,
    },
}

impl RelayState {
    /// The stored word.
    pub const fn as_str(&self) -> &'static str {
        match self {
            RelayState::Waiting { .. } => "waiting",
            RelayState::FannedOut { .. } => "fanned_out",
            RelayState::Poisoned { .. } => "poisoned",
        }
    }

    /// After the fan-out of this event alone failed.
    #[must_use]
    pub fn failed(&self, reason: &str, now: Time, draw: Draw) -> RelayState {
        let RelayState::Waiting { failures, .. } = self else { return self.clone() };
        let failures = failures.saturating_add(1);
        if failures >= FAILURES_MAX {
            return RelayState::Poisoned { at: now, reason: text::reason(reason) };
        }
        let reason = Some(text::reason(reason));
        RelayState::Waiting { due_at: now + pause(failures, draw), failures, reason }
    }

    /// Put back by hand. `None`: it is not set aside.
    pub fn requeued(&self, now: Time) -> Option<RelayState> {
        match self {
            RelayState::Poisoned { .. } => {
                Some(RelayState::Waiting { due_at: now, failures: 0, reason: None })
            }
            RelayState::Waiting { .. } | RelayState::FannedOut { .. } => None,
        }
    }
}

/// The wait after `failures` passes, or fan-outs of one event, failed in a row:
/// 2 s, doubling, at most 1 min, ±10 %.
pub fn pause(failures: u32, draw: Draw) -> Millis {
    schedule().delay(failures, draw)
}

fn schedule() -> Policy {
    let backoff = crate::policy::BackoffData::Exponential {
        first_ms: FIRST_PAUSE.0,
        factor: 2.0,
        cap_ms: LONGEST_PAUSE.0,
    };
    let data = PolicyData { attempts: Some(FAILURES_MAX), backoff: Some(backoff), ..PolicyData::default() };
    data.check("relay").expect("the relay's schedule is written in this file")
}

/// How many events wait, and how long the oldest has: what the backlog alert looks at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Events that wait; counted up to a bound.
    pub waiting: u64,
    /// When the oldest of them was recorded.
    pub oldest_at: Option<Time>,
    /// Events that are set aside.
    pub poisoned: u64,
}

/// More than this many waiting events raise the alert.
pub const BACKLOG_WAITING_MAX: u64 = 1_000;
/// An event that has waited longer than this raises it as well.
pub const BACKLOG_AGE_MAX: Millis = Millis::from_minutes(5);

impl Backlog {
    /// Why the backlog deserves an alert, or `None`: it is what it should be.
    pub fn alert(&self, now: Time) -> Option<String> {
        if self.waiting > BACKLOG_WAITING_MAX {
            return Some(format!("more than {BACKLOG_WAITING_MAX} events wait for their fan-out"));
        }
        let age = now.since(self.oldest_at?);
        (age > BACKLOG_AGE_MAX)
            .then(|| format!("an event has waited for its fan-out for {} s", age.0 / 1_000))
    }
}

const _: () = assert!(limits::RELAY_BATCH_MAX as u64 <= BACKLOG_WAITING_MAX);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_fails_waits_longer_each_time_and_is_set_aside_after_ten() {
        let mut state = RelayState::Waiting { due_at: Time(0), failures: 0, reason: None };
        let mut waits = Vec::new();
        while let RelayState::Waiting { due_at, reason, .. } = &state {
            assert_eq!(reason.as_deref(), (due_at.0 > 0).then_some("no such kind"));
            waits.push(due_at.0 / 1_000);
            state = state.failed("no such kind", Time(0), Draw::MIDDLE);
        }
        assert_eq!(waits, [0, 2, 4, 8, 16, 32, 60, 60, 60, 60]);
        assert_eq!(state, RelayState::Poisoned { at: Time(0), reason: "no such kind".into() });
        let again = RelayState::Waiting { due_at: Time(9), failures: 0, reason: None };
        assert_eq!(state.requeued(Time(9)), Some(again));
        assert_eq!(RelayState::FannedOut { at: Time(0) }.requeued(Time(9)), None);
    }

    #[test]
    fn a_backlog_is_worth_an_alert_by_number_or_by_age() {
        let now = Time(1_000_000);
        let backlog = |waiting, age_s| Backlog {
            waiting,
            oldest_at: Some(now - Millis::from_seconds(age_s)),
            poisoned: 0,
        };
        assert_eq!(Backlog::default().alert(now), None);
        assert_eq!(backlog(1_000, 300).alert(now), None);
        assert!(backlog(1_001, 0).alert(now).is_some());
        assert!(backlog(1, 301).alert(now).is_some());
    }
}
