//! A job and the states it can be in.
//!
//! A job is what its facts have made of it so far. Nothing here decides: see
//! [`crate::decide`]. The arguments are not here either: no rule reads them.

use crate::id::{JobId, WorkerId};
use crate::policy::OnUnknown;
use crate::time::Time;
use crate::unique::Unique;
use serde::{Deserialize, Serialize};

/// One durable unit of work, as it stands after `version` facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Names it.
    pub id: JobId,
    /// Rises by one with every fact. The store refuses a write whose version is
    /// not the one it holds.
    pub version: i64,
    /// What it is; decides handler, policy and time limit.
    pub kind: String,
    /// Whose workers take it.
    pub queue: String,
    /// Before whom it is taken.
    pub priority: Priority,
    /// Whose it is; empty where there are no tenants.
    pub tenant: String,
    /// When it was enqueued.
    pub enqueued_at: Time,
    /// When it was first to run.
    pub run_at: Time,
    /// What no other job of its kind and tenant may share.
    pub unique: Option<Unique>,
    /// Where it stands.
    pub state: State,
    /// Four counters, because one number for two of them is how backoff breaks:
    /// a thousand snoozes are not a thousand failures.
    pub counters: Counters,
}

/// What happened to a job how often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// The number of the newest claim. Only rises, never reused; it numbers the attempts.
    pub claims: i64,
    /// Attempts that the policy counts, since the job was enqueued or revived.
    pub attempts: u32,
    /// Times it was put off without an attempt spent.
    pub snoozes: i64,
    /// Times that a worker went silent in it, since it was enqueued or revived.
    pub crashes: u32,
}

/// Where a job stands. Each variant carries exactly the data that it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Nobody works on it until `due_at`.
    Waiting {
        /// What it waits for.
        why: Wait,
        /// When it may be taken.
        due_at: Time,
    },
    /// A worker has it until the lease is over.
    Running {
        /// Which attempt, whose, until when.
        claim: Claim,
        /// Somebody asked to cancel it.
        cancel_requested: bool,
        /// A late report said that an earlier attempt was accepted: whatever
        /// this one comes to, the job is done.
        accepted_late: bool,
    },
    /// The outcome is unknown and a person decides.
    Held,
    /// Done. It never runs again.
    Completed {
        /// When.
        at: Time,
    },
    /// Given up, kept for diagnosis. A person can bring it back.
    Discarded {
        /// When.
        at: Time,
    },
    /// Somebody cancelled it. A person can bring it back.
    Cancelled {
        /// When.
        at: Time,
    },
}

/// What a waiting job waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    /// Its first run, or the run after a person brought it back.
    Fresh,
    /// The next attempt after a failure.
    Retry,
    /// The end of a snooze.
    Snooze,
    /// The next attempt after an unknown outcome.
    Unknown,
}

/// One attempt in flight. It stands on the row, committed before the handler
/// runs; the fact that ends the attempt takes its content over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The attempt's number, and its fence.
    pub number: i64,
    /// Who works on it.
    pub worker: WorkerId,
    /// Since when.
    pub started_at: Time,
    /// When the lease is over. After that the worker cannot change the job any more.
    pub lease_until: Time,
    /// What the job waited for before.
    pub from: Wait,
    /// What becomes of the job if nobody ever hears of this attempt again. Kept
    /// here so that a sweeper needs no arguments to decide.
    pub on_unknown: OnUnknown,
}

/// Before whom a job is taken: 1 (most urgent) to 4. Strict: a lower number goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "i64")]
pub struct Priority(u8);

/// The number is not a priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("priority {0} does not exist: write 1 (most urgent), 2, 3 or 4")]
pub struct NotAPriority(i64);

impl Priority {
    /// Most urgent.
    pub const FIRST: Priority = Priority(1);
    /// What a job gets that names none.
    pub const NORMAL: Priority = Priority(2);
    /// Least urgent.
    pub const LAST: Priority = Priority(4);

    /// 1 to 4.
    pub const fn get(self) -> i16 {
        self.0 as i16
    }
}

impl Default for Priority {
    fn default() -> Priority {
        Priority::NORMAL
    }
}

impl TryFrom<i64> for Priority {
    type Error = NotAPriority;

    fn try_from(number: i64) -> Result<Priority, NotAPriority> {
        match u8::try_from(number) {
            Ok(small @ 1..=4) => Ok(Priority(small)),
            _ => Err(NotAPriority(number)),
        }
    }
}

impl From<Priority> for i64 {
    fn from(priority: Priority) -> i64 {
        i64::from(priority.0)
    }
}

/// The words for a state that the API, SQL and the panel use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u16)]
pub enum StateName {
    /// Enqueued or brought back, not started.
    Pending,
    /// An attempt is in flight.
    Running,
    /// Failed, due again.
    Retryable,
    /// Put off, no attempt spent.
    Snoozed,
    /// The last outcome is not known: due again, or held (then it has no due time).
    Unknown,
    /// Done.
    Completed,
    /// Given up.
    Discarded,
    /// Cancelled.
    Cancelled,
}

impl StateName {
    /// Every state, in the order of a job's life.
    pub const ALL: [StateName; 8] = [
        StateName::Pending,
        StateName::Running,
        StateName::Retryable,
        StateName::Snoozed,
        StateName::Unknown,
        StateName::Completed,
        StateName::Discarded,
        StateName::Cancelled,
    ];

    /// The stored word.
    pub const fn as_str(self) -> &'static str {
        match self {
            StateName::Pending => "pending",
            StateName::Running => "running",
            StateName::Retryable => "retryable",
            StateName::Snoozed => "snoozed",
            StateName::Unknown => "unknown",
            StateName::Completed => "completed",
            StateName::Discarded => "discarded",
            StateName::Cancelled => "cancelled",
        }
    }

    /// The state of that word.
    pub fn by_name(word: &str) -> Option<StateName> {
        StateName::ALL.into_iter().find(|state| state.as_str() == word)
    }

    /// Whether nothing more happens to it by itself.
    pub const fn is_finished(self) -> bool {
        matches!(self, StateName::Completed | StateName::Discarded | StateName::Cancelled)
    }
}

impl State {
    /// When this job next needs attention: start it, retry it, or take it from a
    /// worker that went silent. A store looks at nothing else to find work. Held
    /// and finished jobs have none.
    pub fn due_at(&self) -> Option<Time> {
        match self {
            State::Waiting { due_at, .. } => Some(*due_at),
            State::Running { claim, .. } => Some(claim.lease_until),
            State::Held | State::Completed { .. } | State::Discarded { .. } | State::Cancelled { .. } => None,
        }
    }

    /// When it finished, if it did.
    pub fn finished_at(&self) -> Option<Time> {
        match self {
            State::Completed { at } | State::Discarded { at } | State::Cancelled { at } => Some(*at),
            State::Waiting { .. } | State::Running { .. } | State::Held => None,
        }
    }

    /// The word for it.
    pub fn name(&self) -> StateName {
        match self {
            State::Waiting { why, .. } => why.state_name(),
            State::Running { .. } => StateName::Running,
            State::Held => StateName::Unknown,
            State::Completed { .. } => StateName::Completed,
            State::Discarded { .. } => StateName::Discarded,
            State::Cancelled { .. } => StateName::Cancelled,
        }
    }
}

impl Wait {
    /// The word for a job that waits for this.
    pub const fn state_name(self) -> StateName {
        match self {
            Wait::Fresh => StateName::Pending,
            Wait::Retry => StateName::Retryable,
            Wait::Snooze => StateName::Snoozed,
            Wait::Unknown => StateName::Unknown,
        }
    }

    /// The inverse of [`Wait::state_name`].
    pub const fn of_state(name: StateName) -> Option<Wait> {
        match name {
            StateName::Pending => Some(Wait::Fresh),
            StateName::Retryable => Some(Wait::Retry),
            StateName::Snoozed => Some(Wait::Snooze),
            StateName::Unknown => Some(Wait::Unknown),
            StateName::Running | StateName::Completed | StateName::Discarded | StateName::Cancelled => None,
        }
    }
}

impl Job {
    /// Whether it holds its unique key now.
    pub fn holds_unique_key(&self) -> bool {
        self.unique.is_some_and(|unique| unique.states.contains(self.state.name()))
    }
}
