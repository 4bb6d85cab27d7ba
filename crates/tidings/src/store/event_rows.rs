//! An event as columns, and back. The only place that knows the column values.

use super::StoreError;
use super::insert::{Holders, KeyRow};
use super::outbox::{EventFilter, Incident, KeptKind, NewEvent, Recorded, StoredEvent};
use tidings_core::event::{Event, EventId, EventType, Exposure, TypeName};
use tidings_core::id::JobId;
use tidings_core::relay::RelayState;
use tidings_core::route::Subscription;
use tidings_core::text;
use tidings_core::time::Time;
use tidings_core::unique::UniqueStates;
use uuid::Uuid;

/// An event's row as it was read.
pub(super) struct EventRead {
    pub(super) id: Uuid,
    pub(super) type_name: String,
    pub(super) tenant: String,
    pub(super) subject: String,
    pub(super) occurred_at_ms: i64,
    pub(super) data: String,
    pub(super) seq: i64,
    pub(super) recorded_at_ms: i64,
    pub(super) state: String,
    pub(super) due_at_ms: Option<i64>,
    pub(super) failures: i64,
    pub(super) settled_at_ms: Option<i64>,
    pub(super) reason: Option<String>,
    pub(super) became: Option<String>,
}

/// The columns that the relay changes.
pub(super) struct RelayColumns {
    pub(super) state: &'static str,
    pub(super) due_at_ms: Option<i64>,
    pub(super) failures: i64,
    pub(super) settled_at_ms: Option<i64>,
    pub(super) reason: Option<String>,
}

pub(super) fn relay_columns(state: &RelayState) -> RelayColumns {
    let (due_at_ms, failures, settled_at_ms, reason) = match state {
        RelayState::Waiting { due_at, failures, reason } => {
            (Some(due_at.0), i64::from(*failures), None, reason.clone())
        }
        RelayState::FannedOut { at } => (None, 0, Some(at.0), None),
        RelayState::Poisoned { at, reason } => (None, 0, Some(at.0), Some(reason.clone())),
    };
    RelayColumns { state: state.as_str(), due_at_ms, failures, settled_at_ms, reason }
}

pub(super) fn stored_event(row: EventRead) -> Result<StoredEvent, StoreError> {
    let corrupt = |what: &str| corrupt(row.id, what);
    let state = match (row.state.as_str(), row.due_at_ms, row.settled_at_ms) {
        ("waiting", Some(due_at), None) => RelayState::Waiting {
            due_at: Time(due_at),
            failures: u32::try_from(row.failures).map_err(|_| corrupt("failures out of range"))?,
            reason: row.reason.clone(),
        },
        ("fanned_out", None, Some(at)) => RelayState::FannedOut { at: Time(at) },
        ("poisoned", None, Some(at)) => {
            RelayState::Poisoned { at: Time(at), reason: row.reason.clone().unwrap_or_default() }
        }
        _ => return Err(corrupt("its state and its times do not fit")),
    };
    let type_name = TypeName::new(&row.type_name).map_err(|error| corrupt(&error.to_string()))?;
    Ok(StoredEvent {
        event: Event {
            id: EventId(row.id),
            type_name,
            tenant: row.tenant,
            subject: row.subject,
            occurred_at: Time(row.occurred_at_ms),
            data: row.data,
        },
        seq: row.seq,
        recorded_at: Time(row.recorded_at_ms),
        state,
        became: row.became,
    })
}

/// What a pass locked: rows that read as events, in the order in which they were
/// written, and the others with what is wrong with each.
pub(super) fn sorted_out(rows: Vec<EventRead>) -> (Vec<StoredEvent>, Vec<(EventId, String)>) {
    let (mut events, mut unreadable) = (Vec::with_capacity(rows.len()), Vec::new());
    for row in rows {
        let id = EventId(row.id);
        match stored_event(row) {
            Ok(event) => events.push(event),
            Err(problem) => unreadable.push((id, text::reason(&problem.to_string()))),
        }
    }
    // They came by when they are due. One that had to wait is older than it looks, and
    // must not stand for a newer event of its subject.
    events.sort_by_key(|stored| stored.seq);
    (events, unreadable)
}

/// A page of events that is complete although some rows do not read as events.
pub(super) struct Listing {
    limit: usize,
    /// Before which id to go on, and how many rows to ask for; `None` when it is complete.
    pub(super) ask: Option<(Uuid, usize)>,
    pub(super) events: Vec<StoredEvent>,
}

impl Listing {
    pub(super) fn new(filter: &EventFilter) -> Listing {
        let before = filter.before.map_or(Uuid::max(), |id| id.0);
        Listing { limit: filter.limit, ask: Some((before, filter.limit)), events: Vec::new() }
    }

    /// Reads what was asked for.
    pub(super) fn read(&mut self, rows: Vec<EventRead>) {
        let asked = self.ask.map_or(0, |(_, limit)| limit);
        let (last, found) = (rows.last().map(|row| row.id), rows.len());
        let left_out = |problem: &StoreError| tracing::error!(%problem, "an event is left out");
        self.events.extend(rows.into_iter().filter_map(|row| stored_event(row).inspect_err(left_out).ok()));
        let missing = self.limit - self.events.len();
        // Further back each time, so it ends.
        self.ask = last.filter(|_| found >= asked && missing > 0).map(|last| (last, missing));
    }
}

/// What a change of an event's state means for its incident.
pub(super) enum IncidentMove<'a> {
    Open { reason: &'a str },
    Close,
    None,
}

pub(super) fn incident_move<'a>(before: &RelayState, after: &'a RelayState) -> IncidentMove<'a> {
    match (before, after) {
        (_, RelayState::Poisoned { reason, .. }) => IncidentMove::Open { reason },
        (RelayState::Poisoned { .. }, RelayState::Waiting { .. } | RelayState::FannedOut { .. }) => {
            IncidentMove::Close
        }
        (
            RelayState::Waiting { .. } | RelayState::FannedOut { .. },
            RelayState::Waiting { .. } | RelayState::FannedOut { .. },
        ) => IncidentMove::None,
    }
}

/// The idempotency keys of a batch, sorted.
pub(super) fn event_keys(events: &[NewEvent]) -> Vec<KeyRow> {
    let mut keys: Vec<KeyRow> = events.iter().filter_map(event_key).collect();
    keys.sort_by_key(KeyRow::name);
    keys
}

/// The answer for each event, and the events to write.
pub(super) fn recorded(events: Vec<NewEvent>, holders: &Holders) -> (Vec<Recorded>, Vec<Event>) {
    let mut answers = Vec::with_capacity(events.len());
    let mut rows = Vec::with_capacity(events.len());
    for new in events {
        let holder = event_key(&new).and_then(|key| {
            let holder = holders.get(&key.name())?;
            (holder.job_id != key.job_id).then_some((holder, key.fingerprint))
        });
        answers.push(match holder {
            Some((holder, fingerprint)) if holder.fingerprint == fingerprint => {
                Recorded::Existing(EventId(holder.job_id.0))
            }
            Some((holder, _)) => Recorded::KeyReused(EventId(holder.job_id.0)),
            None => {
                rows.push(new.event);
                Recorded::New(rows[rows.len() - 1].id)
            }
        });
    }
    (answers, rows)
}

/// The key table does not ask what kind of thing holds a key.
fn event_key(new: &NewEvent) -> Option<KeyRow> {
    let key = new.idempotency?;
    Some(KeyRow {
        tenant: new.event.tenant.clone(),
        scope: EVENT_KEYS.to_owned(),
        key_hash: key.key_hash,
        job_id: JobId(new.event.id.0),
        fingerprint: Some(key.fingerprint),
        expires_at_ms: Some(key.expires_at.0),
    })
}

/// The scope of the idempotency keys of events: a tenant may use one word for an
/// event and for a job.
const EVENT_KEYS: &str = "event";

pub(super) fn event_type(name: &str, description: String, exposure: &str) -> Result<EventType, StoreError> {
    let corrupt = |what: String| StoreError::CorruptRow { row: format!("event type `{name}`"), what };
    let exposure = match exposure {
        "internal" => Exposure::Internal,
        "external" => Exposure::External,
        other => return Err(corrupt(format!("exposure `{other}`"))),
    };
    Ok(EventType {
        name: TypeName::new(name).map_err(|error| corrupt(error.to_string()))?,
        description,
        exposure,
    })
}

pub(super) const fn exposure_word(exposure: Exposure) -> &'static str {
    match exposure {
        Exposure::Internal => "internal",
        Exposure::External => "external",
    }
}

pub(super) fn subscription(name: &str, body: &str) -> Result<Subscription, StoreError> {
    serde_json::from_str(body).map_err(|error| StoreError::CorruptRow {
        row: format!("subscription `{name}`"),
        what: error.to_string(),
    })
}

pub(super) fn subscription_body(subscription: &Subscription) -> String {
    serde_json::to_string(subscription).expect("a subscription has string keys only")
}

pub(super) fn kept_kind(
    name: String,
    queue: String,
    priority: i16,
    states: i16,
) -> Result<KeptKind, StoreError> {
    let unique_states = UniqueStates::from_bits(states)
        .map_err(|error| StoreError::CorruptRow { row: format!("kind `{name}`"), what: error.to_string() })?;
    Ok(KeptKind { name, queue, priority, unique_states })
}

/// An incident's row as it was read.
pub(super) struct IncidentRead {
    pub(super) id: Uuid,
    pub(super) source: String,
    pub(super) subject: String,
    pub(super) reason: String,
    pub(super) opened_at_ms: i64,
    pub(super) seen_at_ms: i64,
    pub(super) times: i64,
    pub(super) closed_at_ms: Option<i64>,
}

impl From<IncidentRead> for Incident {
    fn from(row: IncidentRead) -> Incident {
        Incident {
            id: row.id,
            source: row.source,
            subject: row.subject,
            reason: row.reason,
            opened_at: Time(row.opened_at_ms),
            seen_at: Time(row.seen_at_ms),
            times: row.times,
            closed_at: row.closed_at_ms.map(Time),
        }
    }
}

fn corrupt(id: Uuid, what: &str) -> StoreError {
    StoreError::CorruptRow { row: EventId(id).to_string(), what: what.to_owned() }
}
