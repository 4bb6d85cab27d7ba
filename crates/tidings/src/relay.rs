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
use crate::expand::Expanders;
use crate::parts::Parts;
use crate::random;
use crate::store::outbox::{Batch, FanOut, IncidentSource, KeptKind, Passed, Plan, StoredEvent};
use crate::store::{NewJob, StoreError};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use tidings_core::event::{Event, EventId};
use tidings_core::id::JobId;
use tidings_core::limits::RELAY_BATCH_MAX;
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

/// Routes and makes the jobs. What it needs of the database is read before the pass.
struct Planner {
    subscriptions: Vec<Subscription>,
    kinds: BTreeMap<String, KeptKind>,
    expanders: Expanders,
}

/// Fails on purpose: whoever asks learns which events a pass would take.
struct Peek;

/// Fans out whatever is due, until nothing is; how many events.
pub(crate) async fn pass(parts: &Parts) -> Result<usize, StoreError> {
    let mut fanned_out = 0;
    loop {
        let done = once(parts).await?;
        fanned_out += done;
        if done < RELAY_BATCH_MAX {
            return Ok(fanned_out);
        }
    }
}

async fn once(parts: &Parts) -> Result<usize, StoreError> {
    let Some(planner) = planner(parts).await? else { return Ok(0) };
    let batch = Batch::Due(RELAY_BATCH_MAX);
    match parts.store.fan_out(batch, parts.clock.now(), Arc::clone(&planner)).await {
        Ok(passed @ Passed::Done { .. }) => Ok(told(parts, &passed)),
        Ok(Passed::Failed { events, .. }) => one_by_one(parts, &planner, events).await,
        Err(StoreError::Refused(_)) => {
            let peeked = parts.store.fan_out(batch, parts.clock.now(), Arc::new(Peek)).await?;
            let Passed::Failed { events, .. } = peeked else { return Ok(0) };
            one_by_one(parts, &planner, events).await
        }
        Err(problem) => Err(problem),
    }
}

/// So that one bad event takes no other with it.
async fn one_by_one(
    parts: &Parts,
    planner: &Arc<dyn FanOut>,
    events: Vec<StoredEvent>,
) -> Result<usize, StoreError> {
    let mut fanned_out = 0;
    for stored in events {
        let now = parts.clock.now();
        let reason = match parts.store.fan_out(Batch::One(stored.event.id), now, Arc::clone(planner)).await {
            Ok(passed @ Passed::Done { .. }) => {
                fanned_out += told(parts, &passed);
                continue;
            }
            Ok(Passed::Failed { reason, .. }) | Err(StoreError::Refused(reason)) => reason,
            Err(problem) => return Err(problem),
        };
        failed(parts, &stored, &reason, now).await?;
    }
    Ok(fanned_out)
}

async fn failed(parts: &Parts, stored: &StoredEvent, reason: &str, now: Time) -> Result<(), StoreError> {
    let state = stored.state.failed(reason, now, parts.terms.draw());
    let saved = parts.store.save_event(stored, &state).await?;
    if saved && let RelayState::Poisoned { reason, .. } = &state {
        let id = stored.event.id;
        tracing::error!(event = %id, %reason, "an event is set aside; requeue it when its cause is mended");
        parts
            .store
            .open_incident(random::job_id(now).0, IncidentSource::Event, &id.to_string(), reason, now)
            .await?;
    }
    Ok(())
}

/// After the commit: the queues that got jobs and the callers who wait are told.
fn told(parts: &Parts, passed: &Passed) -> usize {
    let Passed::Done { events, queues } = passed else { return 0 };
    for queue in queues {
        parts.wakes.enqueued(queue);
    }
    for id in events {
        parts.wakes.settled(id.0);
    }
    events.len()
}

/// `None`: some subscription names an expander that this program does not have, an
/// older one perhaps. It leaves the events to a program that has it.
async fn planner(parts: &Parts) -> Result<Option<Arc<dyn FanOut>>, StoreError> {
    let subscriptions = parts.store.subscriptions().await?;
    let missing = subscriptions.iter().find_map(|subscription| match &subscription.becomes {
        Becomes::Expanded(name) if !parts.expanders.has(name) => Some(name),
        Becomes::Expanded(_) | Becomes::Job(_) => None,
    });
    if let Some(name) = missing {
        tracing::warn!(expander = %name, "no events are fanned out here: this program lacks an expander");
        return Ok(None);
    }
    let kinds = parts.store.kept_kinds().await?;
    let kinds = kinds.into_iter().map(|kind| (kind.name.clone(), kind)).collect();
    Ok(Some(Arc::new(Planner { subscriptions, kinds, expanders: parts.expanders.clone() })))
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
    fn plan(&self, _: &[Event], _: Time) -> Result<Vec<Plan>, String> {
        Err("only looking".into())
    }
}

impl FanOut for Planner {
    fn plan(&self, events: &[Event], now: Time) -> Result<Vec<Plan>, String> {
        let verdicts = route::route(events, &self.subscriptions);
        events.iter().zip(&verdicts).map(|(event, verdicts)| self.plan_one(event, verdicts, now)).collect()
    }
}

impl Planner {
    fn plan_one(&self, event: &Event, verdicts: &[(usize, Verdict)], now: Time) -> Result<Plan, String> {
        let mut jobs = Vec::new();
        let mut became = Vec::new();
        for (index, verdict) in verdicts {
            let subscription = &self.subscriptions[*index];
            let own = match verdict {
                Verdict::Matched => self.jobs(event, subscription, now)?,
                Verdict::Filtered { .. } | Verdict::Coalesced { .. } => Vec::new(),
            };
            let ids = own.iter().map(|new| new.job.id).collect();
            became.push(Became { subscription: &subscription.name, verdict, jobs: ids });
            jobs.extend(own);
        }
        let became = serde_json::to_string(&became).map_err(|error| error.to_string())?;
        Ok(Plan { jobs, became })
    }

    fn jobs(&self, event: &Event, subscription: &Subscription, now: Time) -> Result<Vec<NewJob>, String> {
        let kind = |name: &str| {
            self.kinds.get(name).ok_or_else(|| {
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
                expanded
                    .into_iter()
                    .map(|job| Ok(relayed(kind(&job.kind)?, job.args, &event.tenant, now)))
                    .collect()
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
