//! The settings of a process, as values; whoever reads a file makes them.

use std::collections::BTreeMap;
use std::time::Duration;
use tidings_core::time::Millis;

/// How a process works.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Attempts in flight at once, by queue. A queue that is not named gets `workers_default`.
    pub workers: BTreeMap<String, usize>,
    /// Attempts in flight at once in a queue that `workers` does not name.
    pub workers_default: usize,
    /// How often a queue is looked at when nothing wakes it.
    pub poll: Duration,
    /// How often leases that are over are looked for.
    pub sweep_every: Duration,
    /// How long running jobs get to end when the process stops.
    pub stop_grace: Duration,
    /// How long what has finished is kept.
    pub retention: Retention,
}

/// What `workers_default` is where nobody says otherwise.
pub const WORKERS_DEFAULT: usize = 10;

/// How long things are kept after they have finished.
#[derive(Clone, Copy, Debug)]
pub struct Retention {
    /// Completed jobs.
    pub completed: Millis,
    /// Discarded jobs.
    pub discarded: Millis,
    /// Cancelled jobs.
    pub cancelled: Millis,
    /// Events that were fanned out.
    pub events: Millis,
    /// Facts: the evidence outlives the jobs.
    pub facts: Millis,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            workers: BTreeMap::new(),
            workers_default: WORKERS_DEFAULT,
            poll: Duration::from_millis(500),
            sweep_every: Duration::from_secs(5),
            stop_grace: Duration::from_secs(20),
            retention: Retention::default(),
        }
    }
}

impl Default for Retention {
    fn default() -> Retention {
        Retention {
            completed: Millis::from_hours(24),
            discarded: Millis::from_days(7),
            cancelled: Millis::from_days(7),
            events: Millis::from_days(7),
            facts: Millis::from_days(30),
        }
    }
}
