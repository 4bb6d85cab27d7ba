//! A job as columns, and back. The only place that knows the column values.

use super::{StoreError, Stored};
use std::sync::Arc;
use tidings_core::fact::Fact;
use tidings_core::id::{JobId, WorkerId};
use tidings_core::job::{Claim, Counters, Job, Priority, State, StateName, Wait};
use tidings_core::policy::OnUnknown;
use tidings_core::time::Time;
use tidings_core::unique::{KeyHash, Unique, UniqueStates};
use uuid::Uuid;

/// Columns that never change, the same in both tables.
pub(super) struct Fixed {
    pub(super) id: Uuid,
    pub(super) kind: String,
    pub(super) queue: String,
    pub(super) priority: i16,
    pub(super) tenant: String,
    pub(super) enqueued_at_ms: i64,
    pub(super) run_at_ms: i64,
    pub(super) unique_key_hash: Option<Vec<u8>>,
    pub(super) unique_states: Option<i16>,
    pub(super) args: String,
}

/// What changes of a live job.
pub(super) struct Live {
    pub(super) version: i64,
    pub(super) state: &'static str,
    pub(super) due_at_ms: Option<i64>,
    pub(super) due_rank: i16,
    pub(super) worker: Option<Uuid>,
    pub(super) started_at_ms: Option<i64>,
    pub(super) came_from: Option<&'static str>,
    pub(super) on_unknown: Option<&'static str>,
    pub(super) cancel_requested: bool,
    pub(super) accepted_late: bool,
    pub(super) counts: Counts,
}

/// What changes of a finished job.
pub(super) struct Finished {
    pub(super) version: i64,
    pub(super) state: &'static str,
    pub(super) finished_at_ms: i64,
    pub(super) counts: Counts,
}

/// The counters as columns.
pub(super) struct Counts {
    pub(super) claims: i64,
    pub(super) attempts: i64,
    pub(super) snoozes: i64,
    pub(super) crashes: i64,
}

/// A live row as it was read.
pub(super) struct LiveRead {
    pub(super) version: i64,
    pub(super) state: String,
    pub(super) due_at_ms: Option<i64>,
    pub(super) worker: Option<Uuid>,
    pub(super) started_at_ms: Option<i64>,
    pub(super) came_from: Option<String>,
    pub(super) on_unknown: Option<String>,
    pub(super) cancel_requested: bool,
    pub(super) accepted_late: bool,
    pub(super) counts: Counts,
}

/// A finished row as it was read.
pub(super) struct FinishedRead {
    pub(super) version: i64,
    pub(super) state: String,
    pub(super) finished_at_ms: i64,
    pub(super) counts: Counts,
}

/// The rank of a running job, in the index that finds work: before every priority.
pub(super) const LEASE_RANK: i16 = 0;

pub(super) fn on_unknown_word(on_unknown: OnUnknown) -> &'static str {
    match on_unknown {
        OnUnknown::Retry => "retry",
        OnUnknown::Hold => "hold",
    }
}

/// The changing columns of a job that is not finished.
pub(super) fn live(job: &Job) -> Live {
    let (claim, cancel_requested, accepted_late) = match &job.state {
        State::Running { claim, cancel_requested, accepted_late } => {
            (Some(claim), *cancel_requested, *accepted_late)
        }
        _ => (None, false, false),
    };
    Live {
        version: job.version,
        state: job.state.name().as_str(),
        due_at_ms: job.state.due_at().map(|time| time.0),
        due_rank: if claim.is_some() { LEASE_RANK } else { job.priority.get() },
        worker: claim.map(|claim| claim.worker.0),
        started_at_ms: claim.map(|claim| claim.started_at.0),
        came_from: claim.map(|claim| claim.from.state_name().as_str()),
        on_unknown: claim.map(|claim| on_unknown_word(claim.on_unknown)),
        cancel_requested,
        accepted_late,
        counts: counts(job.counters),
    }
}

/// The changing columns of a job that finished at `at`.
pub(super) fn finished(job: &Job, at: Time) -> Finished {
    Finished {
        version: job.version,
        state: job.state.name().as_str(),
        finished_at_ms: at.0,
        counts: counts(job.counters),
    }
}

fn counts(counters: Counters) -> Counts {
    Counts {
        claims: counters.claims,
        attempts: counters.attempts.into(),
        snoozes: counters.snoozes,
        crashes: counters.crashes.into(),
    }
}

/// A live row as a job.
pub(super) fn live_job(fixed: Fixed, row: &LiveRead) -> Result<Stored, StoreError> {
    let corrupt = |what: &str| corrupt(fixed.id, what);
    let name = StateName::by_name(&row.state).ok_or_else(|| corrupt("unknown state"))?;
    let state = match (name, row.due_at_ms.map(Time)) {
        (StateName::Running, Some(lease_until)) => State::Running {
            claim: Claim {
                number: row.counts.claims,
                worker: WorkerId(row.worker.ok_or_else(|| corrupt("running without a worker"))?),
                started_at: Time(row.started_at_ms.ok_or_else(|| corrupt("running since never"))?),
                lease_until,
                from: came_from(row.came_from.as_deref())
                    .ok_or_else(|| corrupt("running from no known state"))?,
                on_unknown: on_unknown(row.on_unknown.as_deref())
                    .ok_or_else(|| corrupt("unknown `on_unknown`"))?,
            },
            cancel_requested: row.cancel_requested,
            accepted_late: row.accepted_late,
        },
        (StateName::Unknown, None) => State::Held,
        (name, Some(due_at)) => State::Waiting {
            why: Wait::of_state(name).ok_or_else(|| corrupt("finished, but still live"))?,
            due_at,
        },
        (_, None) => return Err(corrupt("unfinished, but never due")),
    };
    stored(fixed, row.version, state, &row.counts)
}

/// A finished row as a job.
pub(super) fn finished_job(fixed: Fixed, row: &FinishedRead) -> Result<Stored, StoreError> {
    let at = Time(row.finished_at_ms);
    let state = match StateName::by_name(&row.state) {
        Some(StateName::Completed) => State::Completed { at },
        Some(StateName::Discarded) => State::Discarded { at },
        Some(StateName::Cancelled) => State::Cancelled { at },
        _ => return Err(corrupt(fixed.id, "not a finished state")),
    };
    stored(fixed, row.version, state, &row.counts)
}

fn stored(fixed: Fixed, version: i64, state: State, counts: &Counts) -> Result<Stored, StoreError> {
    let id = fixed.id;
    let small = |number: i64| u32::try_from(number).map_err(|_| corrupt(id, "a counter is out of range"));
    let job = Job {
        id: JobId(id),
        version,
        kind: fixed.kind,
        queue: fixed.queue,
        priority: Priority::try_from(i64::from(fixed.priority)).map_err(|e| corrupt(id, &e.to_string()))?,
        tenant: fixed.tenant,
        enqueued_at: Time(fixed.enqueued_at_ms),
        run_at: Time(fixed.run_at_ms),
        unique: unique(id, fixed.unique_key_hash, fixed.unique_states)?,
        state,
        counters: Counters {
            claims: counts.claims,
            attempts: small(counts.attempts)?,
            snoozes: counts.snoozes,
            crashes: small(counts.crashes)?,
        },
    };
    Ok(Stored { job, args: Arc::from(fixed.args) })
}

fn unique(id: Uuid, hash: Option<Vec<u8>>, states: Option<i16>) -> Result<Option<Unique>, StoreError> {
    let (Some(hash), Some(bits)) = (hash, states) else { return Ok(None) };
    let states = UniqueStates::from_bits(bits).map_err(|e| corrupt(id, &e.to_string()))?;
    Ok(Some(Unique {
        key_hash: key_hash(&hash).ok_or_else(|| corrupt(id, "a key hash of the wrong length"))?,
        states,
    }))
}

/// A stored hash.
pub(super) fn key_hash(bytes: &[u8]) -> Option<KeyHash> {
    bytes.try_into().ok().map(KeyHash)
}

fn came_from(word: Option<&str>) -> Option<Wait> {
    word.and_then(StateName::by_name).and_then(Wait::of_state)
}

fn on_unknown(word: Option<&str>) -> Option<OnUnknown> {
    match word {
        Some("retry") => Some(OnUnknown::Retry),
        Some("hold") => Some(OnUnknown::Hold),
        _ => None,
    }
}

/// A fact as JSON text.
pub(super) fn fact_to_text(fact: &Fact) -> String {
    serde_json::to_string(fact).expect("facts have string keys only and no failing serializer")
}

/// A fact from JSON text.
pub(super) fn text_to_fact(id: Uuid, text: &str) -> Result<Fact, StoreError> {
    serde_json::from_str(text)
        .map_err(|error| corrupt(id, &format!("a fact that is not understood: {error}")))
}

fn corrupt(id: Uuid, what: &str) -> StoreError {
    StoreError::CorruptRow { row: JobId(id).to_string(), what: what.to_owned() }
}
