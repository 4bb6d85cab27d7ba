//! The promises about events, on Postgres: each verb on one connection of the pool.

use super::{PostgresStore, events, give_back, on_client};
use crate::store::outbox::{
    Batch, EventFilter, EventStore, FanOut, Incident, IncidentSource, KeptKind, NewEvent, Passed, Recorded,
    StoredEvent,
};
use crate::store::{StoreError, retry};
use async_trait::async_trait;
use std::sync::Arc;
use tidings_core::event::{EventId, EventType};
use tidings_core::relay::{Backlog, RelayState};
use tidings_core::route::Subscription;
use tidings_core::time::Time;
use uuid::Uuid;

#[async_trait]
impl EventStore for PostgresStore {
    async fn record(&self, new: Vec<NewEvent>, now: Time) -> Result<Vec<Recorded>, StoreError> {
        on_client!(self, client => events::record_batch(client, new.clone(), now))
    }

    async fn record_together(&self, new: Vec<NewEvent>, now: Time) -> Result<Vec<Recorded>, StoreError> {
        on_client!(self, client => events::record_together(client, new.clone(), now))
    }

    async fn fan_out(&self, batch: Batch, now: Time, plan: Arc<dyn FanOut>) -> Result<Passed, StoreError> {
        on_client!(self, client => events::fan_out(client, batch, now, &*plan))
    }

    async fn save_event(
        &self,
        read: &StoredEvent,
        state: &RelayState,
        incident: Uuid,
        now: Time,
    ) -> Result<bool, StoreError> {
        on_client!(self, client => events::save_event(client, read, state, incident, now))
    }

    async fn set_aside_unreadable(
        &self,
        id: EventId,
        reason: &str,
        incident: Uuid,
        now: Time,
    ) -> Result<bool, StoreError> {
        on_client!(self, client => events::set_aside_unreadable(client, id, reason, incident, now))
    }

    async fn events(&self, ids: &[EventId]) -> Result<Vec<Option<StoredEvent>>, StoreError> {
        on_client!(self, client => events::events(client, ids))
    }

    async fn list_events(&self, filter: &EventFilter) -> Result<Vec<StoredEvent>, StoreError> {
        on_client!(self, client => events::list(client, filter))
    }

    async fn declare_event_types(&self, types: &[EventType], now: Time) -> Result<(), StoreError> {
        on_client!(self, client => events::declare_types(client, types, now))
    }

    async fn event_types(&self) -> Result<Vec<EventType>, StoreError> {
        on_client!(self, client => events::types(client))
    }

    async fn keep_subscriptions(&self, subscriptions: &[Subscription]) -> Result<(), StoreError> {
        on_client!(self, client => events::keep_subscriptions(client, subscriptions))
    }

    async fn remove_subscription(&self, name: &str) -> Result<(), StoreError> {
        on_client!(self, client => events::remove_subscription(client, name))
    }

    async fn subscriptions(&self) -> Result<Vec<Subscription>, StoreError> {
        on_client!(self, client => events::subscriptions(&*client))
    }

    async fn keep_kinds(&self, kinds: &[KeptKind]) -> Result<(), StoreError> {
        on_client!(self, client => events::keep_kinds(client, kinds))
    }

    async fn kept_kinds(&self) -> Result<Vec<KeptKind>, StoreError> {
        on_client!(self, client => events::kept_kinds(&*client))
    }

    async fn backlog(&self, count_max: u64) -> Result<Backlog, StoreError> {
        on_client!(self, client => events::backlog(client, count_max))
    }

    async fn open_incident(
        &self,
        id: Uuid,
        source: IncidentSource,
        subject: &str,
        reason: &str,
        now: Time,
    ) -> Result<(), StoreError> {
        on_client!(self, client => events::open_incident(&*client, id, source, subject, reason, now))
    }

    async fn close_incident(
        &self,
        source: IncidentSource,
        subject: &str,
        now: Time,
    ) -> Result<(), StoreError> {
        on_client!(self, client => events::close_incident(&*client, source, subject, now))
    }

    async fn incidents(&self, closed: bool, limit: usize) -> Result<Vec<Incident>, StoreError> {
        on_client!(self, client => events::incidents(client, closed, limit))
    }
}
