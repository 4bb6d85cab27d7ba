//! What a store needs to know of a kind when it takes its jobs: policy, lease,
//! and what becomes of a job if its worker is never heard of again.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use tidings_core::policy::{Draw, OnUnknown, Policy};
use tidings_core::time::Millis;
use tidings_core::unique::UniqueStates;

/// The terms on which jobs of one kind are taken.
#[derive(Clone)]
pub struct Terms {
    /// When to try again.
    pub policy: Arc<Policy>,
    /// How long a claim lasts: longer than the kind's hard time limit.
    pub lease: Millis,
    /// Asked with the arguments: whether a job whose outcome is unknown may be sent again.
    pub on_unknown: fn(&Policy, &str) -> OnUnknown,
}

impl fmt::Debug for Terms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Terms").field("policy", &self.policy.label()).field("lease", &self.lease).finish()
    }
}

/// A kind that some program carries out, as other programs may know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptKind {
    /// Its name.
    pub name: String,
    /// Whose workers take it.
    pub queue: String,
    /// 1 to 4.
    pub priority: i16,
    /// In which states its jobs hold their unique keys.
    pub unique_states: UniqueStates,
}

/// The kinds that a process knows, and where it gets random numbers from.
#[derive(Debug)]
pub struct TermsOfKinds {
    names: Vec<String>,
    by_kind: HashMap<String, Terms>,
    draw: fn() -> Draw,
}

impl TermsOfKinds {
    /// Of these kinds; `draw` gives a fresh random number a call.
    pub fn new(by_kind: HashMap<String, Terms>, draw: fn() -> Draw) -> TermsOfKinds {
        let mut names: Vec<String> = by_kind.keys().cloned().collect();
        names.sort();
        TermsOfKinds { names, by_kind, draw }
    }

    /// The kinds, sorted.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The terms of a kind, if it is known.
    pub fn of(&self, kind: &str) -> Option<&Terms> {
        self.by_kind.get(kind)
    }

    /// A random number for a jitter.
    pub fn draw(&self) -> Draw {
        (self.draw)()
    }
}
