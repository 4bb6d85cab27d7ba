//! The relay: turns recorded events into jobs, in every process, exactly once.
//!
//! A pass locks the events that are not fanned out, asks the core who gets them,
//! inserts the jobs and marks the events, in one transaction. There is no cursor,
//! so an event that commits late is found like any other.
//!
//! A pass that the database fails backs off. A batch that cannot be planned or
//! written is gone through event by event; one that fails again and again is set
//! aside with an incident, and blocks nobody.

use crate::enqueue::relayed;
use crate::expand::{Expanded, Expanders};
use crate::parts::Parts;
use crate::random;
use crate::store::outbox::{
    Batch, FanOut, IncidentSource, KeptKind, Known, Passed, Plan, StoredEvent, Unplanned,
};
use crate::store::{NewJob, StoreError};
use serde::Serialize;
use std::sync::Arc;
use tidings_core::event::{Event, EventId};
use tidings_core::id::JobId;
use tidings_core::limits::RELAY_BATCH_MAX;
use tidings_core::payload;
use tidings_core::relay::{BACKLOG_WAITING_MAX, RelayState};
use tidings_core::route::{self, Becomes, Subscription, Verdict};
use tidings_core::time::Time;

/// What an event became for one subscription, as it is kept with the event.
#[derive(Serialize)]
struct Became<'a> {
    subscription: &'a str,
    #[serde(flatten)]
    verdict: &'a Verdict,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    jobs: Vec<JobId>,
}

/// Routes and makes the jobs.
struct Planner {
    expanders: Expanders,
}

/// Fails on purpose: whoever asks learns which events a pass would take.
struct Peek;

/// What one batch came to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Batched {
    /// Events whose jobs are there now.
    pub(crate) fanned_out: usize,
    /// It was full, or rows were in its way: there may be more that is due.
    pub(crate) more: bool,
    /// When the next event is due that is not due yet.
    pub(crate) next_due: Option<Time>,
    /// What this program lacks, so that it left the events to another one.
    pub(crate) lacks: Option<String>,
}

/// Fans out whatever is due, until nothing is; how many events.
pub(crate) async fn pass(parts: &Parts) -> Result<usize, StoreError> {
    let mut fanned_out = 0;
    loop {
        let batched = batch(parts).await?;
        fanned_out += batched.fanned_out;
        if !batched.more {
            return Ok(fanned_out);
        }
    }
}

/// Fans out what is due, at most [`RELAY_BATCH_MAX`] events.
pub(crate) async fn batch(parts: &Parts) -> Result<Batched, StoreError> {
    let planner: Arc<dyn FanOut> = Arc::new(Planner { expanders: parts.expanders.clone() });
    let due = Batch::Due(RELAY_BATCH_MAX);
    let passed = match parts.store.fan_out(due, parts.clock.now(), Arc::clone(&planner)).await {
        Err(StoreError::Refused(_)) => parts.store.fan_out(due, parts.clock.now(), Arc::new(Peek)).await?,
        passed => passed?,
    };
    match passed {
        Passed::Done { next_due, .. } => {
            let fanned_out = told(parts, &passed);
            Ok(Batched { fanned_out, more: fanned_out == RELAY_BATCH_MAX, next_due, lacks: None })
        }
        Passed::Failed { events, .. } => one_by_one(parts, &planner, events).await,
        Passed::Unreadable(rows) => set_aside(parts, &rows).await,
        Passed::LeftAlone { reason } => Ok(Batched { lacks: Some(reason), ..Batched::default() }),
    }
}

/// So that one bad event takes no other with it.
async fn one_by_one(
    parts: &Parts,
    planner: &Arc<dyn FanOut>,
    events: Vec<StoredEvent>,
) -> Result<Batched, StoreError> {
    let mut batched = Batched { more: events.len() == RELAY_BATCH_MAX, ..Batched::default() };
    for stored in events {
        let now = parts.clock.now();
        match parts.store.fan_out(Batch::One(stored.event.id), now, Arc::clone(planner)).await {
            Ok(Passed::Failed { reason, .. }) | Err(StoreError::Refused(reason)) => {
                failed(parts, &stored, &reason, now).await?;
            }
            Ok(passed) => batched.fanned_out += told(parts, &passed),
            Err(problem) => return Err(problem),
        }
    }
    Ok(batched)
}

async fn failed(parts: &Parts, stored: &StoredEvent, reason: &str, now: Time) -> Result<(), StoreError> {
    let state = stored.state.failed(reason, now, parts.terms.draw());
    let saved = parts.store.save_event(stored, &state, random::job_id(now).0, now).await?;
    if saved && let RelayState::Poisoned { reason, .. } = &state {
        let id = stored.event.id;
        tracing::error!(event = %id, %reason, "an event is set aside; requeue it when its cause is mended");
    }
    Ok(())
}

/// A row that nobody can read as an event would be in the way of every batch.
async fn set_aside(parts: &Parts, rows: &[(EventId, String)]) -> Result<Batched, StoreError> {
    for (id, reason) in rows {
        let now = parts.clock.now();
        if parts.store.set_aside_unreadable(*id, reason, random::job_id(now).0, now).await? {
            tracing::error!(event = %id, %reason, "a row that does not read as an event is set aside; mend it, then requeue it");
        }
    }
    Ok(Batched { more: true, ..Batched::default() })
}

/// After the commit: the queues that got jobs and the callers who wait are told.
fn told(parts: &Parts, passed: &Passed) -> usize {
    let Passed::Done { events, queues, .. } = passed else { return 0 };
    for queue in queues {
        parts.wakes.enqueued(queue);
    }
    for id in events {
        parts.wakes.settled(id.0);
    }
    events.len()
}

/// Raises the backlog alert, or clears it.
pub(crate) async fn watch_backlog(parts: &Parts) -> Result<(), StoreError> {
    let now = parts.clock.now();
    let backlog = parts.store.backlog(BACKLOG_WAITING_MAX + 1).await?;
    match backlog.alert(now) {
        Some(reason) => {
            parts
                .store
                .open_incident(random::job_id(now).0, IncidentSource::Backlog, "relay", &reason, now)
                .await
        }
        None => parts.store.close_incident(IncidentSource::Backlog, "relay", now).await,
    }
}

impl FanOut for Peek {
    fn plan(&self, _: &[Event], _: &Known, _: Time) -> Result<Vec<Plan>, Unplanned> {
        Err(Unplanned::Failed("only looking".into()))
    }
}

impl FanOut for Planner {
    fn plan(&self, events: &[Event], known: &Known, now: Time) -> Result<Vec<Plan>, Unplanned> {
        self.check(&known.subscriptions)?;
        let verdicts = route::route(events, &known.subscriptions);
        let plans =
            events.iter().zip(&verdicts).map(|(event, verdicts)| self.plan_one(event, verdicts, known, now));
        plans.collect::<Result<_, _>>().map_err(Unplanned::Failed)
    }
}

impl Planner {
    /// A subscription that names an expander which this program does not have, an older
    /// one perhaps, leaves all events to a program that has it.
    fn check(&self, subscriptions: &[Subscription]) -> Result<(), Unplanned> {
        let missing = subscriptions.iter().find_map(|subscription| match &subscription.becomes {
            Becomes::Expanded(name) if !self.expanders.has(name) => Some((&subscription.name, name)),
            Becomes::Expanded(_) | Becomes::Job(_) => None,
        });
        let Some((subscription, name)) = missing else { return Ok(()) };
        Err(Unplanned::NotHere(format!(
            "subscription `{subscription}` names the expander `{name}`, which this program does not have"
        )))
    }

    fn plan_one(
        &self,
        event: &Event,
        verdicts: &[(usize, Verdict)],
        known: &Known,
        now: Time,
    ) -> Result<Plan, String> {
        let mut jobs = Vec::new();
        let mut became = Vec::new();
        for (index, verdict) in verdicts {
            let subscription = &known.subscriptions[*index];
            let own = match verdict {
                Verdict::Matched => self.jobs(event, subscription, &known.kinds, now)?,
                Verdict::Filtered { .. } | Verdict::Coalesced { .. } => Vec::new(),
            };
            let ids = own.iter().map(|new| new.job.id).collect();
            became.push(Became { subscription: &subscription.name, verdict, jobs: ids });
            jobs.extend(own);
        }
        let became = serde_json::to_string(&became).map_err(|error| error.to_string())?;
        Ok(Plan { jobs, became })
    }

    fn jobs(
        &self,
        event: &Event,
        subscription: &Subscription,
        kinds: &[KeptKind],
        now: Time,
    ) -> Result<Vec<NewJob>, String> {
        let kind = |name: &str| {
            kinds.iter().find(|kind| kind.name == name).ok_or_else(|| {
                format!(
                    "subscription `{}` makes jobs of kind `{name}`, which no program carries out: start one that \
                     does, or change the subscription",
                    subscription.name
                )
            })
        };
        match &subscription.becomes {
            Becomes::Job(name) => Ok(vec![relayed(kind(name)?, envelope(event), &event.tenant, now)]),
            Becomes::Expanded(name) => {
                let expanded = self.expanders.expand(name, event).map_err(|problem| {
                    format!("subscription `{}` cannot be expanded: {problem}", subscription.name)
                })?;
                let job = |job: Expanded| {
                    let kind = kind(&job.kind)?;
                    payload::check(&job.args).map_err(|problem| {
                        format!(
                            "subscription `{}` is expanded to a job `{}` whose arguments cannot be: args {problem}",
                            subscription.name, job.kind
                        )
                    })?;
                    Ok(relayed(kind, job.args, &event.tenant, now))
                };
                expanded.into_iter().map(job).collect()
            }
        }
    }
}

/// The arguments of a job that an event became. The data keeps its bytes.
fn envelope(event: &Event) -> String {
    #[derive(Serialize)]
    struct Envelope<'a> {
        id: EventId,
        r#type: &'a str,
        tenant: &'a str,
        subject: &'a str,
        occurred_at_ms: i64,
        data: &'a serde_json::value::RawValue,
    }
    let data: Result<&serde_json::value::RawValue, _> = serde_json::from_str(&event.data);
    let envelope = Envelope {
        id: event.id,
        r#type: event.type_name.as_str(),
        tenant: &event.tenant,
        subject: &event.subject,
        occurred_at_ms: event.occurred_at.0,
        data: data.unwrap_or(serde_json::value::RawValue::NULL),
    };
    serde_json::to_string(&envelope).expect("an envelope has string keys only")
}
