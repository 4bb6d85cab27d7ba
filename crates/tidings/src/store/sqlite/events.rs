//! What the store's verbs about events do to SQLite.

use super::error;
use super::verbs::{count, execute, insert, take_keys};
use crate::store::StoreError;
use crate::store::event_rows::{self as rows, EventRead, IncidentMove, IncidentRead, Listing};
use crate::store::outbox::{
    Batch, EventFilter, FanOut, Incident, IncidentSource, KeptKind, Known, NewEvent, Passed, Recorded,
    StoredEvent, Unplanned,
};
use crate::store::sql::sqlite as sql;
use rusqlite::{Connection, Row, params};
use std::collections::BTreeSet;
use tidings_core::event::{Event, EventId, EventType, TypeName};
use tidings_core::relay::{Backlog, RelayState};
use tidings_core::route::Subscription;
use tidings_core::time::Time;
use uuid::Uuid;

type Result<T> = std::result::Result<T, StoreError>;

/// Records events inside a transaction on `db`.
///
/// # Errors
/// When the database refuses (an undeclared type, for one) or cannot write; the
/// caller's transaction is then to be rolled back.
pub fn record(db: &Connection, events: Vec<NewEvent>, now: Time) -> Result<Vec<Recorded>> {
    let held = take_keys(db, &rows::event_keys(&events))?;
    let (answers, new) = rows::recorded(events, &held);
    for event in new {
        let Event { id, type_name, tenant, subject, occurred_at, data } = &event;
        let values = params![id.0, type_name.as_str(), tenant, subject, occurred_at.0, data, now.0];
        execute(db, sql::record_events, values)?;
    }
    Ok(answers)
}

/// The same, but nothing at all if the key of one was used for something else.
pub(super) fn record_together(db: &Connection, events: Vec<NewEvent>, now: Time) -> Result<Vec<Recorded>> {
    db.execute_batch("SAVEPOINT together").map_err(error)?;
    let recorded = record(db, events, now)?;
    let end = if recorded.iter().any(Recorded::is_refused) { "ROLLBACK TO together;" } else { "" };
    db.execute_batch(&format!("{end} RELEASE together")).map_err(error)?;
    Ok(recorded)
}

/// The names of the declared types, inside a transaction on `db`.
///
/// # Errors
/// When the database cannot be read.
pub fn declared(db: &Connection) -> Result<Vec<TypeName>> {
    Ok(types(db)?.into_iter().map(|declared| declared.name).collect())
}

pub(super) fn fan_out(db: &Connection, batch: Batch, now: Time, plan: &dyn FanOut) -> Result<Passed> {
    let found = match batch {
        Batch::Due(limit) => each(db, sql::take_events, params![now.0, count(limit)], read)?,
        Batch::One(id) => each(db, sql::lock_event, params![id.0], read)?,
    };
    let (events, unreadable) = rows::sorted_out(found);
    if !unreadable.is_empty() {
        return Ok(Passed::Unreadable(unreadable));
    }
    let plain: Vec<Event> = events.iter().map(|stored| stored.event.clone()).collect();
    let known = if events.is_empty() {
        Known::default()
    } else {
        Known { subscriptions: subscriptions(db)?, kinds: kept_kinds(db)? }
    };
    let plans = match plan.plan(&plain, &known, now) {
        Ok(plans) => plans,
        Err(Unplanned::Failed(reason)) => return Ok(Passed::Failed { events, reason }),
        Err(Unplanned::NotHere(reason)) => return Ok(Passed::LeftAlone { reason }),
    };
    let mut queues = BTreeSet::new();
    for (event, plan) in plain.iter().zip(plans) {
        queues.extend(plan.jobs.iter().map(|new| new.job.queue.clone()));
        insert(db, plan.jobs)?;
        execute(db, sql::mark_events, params![event.id.0, now.0, plan.became])?;
    }
    Ok(Passed::Done {
        events: plain.iter().map(|event| event.id).collect(),
        queues: queues.into_iter().collect(),
        next_due: next_due(db, now)?,
    })
}

fn next_due(db: &Connection, now: Time) -> Result<Option<Time>> {
    let mut query = db.prepare_cached(&sql::next_event_due).map_err(error)?;
    let due_at_ms: Option<i64> = query.query_row([now.0], |row| row.get(0)).map_err(error)?;
    Ok(due_at_ms.map(Time))
}

pub(super) fn save_event(
    db: &Connection,
    read: &StoredEvent,
    state: &RelayState,
    incident: Uuid,
    now: Time,
) -> Result<bool> {
    let (before, after) = (rows::relay_columns(&read.state), rows::relay_columns(state));
    let values = params![
        read.event.id.0,
        before.state,
        before.failures,
        after.state,
        after.due_at_ms,
        after.failures,
        after.settled_at_ms,
        after.reason,
    ];
    if execute(db, &sql::save_event, values)? == 0 {
        return Ok(false);
    }
    let subject = read.event.id.to_string();
    match rows::incident_move(&read.state, state) {
        IncidentMove::Open { reason } => {
            open_incident(db, incident, IncidentSource::Event, &subject, reason, now)?;
        }
        IncidentMove::Close => close_incident(db, IncidentSource::Event, &subject, now)?,
        IncidentMove::None => {}
    }
    Ok(true)
}

pub(super) fn set_aside_unreadable(
    db: &Connection,
    id: EventId,
    reason: &str,
    incident: Uuid,
    now: Time,
) -> Result<bool> {
    if execute(db, &sql::set_aside_unreadable, params![id.0, now.0, reason])? == 0 {
        return Ok(false);
    }
    open_incident(db, incident, IncidentSource::Event, &id.to_string(), reason, now)?;
    Ok(true)
}

pub(super) fn event(db: &Connection, id: EventId) -> Result<Option<StoredEvent>> {
    Ok(many(db, sql::load_events, params![id.0])?.pop())
}

pub(super) fn list(db: &Connection, filter: &EventFilter) -> Result<Vec<StoredEvent>> {
    let mut listed = Listing::new(filter);
    while let Some((before, limit)) = listed.ask {
        let EventFilter { state, type_name, subject, tenant, .. } = filter;
        let values = params![state, type_name, subject, tenant, before.as_bytes(), count(limit)];
        listed.read(each(db, &sql::list_events, values, read)?);
    }
    Ok(listed.events)
}

pub(super) fn declare_types(db: &Connection, types: &[EventType], now: Time) -> Result<()> {
    for EventType { name, description, exposure } in types {
        let values = params![name.as_str(), description, rows::exposure_word(*exposure), now.0];
        execute(db, &sql::declare_event_type, values)?;
    }
    Ok(())
}

pub(super) fn types(db: &Connection) -> Result<Vec<EventType>> {
    each(db, &sql::event_types, [], |row| {
        Ok((row.get::<_, String>(0)?, row.get(1)?, row.get::<_, String>(2)?))
    })?
    .into_iter()
    .map(|(name, description, exposure)| rows::event_type(&name, description, &exposure))
    .collect()
}

pub(super) fn keep_subscriptions(db: &Connection, subscriptions: &[Subscription]) -> Result<()> {
    for subscription in subscriptions {
        let body = rows::subscription_body(subscription);
        execute(db, &sql::keep_subscription, params![subscription.name, body])?;
    }
    Ok(())
}

pub(super) fn remove_subscription(db: &Connection, name: &str) -> Result<()> {
    execute(db, &sql::remove_subscription, params![name]).map(drop)
}

pub(super) fn subscriptions(db: &Connection) -> Result<Vec<Subscription>> {
    each(db, &sql::subscriptions, [], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?
        .iter()
        .map(|(name, body)| rows::subscription(name, body))
        .collect()
}

pub(super) fn keep_kinds(db: &Connection, kinds: &[KeptKind]) -> Result<()> {
    for kind in kinds {
        let values = params![kind.name, kind.queue, kind.priority, kind.unique_states.to_bits()];
        execute(db, &sql::keep_kind, values)?;
    }
    Ok(())
}

pub(super) fn kept_kinds(db: &Connection) -> Result<Vec<KeptKind>> {
    each(db, &sql::kept_kinds, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?
        .into_iter()
        .map(|(name, queue, priority, states)| rows::kept_kind(name, queue, priority, states))
        .collect()
}

pub(super) fn backlog(db: &Connection, count_max: u64) -> Result<Backlog> {
    let mut query = db.prepare_cached(&sql::backlog).map_err(error)?;
    let most = i64::try_from(count_max).unwrap_or(i64::MAX);
    query
        .query_row([most], |row| {
            Ok(Backlog {
                waiting: row.get::<_, i64>(0)?.unsigned_abs(),
                oldest_at: row.get::<_, Option<i64>>(1)?.map(Time),
                poisoned: row.get::<_, i64>(2)?.unsigned_abs(),
            })
        })
        .map_err(error)
}

pub(super) fn open_incident(
    db: &Connection,
    id: Uuid,
    source: IncidentSource,
    subject: &str,
    reason: &str,
    now: Time,
) -> Result<()> {
    execute(db, &sql::open_incident, params![id, source.as_str(), subject, reason, now.0]).map(drop)
}

pub(super) fn close_incident(
    db: &Connection,
    source: IncidentSource,
    subject: &str,
    now: Time,
) -> Result<()> {
    execute(db, &sql::close_incident, params![source.as_str(), subject, now.0]).map(drop)
}

pub(super) fn incidents(db: &Connection, closed: bool, limit: usize) -> Result<Vec<Incident>> {
    each(db, &sql::incidents, params![closed, count(limit)], |row| {
        Ok(Incident::from(IncidentRead {
            id: row.get(0)?,
            source: row.get(1)?,
            subject: row.get(2)?,
            reason: row.get(3)?,
            opened_at_ms: row.get(4)?,
            seen_at_ms: row.get(5)?,
            times: row.get(6)?,
            closed_at_ms: row.get(7)?,
        }))
    })
}

pub(super) fn prune(db: &Connection, before: Time, limit: usize) -> Result<usize> {
    execute(db, sql::prune_events, params![before.0, count(limit)])
}

fn many(db: &Connection, text: &str, values: &[&dyn rusqlite::ToSql]) -> Result<Vec<StoredEvent>> {
    each(db, text, values, read)?.into_iter().map(rows::stored_event).collect()
}

fn each<T>(
    db: &Connection,
    text: &str,
    values: impl rusqlite::Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>> {
    let mut query = db.prepare_cached(text).map_err(error)?;
    let rows = query.query_map(values, read).map_err(error)?;
    rows.collect::<rusqlite::Result<Vec<T>>>().map_err(error)
}

fn read(row: &Row<'_>) -> rusqlite::Result<EventRead> {
    Ok(EventRead {
        id: row.get(0)?,
        type_name: row.get(1)?,
        tenant: row.get(2)?,
        subject: row.get(3)?,
        occurred_at_ms: row.get(4)?,
        data: row.get(5)?,
        seq: row.get(6)?,
        recorded_at_ms: row.get(7)?,
        state: row.get(8)?,
        due_at_ms: row.get(9)?,
        failures: row.get(10)?,
        settled_at_ms: row.get(11)?,
        reason: row.get(12)?,
        became: row.get(13)?,
    })
}
