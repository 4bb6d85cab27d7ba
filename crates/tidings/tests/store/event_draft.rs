//! Events made by hand, with hand-held times, and plans that say what they become.

use crate::draft::{Draft, NOW, job};
use crate::fixture::Fresh;
use std::sync::{Arc, Mutex};
use tidings::core::event::{Event, EventId, EventType, Exposure, TypeName};
use tidings::core::time::{Millis, Time};
use tidings::core::unique::KeyHash;
use tidings::random;
use tidings::store::outbox::{
    Batch, FanOut, Known, NewEvent, Passed, Plan, Recorded, StoredEvent, Unplanned,
};
use tidings::store::{Idempotency, Store};

/// An event of type `note.changed`, which [`Notes::open`] declares.
pub fn event() -> NewEvent {
    let event = Event {
        id: EventId(random::job_id(NOW).0),
        type_name: TypeName::new("note.changed").unwrap(),
        tenant: String::new(),
        subject: String::new(),
        occurred_at: NOW,
        data: "{}".into(),
    };
    NewEvent { event, idempotency: None }
}

pub fn events(count: usize) -> Vec<NewEvent> {
    (0..count).map(|_| event()).collect()
}

/// Changes one thing of an event that is not recorded yet.
pub trait EventDraft {
    fn of_type(self, type_name: &str) -> Self;
    fn subject(self, subject: &str) -> Self;
    fn tenant(self, tenant: &str) -> Self;
    fn data(self, data: &str) -> Self;
    fn once(self, key: &str, call: &str) -> Self;
}

impl EventDraft for NewEvent {
    fn of_type(mut self, type_name: &str) -> NewEvent {
        self.event.type_name = TypeName::new(type_name).unwrap();
        self
    }

    fn subject(mut self, subject: &str) -> NewEvent {
        self.event.subject = subject.into();
        self
    }

    fn tenant(mut self, tenant: &str) -> NewEvent {
        self.event.tenant = tenant.into();
        self
    }

    fn data(mut self, data: &str) -> NewEvent {
        self.event.data = data.into();
        self
    }

    /// With an idempotency key; `call` is what was asked for with it.
    fn once(mut self, key: &str, call: &str) -> NewEvent {
        let (key_hash, fingerprint) = (KeyHash::of(key), KeyHash::of(call));
        self.idempotency = Some(Idempotency { key_hash, fingerprint, expires_at: NOW + Millis(1_000) });
        self
    }
}

pub fn declared(name: &str) -> EventType {
    EventType { name: TypeName::new(name).unwrap(), description: String::new(), exposure: Exposure::Internal }
}

/// Each event becomes so many jobs of kind `demo`; their arguments name the event.
pub struct Becomes(pub usize);

impl FanOut for Becomes {
    fn plan(&self, events: &[Event], _: &Known, _: Time) -> Result<Vec<Plan>, Unplanned> {
        let jobs = |event: &Event| (0..self.0).map(|_| job().args(&format!("\"{}\"", event.id))).collect();
        Ok(events.iter().map(|event| Plan { jobs: jobs(event), became: "[]".into() }).collect())
    }
}

/// Plans as somebody says.
pub struct Planned<F>(pub F);

impl<F: Fn(&[Event], &Known) -> Result<Vec<Plan>, Unplanned> + Send + Sync> FanOut for Planned<F> {
    fn plan(&self, events: &[Event], known: &Known, _: Time) -> Result<Vec<Plan>, Unplanned> {
        (self.0)(events, known)
    }
}

/// Looks which events a pass would take, in which order, and does nothing.
pub async fn order(store: &Fresh, batch: Batch, now: Time) -> Vec<EventId> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let look = Arc::clone(&seen);
    let plan = Planned(move |events: &[Event], _: &Known| {
        *look.lock().unwrap() = events.iter().map(|event| event.id).collect();
        Err(Unplanned::NotHere("only looking".into()))
    });
    store.fan_out(batch, now, Arc::new(plan)).await.unwrap();
    let seen = seen.lock().unwrap();
    seen.clone()
}

/// What is done with events in most tests.
#[async_trait::async_trait]
pub trait Notes {
    /// Records events that nobody has yet.
    async fn note(&self, events: Vec<NewEvent>) -> Vec<EventId>;
    async fn note_one(&self, event: NewEvent) -> Recorded;
    async fn noted(&self, id: EventId) -> StoredEvent;
    /// The events that one pass over what is due at [`NOW`] fans out, each into one job.
    async fn relay(&self, limit: usize) -> Vec<EventId>;
}

#[async_trait::async_trait]
impl Notes for Fresh {
    async fn note(&self, events: Vec<NewEvent>) -> Vec<EventId> {
        let ids: Vec<EventId> = events.iter().map(|new| new.event.id).collect();
        let expected: Vec<Recorded> = ids.iter().map(|id| Recorded::New(*id)).collect();
        assert_eq!(self.record(events, NOW).await.unwrap(), expected);
        ids
    }

    async fn note_one(&self, event: NewEvent) -> Recorded {
        self.record(vec![event], NOW).await.unwrap()[0]
    }

    async fn noted(&self, id: EventId) -> StoredEvent {
        self.events(&[id]).await.unwrap().remove(0).unwrap_or_else(|| panic!("{id} is there"))
    }

    async fn relay(&self, limit: usize) -> Vec<EventId> {
        done(self.fan_out(Batch::Due(limit), NOW, Arc::new(Becomes(1))).await.unwrap())
    }
}

pub fn done(passed: Passed) -> Vec<EventId> {
    let Passed::Done { events, .. } = passed else { panic!("{passed:?}") };
    events
}

/// A store that knows the type `note.changed`.
pub async fn with_types(store: Fresh) -> Fresh {
    store.declare_event_types(&[declared("note.changed"), declared("other.thing")], NOW).await.unwrap();
    store
}

/// The same for another handle of the store.
pub async fn relay_all(store: &dyn Store, plan: Arc<dyn FanOut>) -> Vec<EventId> {
    let mut all = Vec::new();
    loop {
        let events = done(store.fan_out(Batch::Due(200), NOW, Arc::clone(&plan)).await.unwrap());
        if events.is_empty() {
            return all;
        }
        all.extend(events);
    }
}
