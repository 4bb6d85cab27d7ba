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
    /// Whether it is not there, nor was before.
    pub(super) fn is_refused(&self) -> bool {
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

/// What the database knows that a plan goes by. It is read after the events were
/// locked: a subscription that was there before an event was recorded gets it.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Who gets which events, by name.
    pub subscriptions: Vec<Subscription>,
    /// The kinds that some program carries out, by name.
    pub kinds: Vec<KeptKind>,
}

/// Decides what events become. Called inside the store's transaction, with the
/// events locked, in the order in which they were written; one plan for each.
pub trait FanOut: Send + Sync {
    /// The plans. It must be quick, and must not panic.
    ///
    /// # Errors
    /// Why these events cannot be fanned out: nothing is written then.
    fn plan(&self, events: &[Event], known: &Known, now: Time) -> Result<Vec<Plan>, Unplanned>;
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unplanned {
    /// This program lacks something that another one has: the events are left to it.
    NotHere(String),
    /// Something is wrong with these events, or with what they are to become.
    Failed(String),
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
        /// In the order in which they were written.
        events: Vec<EventId>,
        /// Each once.
        queues: Vec<String>,
        /// When the next one is due that is not due yet, if there is one.
        next_due: Option<Time>,
    },
    /// Rows that do not read as events, a newer program's or a hand's: to be set aside
    /// first. Everything is as it was.
    Unreadable(Vec<(EventId, String)>),
    /// This program lacks something: the events are as they were.
    LeftAlone {
        /// What.
        reason: String,
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

    /// The same, but nothing at all if the key of one was used for something else.
    async fn record_together(&self, events: Vec<NewEvent>, now: Time) -> Result<Vec<Recorded>, StoreError>;

    /// One pass: locks events, has them planned, inserts the jobs and marks the
    /// events, all in one transaction. An event is fanned out by one caller only.
    async fn fan_out(&self, batch: Batch, now: Time, plan: Arc<dyn FanOut>) -> Result<Passed, StoreError>;

    /// Writes a new state over the one that was read; whether that was still there. In
    /// the same transaction an incident is opened for an event that is set aside, under
    /// the id `incident`, and that of one that is put back is closed.
    async fn save_event(
        &self,
        read: &StoredEvent,
        state: &RelayState,
        incident: Uuid,
        now: Time,
    ) -> Result<bool, StoreError>;

    /// Sets a row aside that waits and does not read as an event, and opens its incident;
    /// whether it still waited.
    async fn set_aside_unreadable(
        &self,
        id: EventId,
        reason: &str,
        incident: Uuid,
        now: Time,
    ) -> Result<bool, StoreError>;

    /// The events, in the order asked for.
    async fn events(&self, ids: &[EventId]) -> Result<Vec<Option<StoredEvent>>, StoreError>;

    /// Events, newest first. Rows that do not read as events are left out.
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
