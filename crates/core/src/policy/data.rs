//! A policy as somebody wrote it, in TOML or JSON, and what is refused of it.
//!
//! Written data is checked once, here; behind this door a policy cannot be bad.

use super::{Backoff, Jitter, OnUnknown, Policy, Preset};
use crate::limits;
use crate::time::Millis;
use serde::{Deserialize, Serialize};

/// A policy as it is written. What is left out comes from `preset`, or from the
/// preset `default` where none is named.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyData {
    /// Starts at 1; must rise when anything else here changes.
    pub version: Option<u32>,
    /// The preset that fills what is left out.
    pub preset: Option<Preset>,
    /// Attempts before the job is discarded.
    pub attempts: Option<u32>,
    /// How the delay grows.
    pub backoff: Option<BackoffData>,
    /// How a random draw moves it.
    pub jitter: Option<JitterData>,
    /// `"retry"` or `"hold"`.
    pub unknown: Option<OnUnknown>,
    /// Wait before the retry of an unknown outcome; the backoff's delay where absent.
    pub unknown_delay_ms: Option<i64>,
    /// Longest single snooze.
    pub snooze_max_ms: Option<i64>,
    /// Snoozes before the job is discarded; unlimited where absent.
    pub snoozes_max: Option<i64>,
    /// Times that a worker may die in the job.
    pub crashes_max: Option<u32>,
    /// Age of the job, from its first due time, after which it is given up.
    pub age_max_ms: Option<i64>,
    /// 4xx statuses to retry besides 408, 409, 421, 425 and 429.
    pub retryable_statuses: Option<Vec<u16>>,
}

/// `{ first_ms, factor, cap_ms }` or `{ steps_ms = [...] }`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum BackoffData {
    /// `first_ms × factor^(n−1)`, at most `cap_ms`.
    Exponential {
        /// Delay after the first attempt.
        first_ms: i64,
        /// At least 1.
        factor: f64,
        /// At least `first_ms`.
        cap_ms: i64,
    },
    /// One delay per attempt; the last one is used from there on.
    Steps {
        /// At least one, each at least 1.
        steps_ms: Vec<i64>,
    },
}

/// `"none"`, `"full"`, `{ percent = 10 }` or `{ plus_ms = 9000 }`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JitterData {
    /// The delay as it is.
    None,
    /// Anything between nothing and the delay.
    Full,
    /// Up to this part less or more; at most 100.
    Percent(u8),
    /// Up to this many milliseconds more.
    PlusMs(i64),
}

/// Why a policy was refused. The message names the field, what it holds and what to write.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("policy `{policy}`: {field} {problem}")]
pub struct PolicyRefused {
    policy: String,
    field: &'static str,
    problem: String,
}

/// Delays beyond this are a mistake in units, and larger ones would overflow dates.
const DELAY_MAX: Millis = limits::RUN_AT_AHEAD_MAX;
const ATTEMPTS_MAX: u32 = i32::MAX as u32;
const NAME_BYTES_MAX: usize = 64;

impl PolicyData {
    /// Checks what was written and gives the policy called `name`.
    ///
    /// # Errors
    /// The first thing that is wrong, with its field.
    pub fn check(self, name: &str) -> Result<Policy, PolicyRefused> {
        let check = Check { policy: name };
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.chars().all(plain) {
            return check.refuse("name", "must be 1 to 64 of a-z, 0-9, `-`, `_` and `.`".into());
        }
        let base = self.preset.unwrap_or(Preset::Default).policy();
        Ok(Policy {
            name: name.to_owned(),
            version: check.at_least_1("version", self.version.unwrap_or(1))?,
            attempts_max: check.attempts(self.attempts.unwrap_or(base.attempts_max))?,
            backoff: self.backoff.map_or(Ok(base.backoff), |backoff| check.backoff(backoff))?,
            jitter: self.jitter.map_or(Ok(base.jitter), |jitter| check.jitter(jitter))?,
            on_unknown: self.unknown.unwrap_or(base.on_unknown),
            unknown_delay: match self.unknown_delay_ms {
                Some(ms) => Some(check.delay("unknown_delay_ms", ms)?),
                None => base.unknown_delay,
            },
            snooze_max: self
                .snooze_max_ms
                .map_or(Ok(base.snooze_max), |ms| check.delay("snooze_max_ms", ms))?,
            snoozes_max: self.snoozes_max.map(|most| check.at_least_1("snoozes_max", most)).transpose()?,
            crashes_max: check.at_least_1("crashes_max", self.crashes_max.unwrap_or(base.crashes_max))?,
            age_max: self.age_max_ms.map(|ms| check.delay("age_max_ms", ms)).transpose()?,
            retryable_statuses: check.statuses(self.retryable_statuses.unwrap_or_default())?,
        })
    }
}

struct Check<'a> {
    policy: &'a str,
}

impl Check<'_> {
    fn refuse<T>(&self, field: &'static str, problem: String) -> Result<T, PolicyRefused> {
        Err(PolicyRefused { policy: self.policy.to_owned(), field, problem })
    }

    fn at_least_1<N: PartialOrd + From<u8> + std::fmt::Display>(
        &self,
        field: &'static str,
        number: N,
    ) -> Result<N, PolicyRefused> {
        if number < N::from(1) {
            return self.refuse(field, format!("is {number}; write 1 or more"));
        }
        Ok(number)
    }

    fn attempts(&self, attempts: u32) -> Result<u32, PolicyRefused> {
        if attempts > ATTEMPTS_MAX {
            return self.refuse("attempts", format!("is {attempts}; write at most {ATTEMPTS_MAX}"));
        }
        self.at_least_1("attempts", attempts)
    }

    fn delay(&self, field: &'static str, ms: i64) -> Result<Millis, PolicyRefused> {
        if !(1..=DELAY_MAX.0).contains(&ms) {
            return self.refuse(field, format!("is {ms}; write 1 to {} milliseconds", DELAY_MAX.0));
        }
        Ok(Millis(ms))
    }

    fn backoff(&self, backoff: BackoffData) -> Result<Backoff, PolicyRefused> {
        match backoff {
            BackoffData::Exponential { first_ms, factor, cap_ms } => {
                let first = self.delay("backoff.first_ms", first_ms)?;
                let cap = self.delay("backoff.cap_ms", cap_ms)?;
                if !factor.is_finite() || factor < 1.0 {
                    return self
                        .refuse("backoff.factor", format!("is {factor}; write a number of at least 1"));
                }
                if cap < first {
                    let problem = format!("is {cap_ms}, under the first step of {first_ms}; raise it");
                    return self.refuse("backoff.cap_ms", problem);
                }
                Ok(Backoff::Exponential { first, factor, cap })
            }
            BackoffData::Steps { steps_ms } if steps_ms.is_empty() => {
                self.refuse("backoff.steps_ms", "is empty; write at least one step".into())
            }
            BackoffData::Steps { steps_ms } => {
                let steps = steps_ms.into_iter().map(|ms| self.delay("backoff.steps_ms", ms));
                Ok(Backoff::Steps(steps.collect::<Result<_, _>>()?))
            }
        }
    }

    fn jitter(&self, jitter: JitterData) -> Result<Jitter, PolicyRefused> {
        match jitter {
            JitterData::None => Ok(Jitter::None),
            JitterData::Full => Ok(Jitter::Full),
            JitterData::Percent(percent) if percent > 100 => {
                self.refuse("jitter.percent", format!("is {percent}; write 0 to 100"))
            }
            JitterData::Percent(percent) => Ok(Jitter::Percent(percent)),
            JitterData::PlusMs(ms) => Ok(Jitter::Plus(self.delay("jitter.plus_ms", ms)?)),
        }
    }

    fn statuses(&self, statuses: Vec<u16>) -> Result<Vec<u16>, PolicyRefused> {
        match statuses.iter().find(|status| !(400..500).contains(*status)) {
            Some(status) => self.refuse(
                "retryable_statuses",
                format!("names {status}; only 4xx can be added, 5xx are retried already"),
            ),
            None => Ok(statuses),
        }
    }
}
