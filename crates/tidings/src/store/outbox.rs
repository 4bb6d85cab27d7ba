//! What a store promises about events: recorded with the caller's change, fanned
//! out exactly once, set aside when they cannot be.
//!
//! A store does not route. It locks events, asks a [`FanOut`] what they become, and
//! writes the jobs and the marks in one transaction.
//!
//! Absent on purpose: a cursor. Rows that commit late would be lost behind it.

pub use super::terms::KeptKind;
use super::{Idempotency, NewJob, StoreError};
use async_trait::async_trait;
use std::sync::Arc;
use tidings_core::event::{Event, EventId, EventType};
use tidings_core::relay::{Backlog, RelayState};
use tidings_core::route::Subscription;
use tidings_core::time::Time;
use uuid::Uuid;

/// An event to record.
#[derive(Clone, Debug)]
pub struct NewEvent {
    /// Under a fresh id, checked at the door.
    pub event: Event,
    /// So that the same call twice records once.
    pub idempotency: Option<Idempotency>,
}

/// What became of a new event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// It is there.
    New(EventId),
    /// This call was made before: that event.
    Existing(EventId),
    /// The idempotency key was used for something else: that event.
    KeyReused(EventId),
}

impl Recorded {
    pub(crate) const fn is_refused(&self) -> bool {
        matches!(self, Recorded::KeyReused(_))
    }
}

/// An event as it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredEvent {
    /// What was recorded.
    pub event: Event,
    /// Its place in the order in which rows were written.
    pub seq: i64,
    /// When it was recorded, by the database's clock.
    pub recorded_at: Time,
    /// Where it stands.
    pub state: RelayState,
    /// What each subscription whose pattern matched made of it, as JSON text; absent
    /// before it is fanned out.
    pub became: Option<String>,
}

/// What one event becomes.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Jobs to insert.
    pub jobs: Vec<NewJob>,
    /// What each subscription whose pattern matched made of it, as JSON text.
    pub became: String,
}

/// Decides what events become. Called inside the store's transaction, with the
/// events locked, oldest first; one plan for each, in order.
pub trait FanOut: Send + Sync {
    /// The plans.
    ///
    /// # Errors
    /// Why these events cannot be fanned out, in words: nothing is written then.
    fn plan(&self, events: &[Event], now: Time) -> Result<Vec<Plan>, String>;
}

/// Which events to fan out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batch {
    /// Those that are due, at most this many.
    Due(usize),
    /// This one, whether it is due or not.
    One(EventId),
}

/// What a pass of the relay did.
#[derive(Clone, Debug, PartialEq)]
pub enum Passed {
    /// The events that are fanned out now, and the queues that got jobs.
    Done {
        /// In the order in which they were recorded.
        events: Vec<EventId>,
        /// Each once.
        queues: Vec<String>,
    },
    /// The plan failed: these events are as they were.
    Failed {
        /// Which.
        events: Vec<StoredEvent>,
        /// Why.
        reason: String,
    },
}

/// Which events to list. Empty text means any.
#[derive(Clone, Debug, Default)]
pub struct EventFilter {
    /// `waiting`, `fanned_out` or `poisoned`.
    pub state: String,
    /// Only this type.
    pub type_name: String,
    /// Only this subject.
    pub subject: String,
    /// Only this tenant.
    pub tenant: String,
    /// Only events whose id sorts before this one: the next page.
    pub before: Option<EventId>,
    /// At most this many, newest first.
    pub limit: usize,
}

/// What an incident is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncidentSource {
    /// An event that is set aside.
    Event,
    /// Events wait for too long, or too many of them.
    Backlog,
}

/// An open or closed problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incident {
    /// Names it.
    pub id: Uuid,
    /// What it is about.
    pub source: String,
    /// Which one.
    pub subject: String,
    /// What is wrong, in words.
    pub reason: String,
    /// When it began.
    pub opened_at: Time,
    /// When it was last seen.
    pub seen_at: Time,
    /// How often it was seen.
    pub times: i64,
    /// When it ended.
    pub closed_at: Option<Time>,
}

impl IncidentSource {
    /// The stored word.
    pub const fn as_str(self) -> &'static str {
        match self {
            IncidentSource::Event => "event",
            IncidentSource::Backlog => "backlog",
        }
    }
}

/// The promises about events.
#[async_trait]
pub trait EventStore: Send + Sync {
    /// Records all of them in one transaction, except those whose idempotency key
    /// was used before.
    async fn record(&self, events: Vec<NewEvent>, now: Time) -> Result<Vec<Recorded>, StoreError>;

    /// As [`EventStore::record`], or nothing at all where a key was used for something
    /// else: the answers then say which.
    async fn record_whole(&self, events: Vec<NewEvent>, now: Time) -> Result<Vec<Recorded>, StoreError>;

    /// One pass: locks events, has them planned, inserts the jobs and marks the
    /// events, all in one transaction. An event is fanned out by one caller only.
    async fn fan_out(&self, batch: Batch, now: Time, plan: Arc<dyn FanOut>) -> Result<Passed, StoreError>;

    /// Writes a new state over the one that was read; whether that was still there.
    async fn save_event(&self, read: &StoredEvent, state: &RelayState) -> Result<bool, StoreError>;

    /// The events, in the order asked for.
    async fn events(&self, ids: &[EventId]) -> Result<Vec<Option<StoredEvent>>, StoreError>;

    /// Events, newest first.
    async fn list_events(&self, filter: &EventFilter) -> Result<Vec<StoredEvent>, StoreError>;

    /// Declares types, or changes what is said of them.
    async fn declare_event_types(&self, types: &[EventType], now: Time) -> Result<(), StoreError>;

    /// The declared types, by name.
    async fn event_types(&self) -> Result<Vec<EventType>, StoreError>;

    /// Keeps subscriptions under their names.
    async fn keep_subscriptions(&self, subscriptions: &[Subscription]) -> Result<(), StoreError>;

    /// Forgets a subscription.
    async fn remove_subscription(&self, name: &str) -> Result<(), StoreError>;

    /// The subscriptions, by name.
    async fn subscriptions(&self) -> Result<Vec<Subscription>, StoreError>;

    /// Keeps what other programs may know of kinds.
    async fn keep_kinds(&self, kinds: &[KeptKind]) -> Result<(), StoreError>;

    /// The kinds that some program carries out, by name.
    async fn kept_kinds(&self) -> Result<Vec<KeptKind>, StoreError>;

    /// How many events wait, counted up to `count_max`, and since when.
    async fn backlog(&self, count_max: u64) -> Result<Backlog, StoreError>;

    /// Opens an incident under `id`, or notes that an open one of its subject was seen again.
    async fn open_incident(
        &self,
        id: Uuid,
        source: IncidentSource,
        subject: &str,
        reason: &str,
        now: Time,
    ) -> Result<(), StoreError>;

    /// Closes the open incident of a subject, if there is one.
    async fn close_incident(
        &self,
        source: IncidentSource,
        subject: &str,
        now: Time,
    ) -> Result<(), StoreError>;

    /// Incidents, newest first; closed ones too if asked for.
    async fn incidents(&self, closed: bool, limit: usize) -> Result<Vec<Incident>, StoreError>;
}
