//! What the store's verbs about events do to Postgres.

use super::keys::take_keys;
use super::verbs::{Result, Run, Values, corrupt, count, insert_on};
use crate::store::StoreError;
use crate::store::event_rows::{self as rows, EventRead, IncidentMove, IncidentRead, Listing};
use crate::store::insert::Plan as InsertPlan;
use crate::store::outbox::{
    Batch, EventFilter, FanOut, Incident, IncidentSource, KeptKind, Known, NewEvent, Passed, Recorded,
    StoredEvent, Unplanned,
};
use crate::store::sql::postgres as sql;
use deadpool_postgres::{Client, Transaction as Pooled};
use std::collections::{BTreeSet, HashMap};
use tidings_core::event::{Event, EventId, EventType, TypeName};
use tidings_core::relay::{Backlog, RelayState};
use tidings_core::route::Subscription;
use tidings_core::time::Time;
use tokio_postgres::{Row, Transaction};
use uuid::Uuid;

/// Records events inside the caller's transaction.
///
/// # Errors
/// When the database refuses (an undeclared type, for one) or cannot write: the
/// transaction has failed then, and its `COMMIT` would quietly be a `ROLLBACK`.
pub async fn record(tx: &Transaction<'_>, events: Vec<NewEvent>, now: Time) -> Result<Vec<Recorded>> {
    record_on(tx, events, now).await
}

/// The names of the declared types, inside the caller's transaction.
///
/// # Errors
/// When the database cannot be read.
pub async fn declared(tx: &Transaction<'_>) -> Result<Vec<TypeName>> {
    let types = tx.rows(sql::event_types, &[]).await?;
    types.iter().map(|row| Ok(rows::event_type(row.get(0), row.get(1), row.get(2))?.name)).collect()
}

pub(super) async fn record_batch(
    client: &mut Client,
    events: Vec<NewEvent>,
    now: Time,
) -> Result<Vec<Recorded>> {
    if events.iter().all(|new| new.idempotency.is_none()) {
        // One statement is a transaction already.
        return record_on(&*client, events, now).await;
    }
    let tx = client.transaction().await.map_err(StoreError::from)?;
    let recorded = record_on(&tx, events, now).await?;
    tx.commit().await.map_err(StoreError::from)?;
    Ok(recorded)
}

/// The same, but nothing at all if the key of one was used for something else.
pub(super) async fn record_together(
    client: &mut Client,
    events: Vec<NewEvent>,
    now: Time,
) -> Result<Vec<Recorded>> {
    let tx = client.transaction().await.map_err(StoreError::from)?;
    let recorded = record_on(&tx, events, now).await?;
    if recorded.iter().any(Recorded::is_refused) {
        tx.rollback().await.map_err(StoreError::from)?;
    } else {
        tx.commit().await.map_err(StoreError::from)?;
    }
    Ok(recorded)
}

async fn record_on(db: &impl Run, events: Vec<NewEvent>, now: Time) -> Result<Vec<Recorded>> {
    let held = take_keys(db, &rows::event_keys(&events)).await?;
    let (answers, new) = rows::recorded(events, &held);
    if new.is_empty() {
        return Ok(answers);
    }
    db.rows(
        sql::record_events,
        &[
            &new.iter().map(|event| event.id.0).collect::<Vec<_>>(),
            &new.iter().map(|event| event.type_name.as_str()).collect::<Vec<_>>(),
            &new.iter().map(|event| event.tenant.as_str()).collect::<Vec<_>>(),
            &new.iter().map(|event| event.subject.as_str()).collect::<Vec<_>>(),
            &new.iter().map(|event| event.occurred_at.0).collect::<Vec<_>>(),
            &new.iter().map(|event| event.data.as_str()).collect::<Vec<_>>(),
            &now.0,
        ],
    )
    .await?;
    Ok(answers)
}

/// One transaction: lock, plan, insert every job with one statement, mark.
pub(super) async fn fan_out(
    client: &mut Client,
    batch: Batch,
    now: Time,
    plan: &dyn FanOut,
) -> Result<Passed> {
    let tx = client.transaction().await.map_err(StoreError::from)?;
    let passed = fan_out_in(&tx, batch, now, plan).await;
    let ended = match &passed {
        Ok(Passed::Done { .. }) => tx.commit().await,
        // Waited for: whoever looks next must not find the events locked.
        Ok(Passed::Unreadable(_) | Passed::LeftAlone { .. } | Passed::Failed { .. }) | Err(_) => {
            tx.rollback().await
        }
    };
    let passed = passed?;
    ended.map_err(StoreError::from)?;
    Ok(passed)
}

async fn fan_out_in(tx: &Pooled<'_>, batch: Batch, now: Time, plan: &dyn FanOut) -> Result<Passed> {
    let locked = match batch {
        Batch::Due(limit) => tx.rows(sql::take_events, &[&now.0, &count(limit)]).await?,
        Batch::One(id) => tx.rows(sql::lock_event, &[&id.0]).await?,
    };
    let (events, unreadable) = rows::sorted_out(locked.iter().map(read).collect());
    if !unreadable.is_empty() {
        return Ok(Passed::Unreadable(unreadable));
    }
    if events.is_empty() {
        return Ok(Passed::Done { events: vec![], queues: vec![], next_due: next_due(tx, now).await? });
    }
    let known = Known { subscriptions: subscriptions(tx).await?, kinds: kept_kinds(tx).await? };
    let plain: Vec<Event> = events.iter().map(|stored| stored.event.clone()).collect();
    let plans = match plan.plan(&plain, &known, now) {
        Ok(plans) => plans,
        Err(Unplanned::Failed(reason)) => return Ok(Passed::Failed { events, reason }),
        Err(Unplanned::NotHere(reason)) => return Ok(Passed::LeftAlone { reason }),
    };
    let became: Vec<String> = plans.iter().map(|plan| plan.became.clone()).collect();
    let jobs: Vec<_> = plans.into_iter().flat_map(|plan| plan.jobs).collect();
    let queues: BTreeSet<String> = jobs.iter().map(|new| new.job.queue.clone()).collect();
    let ids: Vec<Uuid> = plain.iter().map(|event| event.id.0).collect();
    insert_on(tx, InsertPlan::new(jobs)).await?;
    tx.rows(sql::mark_events, &[&ids, &now.0, &became]).await?;
    Ok(Passed::Done {
        events: ids.into_iter().map(EventId).collect(),
        queues: queues.into_iter().collect(),
        next_due: next_due(tx, now).await?,
    })
}

async fn next_due(tx: &Pooled<'_>, now: Time) -> Result<Option<Time>> {
    let rows = tx.rows(sql::next_event_due, &[&now.0]).await?;
    Ok(rows.first().and_then(|row| row.get::<_, Option<i64>>(0)).map(Time))
}

pub(super) async fn save_event(
    client: &mut Client,
    read: &StoredEvent,
    state: &RelayState,
    incident: Uuid,
    now: Time,
) -> Result<bool> {
    let tx = client.transaction().await.map_err(StoreError::from)?;
    if !write_state(&tx, read, state).await? {
        return Ok(false);
    }
    let subject = read.event.id.to_string();
    match rows::incident_move(&read.state, state) {
        IncidentMove::Open { reason } => {
            open_incident(&tx, incident, IncidentSource::Event, &subject, reason, now).await?;
        }
        IncidentMove::Close => close_incident(&tx, IncidentSource::Event, &subject, now).await?,
        IncidentMove::None => {}
    }
    tx.commit().await.map_err(StoreError::from)?;
    Ok(true)
}

async fn write_state(tx: &Pooled<'_>, read: &StoredEvent, state: &RelayState) -> Result<bool> {
    let (before, after) = (rows::relay_columns(&read.state), rows::relay_columns(state));
    let statement = tx.prepare_cached(sql::save_event).await.map_err(StoreError::from)?;
    let values: Values<'_> = &[
        &read.event.id.0,
        &before.state,
        &before.failures,
        &after.state,
        &after.due_at_ms,
        &after.failures,
        &after.settled_at_ms,
        &after.reason,
    ];
    Ok(tx.execute(&statement, values).await.map_err(StoreError::from)? == 1)
}

pub(super) async fn set_aside_unreadable(
    client: &mut Client,
    id: EventId,
    reason: &str,
    incident: Uuid,
    now: Time,
) -> Result<bool> {
    let tx = client.transaction().await.map_err(StoreError::from)?;
    let statement = tx.prepare_cached(sql::set_aside_unreadable).await.map_err(StoreError::from)?;
    let values: Values<'_> = &[&id.0, &now.0, &reason];
    if tx.execute(&statement, values).await.map_err(StoreError::from)? == 0 {
        return Ok(false);
    }
    open_incident(&tx, incident, IncidentSource::Event, &id.to_string(), reason, now).await?;
    tx.commit().await.map_err(StoreError::from)?;
    Ok(true)
}

pub(super) async fn events(client: &Client, ids: &[EventId]) -> Result<Vec<Option<StoredEvent>>> {
    let wanted: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let found = stored(&client.rows(sql::load_events, &[&wanted]).await?)?;
    let found: HashMap<EventId, StoredEvent> =
        found.into_iter().map(|stored| (stored.event.id, stored)).collect();
    Ok(ids.iter().map(|id| found.get(id).cloned()).collect())
}

pub(super) async fn list(client: &Client, filter: &EventFilter) -> Result<Vec<StoredEvent>> {
    let mut listed = Listing::new(filter);
    while let Some((before, limit)) = listed.ask {
        let EventFilter { state, type_name, subject, tenant, .. } = filter;
        let limit = count(limit);
        let values: Values<'_> = &[state, type_name, subject, tenant, &before, &limit];
        listed.read(client.rows(sql::list_events, values).await?.iter().map(read).collect());
    }
    Ok(listed.events)
}

/// In the order of their names, so that two programs that start at once do not wait in a circle.
pub(super) async fn declare_types(client: &mut Client, types: &[EventType], now: Time) -> Result<()> {
    let mut types: Vec<&EventType> = types.iter().collect();
    types.sort_by(|a, b| a.name.cmp(&b.name));
    let tx = client.transaction().await.map_err(StoreError::from)?;
    for EventType { name, description, exposure } in types {
        let values: Values<'_> = &[&name.as_str(), description, &rows::exposure_word(*exposure), &now.0];
        tx.rows(sql::declare_event_type, values).await?;
    }
    tx.commit().await.map_err(StoreError::from)
}

pub(super) async fn types(client: &Client) -> Result<Vec<EventType>> {
    let types = client.rows(sql::event_types, &[]).await?;
    types.iter().map(|row| rows::event_type(row.get(0), row.get(1), row.get(2))).collect()
}

pub(super) async fn keep_subscriptions(client: &mut Client, subscriptions: &[Subscription]) -> Result<()> {
    let mut subscriptions: Vec<&Subscription> = subscriptions.iter().collect();
    subscriptions.sort_by(|a, b| a.name.cmp(&b.name));
    let tx = client.transaction().await.map_err(StoreError::from)?;
    for subscription in subscriptions {
        let body = rows::subscription_body(subscription);
        tx.rows(sql::keep_subscription, &[&subscription.name, &body]).await?;
    }
    tx.commit().await.map_err(StoreError::from)
}

pub(super) async fn remove_subscription(client: &Client, name: &str) -> Result<()> {
    client.rows(sql::remove_subscription, &[&name]).await.map(drop)
}

pub(super) async fn subscriptions(db: &impl Run) -> Result<Vec<Subscription>> {
    let kept = db.rows(sql::subscriptions, &[]).await?;
    kept.iter().map(|row| rows::subscription(row.get(0), row.get(1))).collect()
}

pub(super) async fn keep_kinds(client: &mut Client, kinds: &[KeptKind]) -> Result<()> {
    let mut kinds: Vec<&KeptKind> = kinds.iter().collect();
    kinds.sort_by(|a, b| a.name.cmp(&b.name));
    let tx = client.transaction().await.map_err(StoreError::from)?;
    for kind in kinds {
        let states = kind.unique_states.to_bits();
        tx.rows(sql::keep_kind, &[&kind.name, &kind.queue, &kind.priority, &states]).await?;
    }
    tx.commit().await.map_err(StoreError::from)
}

pub(super) async fn kept_kinds(db: &impl Run) -> Result<Vec<KeptKind>> {
    let kept = db.rows(sql::kept_kinds, &[]).await?;
    kept.iter().map(|row| rows::kept_kind(row.get(0), row.get(1), row.get(2), row.get(3))).collect()
}

pub(super) async fn backlog(client: &Client, count_max: u64) -> Result<Backlog> {
    let most = i64::try_from(count_max).unwrap_or(i64::MAX);
    let rows = client.rows(sql::backlog, &[&most]).await?;
    let row = rows.first().ok_or_else(|| corrupt("the backlog", "no row"))?;
    Ok(Backlog {
        waiting: row.get::<_, i64>(0).unsigned_abs(),
        oldest_at: row.get::<_, Option<i64>>(1).map(Time),
        poisoned: row.get::<_, i64>(2).unsigned_abs(),
    })
}

pub(super) async fn open_incident(
    db: &impl Run,
    id: Uuid,
    source: IncidentSource,
    subject: &str,
    reason: &str,
    now: Time,
) -> Result<()> {
    db.rows(sql::open_incident, &[&id, &source.as_str(), &subject, &reason, &now.0]).await.map(drop)
}

pub(super) async fn close_incident(
    db: &impl Run,
    source: IncidentSource,
    subject: &str,
    now: Time,
) -> Result<()> {
    db.rows(sql::close_incident, &[&source.as_str(), &subject, &now.0]).await.map(drop)
}

pub(super) async fn incidents(client: &Client, closed: bool, limit: usize) -> Result<Vec<Incident>> {
    let rows = client.rows(sql::incidents, &[&closed, &count(limit)]).await?;
    Ok(rows
        .iter()
        .map(|row| {
            Incident::from(IncidentRead {
                id: row.get(0),
                source: row.get(1),
                subject: row.get(2),
                reason: row.get(3),
                opened_at_ms: row.get(4),
                seen_at_ms: row.get(5),
                times: row.get(6),
                closed_at_ms: row.get(7),
            })
        })
        .collect())
}

fn stored(rows: &[Row]) -> Result<Vec<StoredEvent>> {
    rows.iter().map(|row| rows::stored_event(read(row))).collect()
}

fn read(row: &Row) -> EventRead {
    EventRead {
        id: row.get(0),
        type_name: row.get(1),
        tenant: row.get(2),
        subject: row.get(3),
        occurred_at_ms: row.get(4),
        data: row.get(5),
        seq: row.get(6),
        recorded_at_ms: row.get(7),
        state: row.get(8),
        due_at_ms: row.get(9),
        failures: row.get(10),
        settled_at_ms: row.get(11),
        reason: row.get(12),
        became: row.get(13),
    }
}
