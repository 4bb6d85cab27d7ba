//! A change: a job before, the facts, the job after. And what the stores share
//! about writing many of them.

use super::insert::KeyRow;
use super::terms::TermsOfKinds;
use super::{Logged, Stored, Take};
use std::collections::HashSet;
use tidings_core::decide::{Command, Refusal, decide};
use tidings_core::evolve::evolve;
use tidings_core::fact::Fact;
use tidings_core::id::JobId;
use tidings_core::job::{Job, State};
use tidings_core::policy::OnUnknown;
use tidings_core::time::Time;

/// A job and what the core decided about it.
#[derive(Clone, Debug)]
pub struct Change {
    /// The write is refused unless the store still has this version.
    pub before_version: i64,
    /// Whether the job was finished before.
    pub was_finished: bool,
    /// Whether it held its unique key before.
    pub held_key: bool,
    /// The job as it will be.
    pub after: Job,
    /// The lines to append, each with the version that it leads to.
    pub logged: Vec<Logged>,
}

/// What became of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saved {
    /// It is written, with its facts.
    Yes,
    /// Someone else wrote first: load, decide and save again.
    Conflict,
    /// A finished job was to come back, but another one has its unique key by now.
    KeyTaken(JobId),
}

/// How a change moves a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Route {
    /// Live, stays live.
    Live,
    /// Live, finishes.
    Finishes,
    /// Finished, comes back.
    Revives,
    /// Finished, stays finished.
    Amends,
}

/// How a change moves a unique key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyMove {
    None,
    Released,
    Taken,
}

impl Change {
    /// Applies `facts`, recorded at `at`, to `before`.
    pub fn new(before: &Job, facts: Vec<Fact>, at: Time) -> Change {
        let mut after = before.clone();
        let mut logged = Vec::with_capacity(1);
        for fact in facts {
            after = evolve(after, &fact, at);
            if fact.is_logged() {
                logged.push(Logged { version: after.version, at, fact });
            }
        }
        Change {
            before_version: before.version,
            was_finished: before.state.finished_at().is_some(),
            held_key: before.holds_unique_key(),
            after,
            logged,
        }
    }

    /// Asks the core and applies its answer.
    ///
    /// # Errors
    /// The core's refusal.
    pub fn decide(before: &Job, command: Command<'_>, at: Time) -> Result<Change, Refusal> {
        Ok(Change::new(before, decide(before, command, at)?, at))
    }

    /// Whether there is anything to write.
    pub fn is_empty(&self) -> bool {
        self.after.version == self.before_version
    }

    pub(super) fn route(&self) -> Route {
        match (self.was_finished, self.after.state.finished_at().is_some()) {
            (false, false) => Route::Live,
            (false, true) => Route::Finishes,
            (true, false) => Route::Revives,
            (true, true) => Route::Amends,
        }
    }

    pub(super) fn key_move(&self) -> KeyMove {
        let holds = self.after.holds_unique_key();
        if holds && self.route() == Route::Revives {
            // Whatever its states say: the key may have gone to another job since.
            return KeyMove::Taken;
        }
        match (self.held_key, holds) {
            (true, false) => KeyMove::Released,
            (false, true) => KeyMove::Taken,
            (true, true) | (false, false) => KeyMove::None,
        }
    }
}

/// The first change of each job; the place of every later one of the same job.
/// Two changes of one job in one statement would both seem written.
pub(super) fn first_of_each(changes: &[Change]) -> HashSet<usize> {
    let mut seen = HashSet::with_capacity(changes.len());
    (0..changes.len()).filter(|index| seen.insert(changes[*index].after.id)).collect()
}

/// What taking these due rows leads to. Called by both stores inside their
/// transaction, with the rows locked.
pub(super) fn start_all(due: Vec<Stored>, take: &Take) -> Vec<Stored> {
    due.into_iter()
        .filter_map(|stored| {
            let terms = take.terms.of(&stored.job.kind)?;
            let on_unknown = (terms.on_unknown)(&terms.policy, &stored.args);
            let start = Command::Start { worker: take.worker, lease: terms.lease, on_unknown };
            let job = Change::decide(&stored.job, start, take.now).ok()?.after;
            Some(Stored { job, args: stored.args })
        })
        .collect()
}

/// The unique keys that these jobs gave up by being started.
pub(super) fn keys_released_by_start(started: &[Stored]) -> Vec<KeyRow> {
    let gives_up = |job: &&Job| match (&job.state, job.unique) {
        (State::Running { claim, .. }, Some(unique)) => {
            unique.states.contains(claim.from.state_name()) && !job.holds_unique_key()
        }
        _ => false,
    };
    started.iter().map(|stored| &stored.job).filter(gives_up).filter_map(KeyRow::unique).collect()
}

/// What the ends of these leases lead to. Called like [`start_all`].
pub(super) fn sweep_all(expired: &[Stored], now: Time, terms: &TermsOfKinds) -> Vec<Change> {
    expired
        .iter()
        .filter_map(|stored| {
            let policy = &terms.of(&stored.job.kind)?.policy;
            Change::decide(&stored.job, Command::Sweep { policy, draw: terms.draw() }, now).ok()
        })
        .collect()
}

/// The claim of a job that was just started, for the columns that a claim writes.
pub(super) struct ClaimColumns {
    pub(super) version: i64,
    pub(super) due_at_ms: i64,
    pub(super) came_from: &'static str,
    pub(super) on_unknown: OnUnknown,
    pub(super) claims: i64,
}

impl ClaimColumns {
    pub(super) fn of(job: &Job) -> Option<ClaimColumns> {
        let State::Running { claim, .. } = &job.state else { return None };
        Some(ClaimColumns {
            version: job.version,
            due_at_ms: claim.lease_until.0,
            came_from: claim.from.state_name().as_str(),
            on_unknown: claim.on_unknown,
            claims: job.counters.claims,
        })
    }
}

/// Times that a change is decided again because someone else wrote first.
const CONFLICTS_MAX: usize = 100;

/// What became of a command.
#[derive(Clone, Debug)]
pub enum Told {
    /// The job as it is now.
    Done(Box<Job>),
    /// There is no such job.
    NoSuchJob,
    /// The core refused.
    Refused(Refusal),
    /// Another job has its unique key.
    KeyTaken(JobId),
}

/// Loads, decides and saves; again if someone else wrote in between.
///
/// # Errors
/// When the store cannot be read or written.
pub async fn tell(
    store: &dyn super::Store,
    id: JobId,
    command: Command<'_>,
    now: Time,
) -> Result<Told, super::StoreError> {
    for _ in 0..CONFLICTS_MAX {
        let Some(Stored { job, .. }) = store.load(&[id]).await?.into_iter().next().flatten() else {
            return Ok(Told::NoSuchJob);
        };
        let change = match Change::decide(&job, command.clone(), now) {
            Ok(change) if change.is_empty() => return Ok(Told::Done(Box::new(job))),
            Ok(change) => change,
            Err(refusal) => return Ok(Told::Refused(refusal)),
        };
        let after = change.after.clone();
        match store.save(vec![change]).await?.first() {
            Some(Saved::Yes) => return Ok(Told::Done(Box::new(after))),
            Some(Saved::KeyTaken(holder)) => return Ok(Told::KeyTaken(*holder)),
            Some(Saved::Conflict) | None => {}
        }
    }
    Err(super::StoreError::Unavailable(format!(
        "{id} changed {CONFLICTS_MAX} times while it was being changed"
    )))
}
