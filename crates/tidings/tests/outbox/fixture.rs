//! An empty database with a clock in the test's hand, and kinds that keep what came.

use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tidings::clock::{Clock, HandClock};
use tidings::core::event::{EventId, EventType, Exposure, TypeName};
use tidings::core::relay::RelayState;
use tidings::core::route::Subscription;
use tidings::events::jobs_of;
use tidings::expand::Expanded;
use tidings::store::outbox::StoredEvent;
use tidings::store::{self, JobFilter, OpenOptions, Store};
use tidings::{
    Attempt, Builder, Declaration, FannedOut, JobId, Kind, Outcome, Record, Tidings, Time, testing,
};

pub(crate) const START: Time = Time(1_800_000_000_000);

/// What should happen in milliseconds and has not happened by then will not happen.
pub(crate) const NEVER: Duration = Duration::from_secs(20);

/// A database of its own, which goes with it.
pub(crate) struct Place {
    pub(crate) address: String,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<HandClock>,
    _folder: Option<tempfile::TempDir>,
    _database: Option<testkit::postgres::Database>,
}

impl Place {
    /// By the clock in the hand.
    pub(crate) fn tidings(&self, builder: Builder) -> Tidings {
        self.on(Arc::clone(&self.store), builder)
    }

    /// On another store than the place's own.
    pub(crate) fn on(&self, store: Arc<dyn Store>, builder: Builder) -> Tidings {
        let clock: Arc<dyn Clock> = Arc::<HandClock>::clone(&self.clock);
        builder.on(store, clock).unwrap()
    }

    /// As another process would, by the database's clock.
    pub(crate) async fn process(&self, builder: Builder) -> Tidings {
        builder.open(&self.address).await.unwrap()
    }
}

pub(crate) async fn sqlite() -> Place {
    let folder = tempfile::tempdir().unwrap();
    let address = format!("sqlite:{}", folder.path().join("test.db").display());
    place(address, Some(folder), None).await
}

pub(crate) async fn postgres() -> Place {
    let database = testkit::postgres::database().await;
    place(database.url().to_owned(), None, Some(database)).await
}

async fn place(
    address: String,
    folder: Option<tempfile::TempDir>,
    database: Option<testkit::postgres::Database>,
) -> Place {
    let store = store::open(&address, &OpenOptions::default()).await.unwrap();
    Place { address, store, clock: Arc::new(HandClock::at(START)), _folder: folder, _database: database }
}

/// What became of an event that concerns a note: the job that keeps the search index in step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Index {
    pub(crate) id: String,
    pub(crate) subject: String,
    pub(crate) data: serde_json::Value,
}

impl Kind for Index {
    const DECLARATION: Declaration = Declaration::new("search.index");
}

/// One delivery of the sort that webhooks make: who gets which event.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Deliver {
    pub(crate) to: String,
    pub(crate) event: String,
}

impl Kind for Deliver {
    const DECLARATION: Declaration = Declaration::new("deliver");
}

/// What handlers were given.
pub(crate) type Seen<K> = Arc<Mutex<Vec<K>>>;

/// A handler that keeps what came.
pub(crate) async fn keep<K: Send>(seen: Seen<K>, attempt: Attempt<K>) -> Outcome {
    seen.lock().unwrap().push(attempt.args);
    Outcome::Accepted
}

pub(crate) fn seen<K: Clone>(seen: &Seen<K>) -> Vec<K> {
    seen.lock().unwrap().clone()
}

pub(crate) fn internal(name: &str) -> EventType {
    EventType { name: TypeName::new(name).unwrap(), description: String::new(), exposure: Exposure::Internal }
}

/// Changes of notes go to the index; the latest of a note stands for those before it.
pub(crate) fn index_of_notes() -> Subscription {
    Subscription::to_job("index", "note.*", "search.index").unwrap().coalescing()
}

/// Tells the database which kinds there are, as workers do at their start, and which types
/// and subscriptions. The tests then drain by hand.
pub(crate) async fn declare(tidings: &Tidings, subscriptions: &[Subscription]) {
    tidings.work().await.unwrap().stop().await;
    tidings.declare(&[internal("note.changed"), internal("other.thing")], subscriptions).await.unwrap();
}

/// Delivers to these, each event to each.
pub(crate) fn to_each(
    receivers: &[&str],
) -> impl Fn(&tidings::core::event::Event) -> Result<Vec<Expanded>, String> + use<> {
    let receivers: Vec<String> = receivers.iter().map(|name| (*name).to_owned()).collect();
    move |event| {
        let deliver = |to: &String| Deliver { to: to.clone(), event: event.id.to_string() };
        let args = |to| serde_json::to_string(&deliver(to)).map_err(|error| error.to_string());
        receivers.iter().map(|to| Ok(Expanded { kind: "deliver".into(), args: args(to)? })).collect()
    }
}

pub(crate) fn note(number: usize) -> Record {
    Record::json("note.changed", format!(r#"{{"n":{number}}}"#)).subject(format!("note/{number}"))
}

pub(crate) async fn record(tidings: &Tidings, record: Record) -> EventId {
    tidings.record(record).await.unwrap().id
}

pub(crate) async fn event(tidings: &Tidings, id: EventId) -> StoredEvent {
    tidings.event(id).await.unwrap().expect("the event is there")
}

/// The jobs that an event became, as it says.
pub(crate) async fn jobs(tidings: &Tidings, id: EventId) -> Vec<JobId> {
    jobs_of(&event(tidings, id).await)
}

/// What each subscription made of an event, without the jobs' ids.
pub(crate) async fn became(tidings: &Tidings, id: EventId) -> serde_json::Value {
    let became = event(tidings, id).await.became.expect("it is fanned out");
    let mut became: serde_json::Value = serde_json::from_str(&became).unwrap();
    for one in became.as_array_mut().unwrap() {
        one.as_object_mut().unwrap().remove("jobs");
    }
    became
}

/// The arguments of every job of a kind, in the order in which the jobs were made.
pub(crate) async fn all_jobs<K: Kind>(tidings: &Tidings, kind: &str) -> Vec<K> {
    let filter = JobFilter { kind: kind.into(), limit: 100_000, ..JobFilter::default() };
    let ids: Vec<JobId> = tidings.jobs(&filter).await.unwrap().iter().rev().map(|job| job.id).collect();
    let stored = tidings.store().load(&ids).await.unwrap();
    stored.into_iter().flatten().map(|stored| serde_json::from_str(&stored.args).unwrap()).collect()
}

pub(crate) async fn relay(tidings: &Tidings) -> usize {
    testing::relay(tidings).await.unwrap()
}

pub(crate) async fn drain(tidings: &Tidings) -> usize {
    testing::drain(tidings).await.unwrap()
}

/// When an event that waits is looked at again, and why it waits.
pub(crate) async fn waiting(tidings: &Tidings, id: EventId) -> Option<(Time, u32, Option<String>)> {
    match event(tidings, id).await.state {
        RelayState::Waiting { due_at, failures, reason } => Some((due_at, failures, reason)),
        RelayState::FannedOut { .. } | RelayState::Poisoned { .. } => None,
    }
}

/// The jobs of an event, as soon as it is fanned out.
pub(crate) async fn fanned_out(tidings: &Tidings, id: EventId) -> Vec<JobId> {
    match tidings.await_fanout(id, NEVER).await.unwrap() {
        FannedOut::Jobs(jobs) => jobs,
        FannedOut::Receipt(_) => panic!("{id} was not fanned out: {:?}", event(tidings, id).await),
    }
}

/// Panics, with what was waited for, when it does not happen.
pub(crate) async fn soon<T>(what: &str, event: impl Future<Output = T>) -> T {
    tokio::time::timeout(NEVER, event).await.unwrap_or_else(|_| panic!("waited in vain: {what}"))
}
