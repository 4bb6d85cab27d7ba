//! When to try again, as data.
//!
//! A policy is what the kind declares: how often, how far apart, what an unknown
//! outcome does, when to give up. It has a name and a version, and every attempt
//! keeps both, so that a delay in the evidence can be explained years later.
//!
//! Absent on purpose: sleeping, clocks and random numbers. The caller passes a
//! draw in and stores the delay that comes out; nobody computes it twice.

mod data;
mod preset;

pub use data::{BackoffData, JitterData, PolicyData, PolicyRefused};
pub use preset::Preset;

use crate::limits;
use crate::time::Millis;
use serde::{Deserialize, Serialize};

/// A checked policy. Made from [`PolicyData`] or from a [`Preset`]. Serialized, it is
/// what the database keeps under its name and version.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Policy {
    name: String,
    version: u32,
    attempts_max: u32,
    backoff: Backoff,
    jitter: Jitter,
    on_unknown: OnUnknown,
    unknown_delay: Option<Millis>,
    snooze_max: Millis,
    snoozes_max: Option<i64>,
    crashes_max: u32,
    age_max: Option<Millis>,
    retryable_statuses: Vec<u16>,
}

/// How the delay grows with the attempts that were spent.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Backoff {
    /// `first × factor^(n−1)`, never more than `cap`.
    Exponential { first: Millis, factor: f64, cap: Millis },
    /// The nth step; the last one from there on.
    Steps(Vec<Millis>),
}

/// How a random draw moves the delay.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Jitter {
    None,
    /// Up to this part of the delay less or more.
    Percent(u8),
    /// Up to this much more.
    Plus(Millis),
    /// Anything between nothing and the delay.
    Full,
}

/// What becomes of a job whose attempt ended with an unknown outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnUnknown {
    /// Send again with the same id: the receiver dedupes.
    Retry,
    /// A person decides.
    Hold,
}

/// A random number in `0..=u32::MAX`, drawn by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draw(pub u32);

impl Draw {
    /// The draw that leaves a symmetric jitter at its middle.
    pub const MIDDLE: Draw = Draw(u32::MAX / 2 + 1);

    /// As a part in `0.0 ..= 1.0`.
    fn part(self) -> f64 {
        f64::from(self.0) / f64::from(u32::MAX)
    }
}

impl Policy {
    /// `name@version`: what an attempt keeps.
    pub fn label(&self) -> String {
        format!("{}@{}", self.name, self.version)
    }

    /// The name without its version.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The same name with other data has another version.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Attempts before the job is discarded; at least 1.
    pub fn attempts_max(&self) -> u32 {
        self.attempts_max
    }

    /// What an unknown outcome does, where the job itself does not say.
    pub fn on_unknown(&self) -> OnUnknown {
        self.on_unknown
    }

    /// Longest single snooze.
    pub fn snooze_max(&self) -> Millis {
        self.snooze_max
    }

    /// Snoozes before the job is discarded, where there is a ceiling.
    pub fn snoozes_max(&self) -> Option<i64> {
        self.snoozes_max
    }

    /// Times that a worker may die in the job.
    pub fn crashes_max(&self) -> u32 {
        self.crashes_max
    }

    /// Total age after which no further attempt is made.
    pub fn age_max(&self) -> Option<Millis> {
        self.age_max
    }

    /// 4xx statuses that this policy retries besides the usual ones.
    pub fn retryable_statuses(&self) -> &[u16] {
        &self.retryable_statuses
    }

    /// The wait after the `spent`th attempt was spent, before the next one. Counted
    /// from 1; 0 is read as 1. Never negative, and never more than [`Policy::delay_max`].
    pub fn delay(&self, spent: u32, draw: Draw) -> Millis {
        self.jitter.apply(self.backoff.base(spent.max(1)), draw)
    }

    /// The wait before the retry of an unknown outcome.
    pub fn delay_after_unknown(&self, spent: u32, draw: Draw) -> Millis {
        match self.unknown_delay {
            Some(delay) => self.jitter.apply(delay, draw),
            None => self.delay(spent, draw),
        }
    }

    /// The longest delay that any attempt number and any draw can give: the cap
    /// (or the longest step) with all of its jitter. The cap bounds the delay
    /// before jitter, so that jobs at the cap still spread.
    pub fn delay_max(&self) -> Millis {
        let longest = match &self.backoff {
            Backoff::Exponential { cap, .. } => *cap,
            Backoff::Steps(steps) => steps.iter().copied().max().unwrap_or(Millis::ZERO),
        };
        self.jitter.apply(longest, Draw(u32::MAX))
    }
}

impl Backoff {
    /// The delay before jitter. Monotone in `spent` for an exponential.
    fn base(&self, spent: u32) -> Millis {
        match self {
            Backoff::Exponential { first, factor, cap } => {
                let grown = first.0 as f64 * power(*factor, spent - 1);
                // Compared before it becomes an integer: a product past the cap may be infinite.
                if grown >= cap.0 as f64 { *cap } else { Millis(round(grown)) }
            }
            Backoff::Steps(steps) => {
                let index = usize::try_from(spent - 1).unwrap_or(usize::MAX);
                steps.get(index).or(steps.last()).copied().unwrap_or(Millis::ZERO)
            }
        }
    }
}

impl Jitter {
    fn apply(self, delay: Millis, draw: Draw) -> Millis {
        match self {
            Jitter::None => delay,
            Jitter::Percent(percent) => {
                let part = f64::from(percent) / 100.0;
                Millis(round(delay.0 as f64 * (1.0 - part + 2.0 * part * draw.part())))
            }
            Jitter::Plus(most) => Millis(delay.0.saturating_add(round(most.0 as f64 * draw.part()))),
            Jitter::Full => Millis(round(delay.0 as f64 * draw.part())),
        }
    }
}

/// `factor^exponent` by squaring: 31 steps at most, infinite instead of wrong.
fn power(factor: f64, mut exponent: u32) -> f64 {
    let (mut result, mut square) = (1.0, factor);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result *= square;
        }
        square *= square;
        exponent >>= 1;
    }
    result
}

/// To the nearest whole millisecond. Delays are checked to stay below a hundred
/// years when a policy is loaded, so the value fits.
#[expect(clippy::cast_possible_truncation, reason = "a checked policy's delays are far below 2^63")]
fn round(ms: f64) -> i64 {
    ms.round() as i64
}

const _: () = assert!(limits::CRASHES_MAX_DEFAULT > 0);
