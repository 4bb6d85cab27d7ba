//! A database whose answer is lost after it wrote: the connection breaks between the
//! commit and its confirmation, and the worker cannot know whether it was done.

use crate::fixture::*;
use async_trait::async_trait;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tidings::core::event::{EventId, EventType};
use tidings::core::fact::Act;
use tidings::core::job::Job;
use tidings::core::relay::{Backlog, RelayState};
use tidings::core::route::Subscription;
use tidings::store::outbox::{
    Batch, EventFilter, EventStore, FanOut, Incident, IncidentSource, KeptKind, NewEvent, Passed, Recorded,
    StoredEvent,
};
use tidings::store::{
    self, ApiKey, Change, Inserted, JobFilter, Logged, NewJob, OpenOptions, PausedQueue, Prune, Saved, Store,
    StoreError, Stored, Take, Taken, TermsOfKinds, Wake,
};
use tidings::{JobId, Outcome, Tidings, Time};

on_both_stores![a_report_whose_answer_was_lost_is_recorded_once];

/// Loses the answers to the first few saves.
struct Lossy {
    store: Arc<dyn Store>,
    to_lose: AtomicUsize,
}

async fn a_report_whose_answer_was_lost_is_recorded_once(db: Database) {
    for (outcome, expected) in [
        (Outcome::Accepted, "completed"),
        (Outcome::retryable("503"), "retryable"),
        (Outcome::discard("410"), "discarded"),
        (Outcome::unknown("no answer"), "unknown"),
    ] {
        let store = store::open(&db.address, &OpenOptions::default()).await.unwrap();
        let lossy = Arc::new(Lossy { store, to_lose: AtomicUsize::new(2) });
        let clock = Arc::new(tidings::clock::HandClock::at(NOW));
        let builder = Tidings::builder().kind::<Letter, _, _, _>(Script::new([outcome]), play);
        let tidings = builder.on(lossy.clone(), clock).unwrap();
        let workers = tidings.work().await.unwrap();
        let id = tidings.enqueue(Letter::new("a")).await.unwrap().id;
        soon("the report is written", async {
            while lossy.to_lose.load(Ordering::SeqCst) > 1 || state(&tidings, id).await == "running" {
                tokio::task::yield_now().await;
            }
        })
        .await;
        workers.stop().await;
        let view = view(&tidings, id).await;
        assert_eq!(view.job.state.name().as_str(), expected);
        assert_eq!(
            (view.attempts.len(), view.events.len()),
            (1, 0),
            "once, and not as a late report: {view:?}"
        );
    }
}

#[async_trait]
impl Store for Lossy {
    async fn save(&self, changes: Vec<Change>) -> Result<Vec<Saved>, StoreError> {
        let saved = self.store.save(changes).await?;
        let lost = self.to_lose.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        match lost {
            Ok(_) => Err(StoreError::Unavailable("the connection was closed".into())),
            Err(_) => Ok(saved),
        }
    }

    async fn now(&self) -> Result<Time, StoreError> {
        self.store.now().await
    }
    async fn insert(&self, jobs: Vec<NewJob>) -> Result<Vec<Inserted>, StoreError> {
        self.store.insert(jobs).await
    }
    async fn load(&self, ids: &[JobId]) -> Result<Vec<Option<Stored>>, StoreError> {
        self.store.load(ids).await
    }
    async fn take_due(&self, take: &Take) -> Result<Taken, StoreError> {
        self.store.take_due(take).await
    }
    async fn sweep(
        &self,
        now: Time,
        queues: &[String],
        limit: usize,
        terms: &Arc<TermsOfKinds>,
    ) -> Result<Vec<Change>, StoreError> {
        self.store.sweep(now, queues, limit, terms).await
    }
    async fn history(&self, ids: &[JobId]) -> Result<Vec<Vec<Logged>>, StoreError> {
        self.store.history(ids).await
    }
    async fn list(&self, filter: &JobFilter) -> Result<Vec<Job>, StoreError> {
        self.store.list(filter).await
    }
    async fn pause(&self, queue: &str, at: Time, act: &Act) -> Result<(), StoreError> {
        self.store.pause(queue, at, act).await
    }
    async fn resume(&self, queue: &str) -> Result<(), StoreError> {
        self.store.resume(queue).await
    }
    async fn paused(&self) -> Result<Vec<PausedQueue>, StoreError> {
        self.store.paused().await
    }
    async fn prune(&self, what: Prune, limit: usize) -> Result<u64, StoreError> {
        self.store.prune(what, limit).await
    }
    async fn keep_policy(&self, name: &str, version: u32, body: &str) -> Result<String, StoreError> {
        self.store.keep_policy(name, version, body).await
    }
    async fn add_api_key(&self, key: &ApiKey, at: Time) -> Result<(), StoreError> {
        self.store.add_api_key(key, at).await
    }
    async fn api_keys(&self) -> Result<Vec<ApiKey>, StoreError> {
        self.store.api_keys().await
    }
    async fn announce(&self, wakes: &[Wake]) -> Result<(), StoreError> {
        self.store.announce(wakes).await
    }
    fn listen(&self) -> Option<tokio::sync::mpsc::Receiver<Wake>> {
        self.store.listen()
    }
    fn pool_size(&self) -> Option<usize> {
        self.store.pool_size()
    }
    fn backend(&self) -> &'static str {
        self.store.backend()
    }
    async fn keep_house(&self, now: Time) -> Result<(), StoreError> {
        self.store.keep_house(now).await
    }
}

#[async_trait]
impl EventStore for Lossy {
    async fn record(&self, events: Vec<NewEvent>, now: Time) -> Result<Vec<Recorded>, StoreError> {
        self.store.record(events, now).await
    }
    async fn record_together(&self, events: Vec<NewEvent>, now: Time) -> Result<Vec<Recorded>, StoreError> {
        self.store.record_together(events, now).await
    }
    async fn fan_out(&self, batch: Batch, now: Time, plan: Arc<dyn FanOut>) -> Result<Passed, StoreError> {
        self.store.fan_out(batch, now, plan).await
    }
    async fn save_event(
        &self,
        read: &StoredEvent,
        state: &RelayState,
        incident: uuid::Uuid,
        now: Time,
    ) -> Result<bool, StoreError> {
        self.store.save_event(read, state, incident, now).await
    }
    async fn set_aside_unreadable(
        &self,
        id: EventId,
        reason: &str,
        incident: uuid::Uuid,
        now: Time,
    ) -> Result<bool, StoreError> {
        self.store.set_aside_unreadable(id, reason, incident, now).await
    }
    async fn events(&self, ids: &[EventId]) -> Result<Vec<Option<StoredEvent>>, StoreError> {
        self.store.events(ids).await
    }
    async fn list_events(&self, filter: &EventFilter) -> Result<Vec<StoredEvent>, StoreError> {
        self.store.list_events(filter).await
    }
    async fn declare_event_types(&self, types: &[EventType], now: Time) -> Result<(), StoreError> {
        self.store.declare_event_types(types, now).await
    }
    async fn event_types(&self) -> Result<Vec<EventType>, StoreError> {
        self.store.event_types().await
    }
    async fn keep_subscriptions(&self, subscriptions: &[Subscription]) -> Result<(), StoreError> {
        self.store.keep_subscriptions(subscriptions).await
    }
    async fn remove_subscription(&self, name: &str) -> Result<(), StoreError> {
        self.store.remove_subscription(name).await
    }
    async fn subscriptions(&self) -> Result<Vec<Subscription>, StoreError> {
        self.store.subscriptions().await
    }
    async fn keep_kinds(&self, kinds: &[KeptKind]) -> Result<(), StoreError> {
        self.store.keep_kinds(kinds).await
    }
    async fn kept_kinds(&self) -> Result<Vec<KeptKind>, StoreError> {
        self.store.kept_kinds().await
    }
    async fn backlog(&self, count_max: u64) -> Result<Backlog, StoreError> {
        self.store.backlog(count_max).await
    }
    async fn open_incident(
        &self,
        id: uuid::Uuid,
        source: IncidentSource,
        subject: &str,
        reason: &str,
        now: Time,
    ) -> Result<(), StoreError> {
        self.store.open_incident(id, source, subject, reason, now).await
    }
    async fn close_incident(
        &self,
        source: IncidentSource,
        subject: &str,
        now: Time,
    ) -> Result<(), StoreError> {
        self.store.close_incident(source, subject, now).await
    }
    async fn incidents(&self, closed: bool, limit: usize) -> Result<Vec<Incident>, StoreError> {
        self.store.incidents(closed, limit).await
    }
}
