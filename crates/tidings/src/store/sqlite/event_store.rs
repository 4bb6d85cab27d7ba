//! The promises about events, on SQLite: each verb on the writer or on a reader.

use super::{SqliteStore, events};
use crate::store::StoreError;
use crate::store::outbox::{
    Batch, EventFilter, EventStore, FanOut, Incident, IncidentSource, KeptKind, NewEvent, Passed, Recorded,
    StoredEvent,
};
use async_trait::async_trait;
use std::sync::Arc;
use tidings_core::event::{EventId, EventType};
use tidings_core::relay::{Backlog, RelayState};
use tidings_core::route::Subscription;
use tidings_core::time::Time;
use uuid::Uuid;

#[async_trait]
impl EventStore for SqliteStore {
    async fn record(&self, new: Vec<NewEvent>, now: Time) -> Result<Vec<Recorded>, StoreError> {
        self.writer.write(move |db| events::record(db, new, now)).await
    }

    async fn record_together(&self, new: Vec<NewEvent>, now: Time) -> Result<Vec<Recorded>, StoreError> {
        self.writer.write(move |db| events::record_together(db, new, now)).await
    }

    async fn fan_out(&self, batch: Batch, now: Time, plan: Arc<dyn FanOut>) -> Result<Passed, StoreError> {
        self.writer.write(move |db| events::fan_out(db, batch, now, &*plan)).await
    }

    async fn save_event(
        &self,
        read: &StoredEvent,
        state: &RelayState,
        incident: Uuid,
        now: Time,
    ) -> Result<bool, StoreError> {
        let (read, state) = (read.clone(), state.clone());
        self.writer.write(move |db| events::save_event(db, &read, &state, incident, now)).await
    }

    async fn set_aside_unreadable(
        &self,
        id: EventId,
        reason: &str,
        incident: Uuid,
        now: Time,
    ) -> Result<bool, StoreError> {
        let reason = reason.to_owned();
        self.writer.write(move |db| events::set_aside_unreadable(db, id, &reason, incident, now)).await
    }

    async fn events(&self, ids: &[EventId]) -> Result<Vec<Option<StoredEvent>>, StoreError> {
        let ids = ids.to_vec();
        self.read(move |db| ids.iter().map(|id| events::event(db, *id)).collect()).await
    }

    async fn list_events(&self, filter: &EventFilter) -> Result<Vec<StoredEvent>, StoreError> {
        let filter = filter.clone();
        self.read(move |db| events::list(db, &filter)).await
    }

    async fn declare_event_types(&self, types: &[EventType], now: Time) -> Result<(), StoreError> {
        let types = types.to_vec();
        self.writer.write(move |db| events::declare_types(db, &types, now)).await
    }

    async fn event_types(&self) -> Result<Vec<EventType>, StoreError> {
        self.read(events::types).await
    }

    async fn keep_subscriptions(&self, subscriptions: &[Subscription]) -> Result<(), StoreError> {
        let subscriptions = subscriptions.to_vec();
        self.writer.write(move |db| events::keep_subscriptions(db, &subscriptions)).await
    }

    async fn remove_subscription(&self, name: &str) -> Result<(), StoreError> {
        let name = name.to_owned();
        self.writer.write(move |db| events::remove_subscription(db, &name)).await
    }

    async fn subscriptions(&self) -> Result<Vec<Subscription>, StoreError> {
        self.read(events::subscriptions).await
    }

    async fn keep_kinds(&self, kinds: &[KeptKind]) -> Result<(), StoreError> {
        let kinds = kinds.to_vec();
        self.writer.write(move |db| events::keep_kinds(db, &kinds)).await
    }

    async fn kept_kinds(&self) -> Result<Vec<KeptKind>, StoreError> {
        self.read(events::kept_kinds).await
    }

    async fn backlog(&self, count_max: u64) -> Result<Backlog, StoreError> {
        self.read(move |db| events::backlog(db, count_max)).await
    }

    async fn open_incident(
        &self,
        id: Uuid,
        source: IncidentSource,
        subject: &str,
        reason: &str,
        now: Time,
    ) -> Result<(), StoreError> {
        let (subject, reason) = (subject.to_owned(), reason.to_owned());
        self.writer.write(move |db| events::open_incident(db, id, source, &subject, &reason, now)).await
    }

    async fn close_incident(
        &self,
        source: IncidentSource,
        subject: &str,
        now: Time,
    ) -> Result<(), StoreError> {
        let subject = subject.to_owned();
        self.writer.write(move |db| events::close_incident(db, source, &subject, now)).await
    }

    async fn incidents(&self, closed: bool, limit: usize) -> Result<Vec<Incident>, StoreError> {
        self.read(move |db| events::incidents(db, closed, limit)).await
    }
}
