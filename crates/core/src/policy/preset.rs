//! The schedules that come with Tidings, by name.

use super::{Backoff, Jitter, OnUnknown, Policy};
use crate::limits;
use crate::time::Millis;
use serde::{Deserialize, Serialize};

/// A named policy. Each is exact at every attempt; `crates/core/tests/policy.rs`
/// holds the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// 10 attempts: 1 s, doubling, capped at 15 min; ±10 %.
    Default,
    /// 8 attempts: 20 s, then times 3, about 6 h in all; ±10 %. An unknown outcome is held.
    Mail,
    /// 18 attempts: 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, then 10 h each, about 5.3 days; ±10 %.
    Webhook,
    /// 8 attempts: 5 s × 2^attempt, capped at 1 h, plus 0 to 9 s.
    Invitation,
    /// 6 attempts: 30 s × 2^(attempt−1), capped at 15 min; an unknown outcome waits 60 s.
    ImportAlert,
    /// 25 attempts: anything between 0 and the lesser of 60 s and 1 s × 2^attempt.
    FullJitter,
    /// 1 attempt: the next period is the retry.
    Periodic,
}

impl Preset {
    /// Every preset, in the order of the documentation.
    pub const ALL: [Preset; 7] = [
        Preset::Default,
        Preset::Mail,
        Preset::Webhook,
        Preset::Invitation,
        Preset::ImportAlert,
        Preset::FullJitter,
        Preset::Periodic,
    ];

    /// The name in configuration and evidence.
    pub const fn name(self) -> &'static str {
        match self {
            Preset::Default => "default",
            Preset::Mail => "mail",
            Preset::Webhook => "webhook",
            Preset::Invitation => "invitation",
            Preset::ImportAlert => "import-alert",
            Preset::FullJitter => "full-jitter",
            Preset::Periodic => "periodic",
        }
    }

    /// The preset of that name.
    pub fn by_name(name: &str) -> Option<Preset> {
        Preset::ALL.into_iter().find(|preset| preset.name() == name)
    }

    /// The policy that it stands for, version 1.
    pub fn policy(self) -> Policy {
        let seconds = Millis::from_seconds;
        let exponential = |first, factor, cap| Backoff::Exponential { first, factor, cap };
        let ten_percent = Jitter::Percent(10);
        let (attempts_max, backoff, jitter) = match self {
            Preset::Default => (10, exponential(seconds(1), 2.0, Millis::from_minutes(15)), ten_percent),
            Preset::Mail => (8, exponential(seconds(20), 3.0, Millis::from_hours(6)), ten_percent),
            Preset::Webhook => (18, Backoff::Steps(webhook_steps()), ten_percent),
            Preset::Invitation => {
                (8, exponential(seconds(10), 2.0, Millis::from_hours(1)), Jitter::Plus(seconds(9)))
            }
            Preset::ImportAlert => (6, exponential(seconds(30), 2.0, Millis::from_minutes(15)), Jitter::None),
            Preset::FullJitter => (25, exponential(seconds(2), 2.0, seconds(60)), Jitter::Full),
            Preset::Periodic => (1, exponential(seconds(1), 1.0, seconds(1)), Jitter::None),
        };
        Policy {
            name: self.name().to_owned(),
            version: 1,
            attempts_max,
            backoff,
            jitter,
            on_unknown: if self == Preset::Mail { OnUnknown::Hold } else { OnUnknown::Retry },
            unknown_delay: (self == Preset::ImportAlert).then(|| seconds(60)),
            snooze_max: limits::RETRY_AFTER_MAX,
            snoozes_max: None,
            crashes_max: limits::CRASHES_MAX_DEFAULT,
            age_max: None,
            retryable_statuses: Vec::new(),
        }
    }
}

fn webhook_steps() -> Vec<Millis> {
    vec![
        Millis::from_seconds(5),
        Millis::from_minutes(5),
        Millis::from_minutes(30),
        Millis::from_hours(2),
        Millis::from_hours(5),
        Millis::from_hours(10),
    ]
}
