//! What an application, the API and the command line do with events: record them,
//! look at them, declare what there may be and who gets it.
//!
//! Recording is durable when the call returns; in the caller's own transaction it
//! commits with the caller's change, see `enqueue_in_…` and `record_in_…` of [`Tidings`].
//!
//! Absent on purpose: fanning out, which every process with workers does.

use crate::client::Tidings;
use crate::enqueue::IDEMPOTENCY_KEPT;
use crate::random;
use crate::store::outbox::{EventFilter, Incident, NewEvent, Recorded, StoredEvent};
use crate::store::{Idempotency, StoreError};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::time::Duration;
use tidings_core::event::{Event, EventId, EventRefused, EventType, TypeName, check_text};
use tidings_core::id::JobId;
use tidings_core::limits;
use tidings_core::relay::{BACKLOG_WAITING_MAX, Backlog, RelayState};
use tidings_core::route::{RouteRefused, Subscription};
use tidings_core::time::Time;
use tidings_core::unique::KeyHash;

/// An event and how it is to be recorded.
#[derive(Clone, Debug)]
pub struct Record {
    type_name: String,
    data: Result<String, String>,
    subject: String,
    tenant: String,
    key: Option<String>,
    occurred_at: Option<Time>,
}

/// An event as the SQL function is told of it.
#[cfg(feature = "sqlx")]
pub(crate) struct Said {
    pub(crate) type_name: String,
    pub(crate) subject: String,
    /// JSON text.
    pub(crate) data: String,
    pub(crate) tenant: String,
    pub(crate) key: Option<String>,
    pub(crate) occurred_at: Option<Time>,
}

/// What a caller gets for an event that was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventReceipt {
    /// The event.
    pub id: EventId,
    /// The call was made before, with the same key.
    pub existing: bool,
}

/// What a wait for a fan-out came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FannedOut {
    /// The jobs that the event became.
    Jobs(Vec<JobId>),
    /// Not yet: its state can be read by this receipt.
    Receipt(EventReceipt),
}

/// Why an event was not recorded, or a declaration not made.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RecordRefused {
    /// At the door.
    #[error(transparent)]
    Event(#[from] EventRefused),
    /// A subscription that cannot be.
    #[error(transparent)]
    Route(#[from] RouteRefused),
    /// The data does not become JSON.
    #[error("data does not become JSON: {0}")]
    Unserializable(String),
    /// The idempotency key was used for another call.
    #[error("the key was used for another event, {0}; use a fresh key for a new event")]
    KeyReused(EventId),
    /// Too many events in one call.
    #[error("{given} events in one call; at most {most} are taken", most = limits::BATCH_MAX)]
    BatchTooLarge {
        /// How many.
        given: usize,
    },
    /// One of several events.
    #[error("[{index}]: {refused}")]
    InBatch {
        /// Which, from 0.
        index: usize,
        /// Why.
        refused: Box<RecordRefused>,
    },
    /// No event of that id, or it is past its retention.
    #[error("there is no event {0}; events that are fanned out are kept for a time only")]
    NoSuchEvent(EventId),
    /// Put back what is not set aside.
    #[error("{0} is not set aside, so there is nothing to put back")]
    NotPoisoned(EventId),
    /// The database did not take it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Record {
    /// An event of a declared type with its data.
    pub fn new(type_name: impl Into<String>, data: &impl Serialize) -> Record {
        Record::with_data(type_name, serde_json::to_string(data).map_err(|error| error.to_string()))
    }

    /// An event whose data is JSON text; its bytes are kept exactly.
    pub fn json(type_name: impl Into<String>, data: impl Into<String>) -> Record {
        Record::with_data(type_name, Ok(data.into()))
    }

    fn with_data(type_name: impl Into<String>, data: Result<String, String>) -> Record {
        let type_name = type_name.into();
        Record {
            type_name,
            data,
            subject: String::new(),
            tenant: String::new(),
            key: None,
            occurred_at: None,
        }
    }

    /// To what it happened, like `note/42`.
    #[must_use]
    pub fn subject(mut self, subject: impl Into<String>) -> Record {
        self.subject = subject.into();
        self
    }

    /// Whose it is.
    #[must_use]
    pub fn tenant(mut self, tenant: impl Into<String>) -> Record {
        self.tenant = tenant.into();
        self
    }

    /// Once, however often it is called with this key.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Record {
        self.key = Some(key.into());
        self
    }

    /// When it happened, if not now.
    #[must_use]
    pub fn occurred_at(mut self, at: Time) -> Record {
        self.occurred_at = Some(at);
        self
    }

    /// As the SQL function is told of it, which checks it.
    #[cfg(feature = "sqlx")]
    pub(crate) fn said(self) -> Result<Said, RecordRefused> {
        let data = self.data.map_err(RecordRefused::Unserializable)?;
        let Record { type_name, subject, tenant, key, occurred_at, .. } = self;
        Ok(Said { type_name, subject, data, tenant, key, occurred_at })
    }

    /// Checked, under a fresh id.
    pub(crate) fn admit(self, declared: &[TypeName], now: Time) -> Result<NewEvent, RecordRefused> {
        let data = self.data.map_err(RecordRefused::Unserializable)?;
        let type_name = TypeName::new(&self.type_name)?;
        if !declared.contains(&type_name) {
            let known = declared.iter().map(TypeName::as_str).collect::<Vec<_>>().join(", ");
            return Err(EventRefused::UndeclaredType { type_name: type_name.to_string(), known }.into());
        }
        let event = Event {
            id: EventId(random::job_id(now).0),
            type_name,
            tenant: self.tenant,
            subject: self.subject,
            occurred_at: self.occurred_at.unwrap_or(now),
            data,
        };
        event.check()?;
        let idempotency = match self.key {
            Some(key) => Some(idempotency(&event, &key, now)?),
            None => None,
        };
        Ok(NewEvent { event, idempotency })
    }
}

fn idempotency(event: &Event, key: &str, now: Time) -> Result<Idempotency, EventRefused> {
    if key.is_empty() {
        let problem = "is empty; leave it out instead".to_owned();
        return Err(EventRefused::BadField { field: "key", problem });
    }
    check_text("key", key, limits::KEY_BYTES_MAX)?;
    Ok(Idempotency {
        key_hash: KeyHash::of(key),
        fingerprint: fingerprint(event),
        expires_at: now + IDEMPOTENCY_KEPT,
    })
}

/// What makes two calls the same: type, subject and data, each with its length in
/// eight bytes before it, hashed. `tidings.record` in SQL does the same.
pub(crate) fn fingerprint(event: &Event) -> KeyHash {
    let mut hash = Sha256::new();
    for part in [event.type_name.as_str(), &event.subject, &event.data] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    KeyHash(hash.finalize().into())
}

/// Each of several, or the first refusal with its place.
fn each<T, R>(all: Vec<T>, one: impl Fn(T) -> Result<R, RecordRefused>) -> Result<Vec<R>, RecordRefused> {
    let placed = |(index, item)| {
        one(item).map_err(|refused| RecordRefused::InBatch { index, refused: Box::new(refused) })
    };
    all.into_iter().enumerate().map(placed).collect()
}

/// What the recording of one event means for its caller.
pub(crate) fn receipt(recorded: Recorded) -> Result<EventReceipt, RecordRefused> {
    match recorded {
        Recorded::New(id) => Ok(EventReceipt { id, existing: false }),
        Recorded::Existing(id) => Ok(EventReceipt { id, existing: true }),
        Recorded::KeyReused(id) => Err(RecordRefused::KeyReused(id)),
    }
}

impl Tidings {
    /// Records an event. It is committed when this returns.
    ///
    /// # Errors
    /// When its type is not declared, it is refused at the door, or the database does not take it.
    pub async fn record(&self, record: Record) -> Result<EventReceipt, RecordRefused> {
        let declared = self.declared_names(std::slice::from_ref(&record)).await?;
        let new = record.admit(&declared, self.now())?;
        let recorded = self.write_events(vec![new]).await?;
        self.parts.wakes.recorded();
        recorded.into_iter().next().map_or_else(
            || Err(RecordRefused::Store(StoreError::Unavailable("the recording gave no answer".into()))),
            receipt,
        )
    }

    /// Records up to [`limits::BATCH_MAX`] events in one transaction: all or none.
    ///
    /// # Errors
    /// The first event that is refused, as [`RecordRefused::InBatch`], or that the
    /// database does not take them.
    pub async fn record_all(&self, records: Vec<Record>) -> Result<Vec<EventReceipt>, RecordRefused> {
        if records.len() > limits::BATCH_MAX {
            return Err(RecordRefused::BatchTooLarge { given: records.len() });
        }
        let declared = self.declared_names(&records).await?;
        let now = self.now();
        let new = each(records, |record| record.admit(&declared, now))?;
        let recorded = if new.len() > 1 && new.iter().any(|new| new.idempotency.is_some()) {
            // By itself: one key that was used for something else undoes all of it.
            self.parts.store.record_together(new, now).await?
        } else {
            self.write_events(new).await?
        };
        self.parts.wakes.recorded();
        each(recorded, receipt)
    }

    /// Says that events were committed elsewhere, for example in a caller's own
    /// transaction. Only a hint: a poll would find them too.
    pub fn wake_relay(&self) {
        self.parts.wakes.recorded();
    }

    /// Waits until the event is fanned out, at most `at_most`; then its receipt.
    ///
    /// # Errors
    /// When there is no such event, or the database cannot be read.
    pub async fn await_fanout(&self, id: EventId, at_most: Duration) -> Result<FannedOut, RecordRefused> {
        let look = || async move {
            let event = self.event(id).await?.ok_or(RecordRefused::NoSuchEvent(id))?;
            Ok::<_, RecordRefused>(matches!(event.state, RelayState::FannedOut { .. }).then_some(event))
        };
        Ok(match self.waits.until(&self.parts.wakes, id.0, at_most, look).await? {
            Some(event) => FannedOut::Jobs(jobs_of(&event)),
            None => FannedOut::Receipt(EventReceipt { id, existing: true }),
        })
    }

    /// The event as it stands, or `None` where there is none of that id.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn event(&self, id: EventId) -> Result<Option<StoredEvent>, StoreError> {
        Ok(self.parts.store.events(&[id]).await?.into_iter().next().flatten())
    }

    /// Events, newest first.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn events(&self, filter: &EventFilter) -> Result<Vec<StoredEvent>, StoreError> {
        self.parts.store.list_events(filter).await
    }

    /// Puts an event that was set aside back, and closes its incident.
    ///
    /// # Errors
    /// When there is no such event, or it is not set aside.
    pub async fn requeue(&self, id: EventId) -> Result<(), RecordRefused> {
        let stored = self.event(id).await?.ok_or(RecordRefused::NoSuchEvent(id))?;
        let now = self.now();
        let state = stored.state.requeued(now).ok_or(RecordRefused::NotPoisoned(id))?;
        if !self.parts.store.save_event(&stored, &state, random::job_id(now).0, now).await? {
            return Err(RecordRefused::NotPoisoned(id));
        }
        self.parts.wakes.recorded();
        Ok(())
    }

    /// Declares event types and subscriptions, for every process on this database.
    ///
    /// # Errors
    /// When a subscription cannot be, or matches no declared type.
    pub async fn declare(
        &self,
        types: &[EventType],
        subscriptions: &[Subscription],
    ) -> Result<(), RecordRefused> {
        self.parts.store.declare_event_types(types, self.now()).await?;
        let declared = self.declare_known().await?;
        for subscription in subscriptions {
            subscription.check(&declared)?;
        }
        Ok(self.parts.store.keep_subscriptions(subscriptions).await?)
    }

    /// Forgets a subscription. Events that it matched stay what they are.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn unsubscribe(&self, name: &str) -> Result<(), StoreError> {
        self.parts.store.remove_subscription(name).await
    }

    /// The declared event types.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn event_types(&self) -> Result<Vec<EventType>, StoreError> {
        self.parts.store.event_types().await
    }

    /// The subscriptions.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn subscriptions(&self) -> Result<Vec<Subscription>, StoreError> {
        self.parts.store.subscriptions().await
    }

    /// How many events wait, and since when; counted up to a bound.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn backlog(&self) -> Result<Backlog, StoreError> {
        self.parts.store.backlog(BACKLOG_WAITING_MAX + 1).await
    }

    /// Open incidents, newest first; closed ones too if asked for.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn incidents(&self, closed: bool, limit: usize) -> Result<Vec<Incident>, StoreError> {
        self.parts.store.incidents(closed, limit).await
    }

    /// The declared types as this process knows them; asked for again if one is missing.
    pub(crate) async fn declared_names(&self, records: &[Record]) -> Result<Vec<TypeName>, StoreError> {
        let known = self.parts.declared.get();
        let all_known =
            records.iter().all(|record| known.iter().any(|name| name.as_str() == record.type_name));
        if all_known { Ok(known) } else { self.declare_known().await }
    }

    pub(crate) async fn declare_known(&self) -> Result<Vec<TypeName>, StoreError> {
        let types = self.parts.store.event_types().await?;
        let names: Vec<TypeName> = types.into_iter().map(|declared| declared.name).collect();
        self.parts.declared.set(names.clone());
        Ok(names)
    }
}

/// The jobs that an event became, as its record says.
pub fn jobs_of(event: &StoredEvent) -> Vec<JobId> {
    #[derive(serde::Deserialize)]
    struct Became {
        #[serde(default)]
        jobs: Vec<JobId>,
    }
    let became: Vec<Became> =
        event.became.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    became.into_iter().flat_map(|became| became.jobs).collect()
}
