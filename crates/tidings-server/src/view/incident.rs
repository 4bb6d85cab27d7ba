//! Incidents and the backlog of events as JSON.

use crate::instant;
use serde::Serialize;
use tidings::Time;
use tidings::core::relay::{BACKLOG_WAITING_MAX, Backlog};
use tidings::store::outbox::Incident;

/// One problem, open or closed.
#[derive(Debug, Serialize)]
pub(crate) struct IncidentDocument {
    pub(crate) id: String,
    /// What it is about: `event` or `backlog`.
    pub(crate) source: String,
    /// Which one.
    pub(crate) subject: String,
    pub(crate) reason: String,
    pub(crate) opened_at: String,
    pub(crate) seen_at: String,
    /// How often it was seen.
    pub(crate) times: i64,
    pub(crate) closed_at: Option<String>,
}

/// How many events wait, and how many are set aside.
#[derive(Debug, Serialize)]
pub(crate) struct BacklogDocument {
    /// Counted up to `waiting_counted_to`.
    pub(crate) waiting: u64,
    pub(crate) waiting_counted_to: u64,
    pub(crate) oldest_at: Option<String>,
    pub(crate) oldest_age_ms: Option<i64>,
    pub(crate) poisoned: u64,
    /// Why it deserves an alert.
    pub(crate) alert: Option<String>,
}

impl From<Incident> for IncidentDocument {
    fn from(incident: Incident) -> IncidentDocument {
        IncidentDocument {
            id: format!("inc_{}", incident.id.simple()),
            source: incident.source,
            subject: incident.subject,
            reason: incident.reason,
            opened_at: instant::text(incident.opened_at),
            seen_at: instant::text(incident.seen_at),
            times: incident.times,
            closed_at: incident.closed_at.map(instant::text),
        }
    }
}

impl BacklogDocument {
    pub(crate) fn of(backlog: &Backlog, now: Time) -> BacklogDocument {
        BacklogDocument {
            waiting: backlog.waiting,
            waiting_counted_to: BACKLOG_WAITING_MAX + 1,
            oldest_at: backlog.oldest_at.map(instant::text),
            // The database's clock may have been asked a little earlier.
            oldest_age_ms: backlog.oldest_at.map(|at| now.since(at).0.max(0)),
            poisoned: backlog.poisoned,
            alert: backlog.alert(now),
        }
    }
}
