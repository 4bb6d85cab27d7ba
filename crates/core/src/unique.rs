//! Unique jobs: which states hold a key, and which sets of states make sense.
//!
//! A key is held from the insert on, for as long as the job's state is in the
//! declared set. The database keeps one row per held key, so two enqueues at the
//! same moment cannot both win. Keys are stored hashed: any length, no secret.

use crate::job::StateName;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// A set of states in which a job holds its unique key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UniqueStates(u16);

/// A unique key, hashed, and how long the job holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unique {
    /// What two jobs of one kind and tenant may not share.
    pub key_hash: KeyHash,
    /// While in these.
    pub states: UniqueStates,
}

/// SHA-256 of a key that a caller gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct KeyHash(pub [u8; 32]);

impl KeyHash {
    /// The hash of `key`.
    pub fn of(key: &str) -> KeyHash {
        KeyHash(Sha256::digest(key.as_bytes()).into())
    }
}

/// A set of states that a job leaves and re-enters by itself cannot hold a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UniqueStatesRefused {
    /// The key is taken at the enqueue, so the state that an enqueue gives must be in the set.
    #[error("a unique job's states must contain `pending`: the key is taken when the job is enqueued")]
    WithoutPending,
    /// For example `retryable` without `running`.
    #[error(
        "a unique job's states must contain all of `running`, `retryable`, `snoozed` and `unknown`, or none \
         of them: a job moves between them by itself, and another could take its key in between"
    )]
    LeavesAndComesBack,
    /// Not one bit of a known state.
    #[error("{0} is not a set of states")]
    NotASet(i16),
}

const IN_WORK: [StateName; 4] =
    [StateName::Running, StateName::Retryable, StateName::Snoozed, StateName::Unknown];

impl UniqueStates {
    /// Until the job has finished, however it did.
    pub const UNFINISHED: UniqueStates = UniqueStates(
        bit(StateName::Pending)
            | bit(StateName::Running)
            | bit(StateName::Retryable)
            | bit(StateName::Snoozed)
            | bit(StateName::Unknown),
    );
    /// Until the job first starts: one more may wait while one runs.
    pub const PENDING: UniqueStates = UniqueStates(bit(StateName::Pending));
    /// For as long as the job is kept at all.
    pub const KEPT: UniqueStates = UniqueStates(
        Self::UNFINISHED.0
            | bit(StateName::Completed)
            | bit(StateName::Discarded)
            | bit(StateName::Cancelled),
    );

    /// The set of these states.
    ///
    /// # Errors
    /// When a job could leave the set and come back by itself.
    pub fn new(states: &[StateName]) -> Result<UniqueStates, UniqueStatesRefused> {
        let set = UniqueStates(states.iter().fold(0, |set, state| set | bit(*state)));
        if !set.contains(StateName::Pending) {
            return Err(UniqueStatesRefused::WithoutPending);
        }
        let in_work = IN_WORK.iter().filter(|state| set.contains(**state)).count();
        if in_work != 0 && in_work != IN_WORK.len() {
            return Err(UniqueStatesRefused::LeavesAndComesBack);
        }
        Ok(set)
    }

    /// Whether a job in `state` holds its key.
    pub const fn contains(self, state: StateName) -> bool {
        self.0 & bit(state) != 0
    }

    /// As a column holds it.
    pub fn to_bits(self) -> i16 {
        i16::try_from(self.0).expect("eight states fit in fifteen bits")
    }

    /// From a column.
    ///
    /// # Errors
    /// When the bits are not a set that [`UniqueStates::new`] gives.
    pub fn from_bits(bits: i16) -> Result<UniqueStates, UniqueStatesRefused> {
        let states: Vec<StateName> = StateName::ALL
            .into_iter()
            .filter(|state| u16::try_from(bits).is_ok_and(|bits| bits & bit(*state) != 0))
            .collect();
        let set = UniqueStates::new(&states)?;
        if set.to_bits() == bits { Ok(set) } else { Err(UniqueStatesRefused::NotASet(bits)) }
    }
}

const fn bit(state: StateName) -> u16 {
    1 << state as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_that_a_job_leaves_and_re_enters_by_itself_is_refused() {
        use StateName::{Completed, Pending, Retryable, Running};
        assert_eq!(UniqueStates::new(&[Running]), Err(UniqueStatesRefused::WithoutPending));
        assert_eq!(UniqueStates::new(&[Pending, Retryable]), Err(UniqueStatesRefused::LeavesAndComesBack));
        assert_eq!(UniqueStates::new(&[Pending]), Ok(UniqueStates::PENDING));
        assert!(UniqueStates::new(&[Pending, Completed]).is_ok());
    }

    #[test]
    fn a_set_reads_back_from_its_column() {
        for set in [UniqueStates::UNFINISHED, UniqueStates::PENDING, UniqueStates::KEPT] {
            assert_eq!(UniqueStates::from_bits(set.to_bits()), Ok(set));
        }
        assert_eq!(UniqueStates::from_bits(0x1001), Err(UniqueStatesRefused::NotASet(0x1001)));
        assert!(UniqueStates::from_bits(-1).is_err());
    }
}
