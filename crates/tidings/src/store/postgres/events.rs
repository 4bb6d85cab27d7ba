//! What the store's verbs about events do to Postgres.

use super::keys::take_keys;
use super::verbs::{Result, Run, Values, corrupt, count, insert_on};
use crate::store::StoreError;
use crate::store::event_rows::{self as rows, EventRead, IncidentRead};
use crate::store::insert::Plan as InsertPlan;
use crate::store::outbox::{
    Batch, EventFilter, FanOut, Incident, IncidentSource, KeptKind, NewEvent, Passed, Recorded, StoredEvent,
};
use crate::store::sql::postgres as sql;
use deadpool_postgres::Client;
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

/// All, or none where one is refused.
pub(super) async fn record_whole(
    client: &mut Client,
    events: Vec<NewEvent>,
    now: Time,
) -> Result<Vec<Recorded>> {
    let tx = client.transaction().await.map_err(StoreError::from)?;
    let recorded = record_on(&tx, events, now).await?;
    let end = if recorded.iter().any(Recorded::is_refused) { tx.rollback().await } else { tx.commit().await };
    end.map_err(StoreError::from)?;
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
    let locked = match batch {
        Batch::Due(limit) => tx.rows(sql::take_events, &[&now.0, &count(limit)]).await?,
        Batch::One(id) => tx.rows(sql::lock_event, &[&id.0]).await?,
    };
    let events = stored(&locked)?;
    let plain: Vec<Event> = events.iter().map(|stored| stored.event.clone()).collect();
    let plans = match plan.plan(&plain, now) {
        Ok(plans) => plans,
        Err(reason) => return Ok(Passed::Failed { events, reason }),
    };
    let became: Vec<String> = plans.iter().map(|plan| plan.became.clone()).collect();
    let jobs: Vec<_> = plans.into_iter().flat_map(|plan| plan.jobs).collect();
    let queues: BTreeSet<String> = jobs.iter().map(|new| new.job.queue.clone()).collect();
    let ids: Vec<Uuid> = plain.iter().map(|event| event.id.0).collect();
    if !ids.is_empty() {
        insert_on(&tx, InsertPlan::new(jobs)).await?;
        tx.rows(sql::mark_events, &[&ids, &now.0, &became]).await?;
    }
    tx.commit().await.map_err(StoreError::from)?;
    Ok(Passed::Done { events: ids.into_iter().map(EventId).collect(), queues: queues.into_iter().collect() })
}

pub(super) async fn save_event(client: &Client, read: &StoredEvent, state: &RelayState) -> Result<bool> {
    let (before, after) = (rows::relay_columns(&read.state), rows::relay_columns(state));
    let statement = client.prepare_cached(sql::save_event).await.map_err(StoreError::from)?;
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
    Ok(client.execute(&statement, values).await.map_err(StoreError::from)? == 1)
}

pub(super) async fn events(client: &Client, ids: &[EventId]) -> Result<Vec<Option<StoredEvent>>> {
    let wanted: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let found = stored(&client.rows(sql::load_events, &[&wanted]).await?)?;
    let found: HashMap<EventId, StoredEvent> =
        found.into_iter().map(|stored| (stored.event.id, stored)).collect();
    Ok(ids.iter().map(|id| found.get(id).cloned()).collect())
}

pub(super) async fn list(client: &Client, filter: &EventFilter) -> Result<Vec<StoredEvent>> {
    let before = filter.before.map_or(Uuid::max(), |id| id.0);
    let limit = count(filter.limit);
    let values: Values<'_> =
        &[&filter.state, &filter.type_name, &filter.subject, &filter.tenant, &before, &limit];
    stored(&client.rows(sql::list_events, values).await?)
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

pub(super) async fn subscriptions(client: &Client) -> Result<Vec<Subscription>> {
    let kept = client.rows(sql::subscriptions, &[]).await?;
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

pub(super) async fn kept_kinds(client: &Client) -> Result<Vec<KeptKind>> {
    let kept = client.rows(sql::kept_kinds, &[]).await?;
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
    client: &Client,
    id: Uuid,
    source: IncidentSource,
    subject: &str,
    reason: &str,
    now: Time,
) -> Result<()> {
    client.rows(sql::open_incident, &[&id, &source.as_str(), &subject, &reason, &now.0]).await.map(drop)
}

pub(super) async fn close_incident(
    client: &Client,
    source: IncidentSource,
    subject: &str,
    now: Time,
) -> Result<()> {
    client.rows(sql::close_incident, &[&source.as_str(), &subject, &now.0]).await.map(drop)
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
