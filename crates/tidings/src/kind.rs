//! What a job is: its name, queue, policy, time limit and handler, declared once.
//!
//! A kind is the type of its arguments. Its declaration is data; its handler is an
//! async function that is given state and an attempt and returns an outcome.
//!
//! Absent on purpose: retrying. A handler only classifies; see [`tidings_core::policy`].

pub mod http_call;
mod registry;
mod report;

pub use registry::{BadArgs, Declared, Registry, RegistryRefused};
pub(crate) use registry::{RawAttempt, Registered, check_name};
pub use report::{IntoReport, Report};

use crate::sink::http::Trail;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use tidings_core::id::JobId;
use tidings_core::job::Priority;
use tidings_core::limits;
use tidings_core::policy::{OnUnknown, Policy, Preset};
use tidings_core::time::{Millis, Time};
use tidings_core::unique::UniqueStates;

/// A type of job. Implemented by the type of its arguments.
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use tidings::{Declaration, Kind, Preset};
///
/// #[derive(Serialize, Deserialize)]
/// struct Invitation {
///     to: String,
/// }
///
/// impl Kind for Invitation {
///     const DECLARATION: Declaration =
///         Declaration::new("invitation.send").policy(Preset::Invitation).queue("mail");
/// }
/// ```
pub trait Kind: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// What everybody may know of it.
    const DECLARATION: Declaration;

    /// What no other job of this kind and tenant may share while it is in the
    /// declared states. `None`: it is not unique.
    fn unique_key(&self) -> Option<String> {
        None
    }

    /// What becomes of the job when an attempt's outcome is unknown. The policy
    /// says, unless the arguments do.
    fn on_unknown(&self, policy: &Policy) -> OnUnknown {
        policy.on_unknown()
    }

    /// The arguments as JSON text that may be shown: without secrets. `None`: as they
    /// are, byte for byte.
    fn without_secrets(&self) -> Option<String> {
        None
    }
}

/// A kind, declared.
#[derive(Clone, Copy, Debug)]
pub struct Declaration {
    pub(crate) name: &'static str,
    pub(crate) queue: &'static str,
    pub(crate) policy: Preset,
    pub(crate) time_limit: Millis,
    pub(crate) priority: Priority,
    pub(crate) unique_states: UniqueStates,
}

/// The queue of a kind that names none.
pub const QUEUE_DEFAULT: &str = "default";

impl Declaration {
    /// A kind called `name` (dotted, like `invitation.send`): queue `default`, policy
    /// `default`, 30 s, unique (if it has a key) until it is finished.
    pub const fn new(name: &'static str) -> Declaration {
        Declaration {
            name,
            queue: QUEUE_DEFAULT,
            policy: Preset::Default,
            time_limit: limits::TIME_LIMIT_DEFAULT,
            priority: Priority::NORMAL,
            unique_states: UniqueStates::UNFINISHED,
        }
    }

    /// Whose workers take it.
    #[must_use]
    pub const fn queue(mut self, queue: &'static str) -> Declaration {
        self.queue = queue;
        self
    }

    /// When it is tried again.
    #[must_use]
    pub const fn policy(mut self, policy: Preset) -> Declaration {
        self.policy = policy;
        self
    }

    /// Hard limit of one attempt: past it the handler is cancelled. At most 24 hours.
    #[must_use]
    pub const fn time_limit(mut self, time_limit: Millis) -> Declaration {
        self.time_limit = time_limit;
        self
    }

    /// Before whom it is taken.
    #[must_use]
    pub const fn priority(mut self, priority: Priority) -> Declaration {
        self.priority = priority;
        self
    }

    /// In which states a job of this kind holds its unique key.
    #[must_use]
    pub const fn unique_while(mut self, states: UniqueStates) -> Declaration {
        self.unique_states = states;
        self
    }
}

/// One attempt at a job, as its handler sees it.
#[derive(Debug)]
pub struct Attempt<K> {
    /// The job's arguments.
    pub args: K,
    /// Which job. The same on every attempt: the id that a receiver dedupes by.
    pub job_id: JobId,
    /// Which attempt, from 1. Snoozed ones count here, though they spend nothing.
    pub number: i64,
    /// Whose.
    pub tenant: String,
    /// When it started, by the database's clock.
    pub started_at: Time,
    /// The kind's policy, as it is set in this process.
    pub policy: Arc<Policy>,
    /// Where a sink notes how far it got, so that evidence survives a handler
    /// that is cancelled.
    pub trail: Trail,
}
