//! The queues of a process, and which are paused: the same for API and command line.

use crate::instant;
use crate::problem::{Problem, Sort};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use tidings::store::PausedQueue;
use tidings::{EnqueueRefused, Tidings};

/// One queue.
#[derive(Debug, Serialize)]
pub(crate) struct QueueLine {
    pub(crate) queue: String,
    pub(crate) paused: bool,
    pub(crate) paused_at: Option<String>,
    pub(crate) paused_by: Option<String>,
    pub(crate) reason: Option<String>,
}

/// Every queue that this process serves, and every one that is paused.
pub(crate) async fn all(tidings: &Tidings) -> Result<Vec<QueueLine>, Problem> {
    let paused: BTreeMap<String, PausedQueue> =
        tidings.paused().await?.into_iter().map(|paused| (paused.queue.clone(), paused)).collect();
    let names: BTreeSet<&String> = tidings.queues().iter().chain(paused.keys()).collect();
    Ok(names.into_iter().map(|name| line(name, paused.get(name))).collect())
}

/// One queue, which is there.
pub(crate) async fn one(tidings: &Tidings, queue: &str) -> Result<QueueLine, Problem> {
    let paused = tidings.paused().await?;
    Ok(line(queue, paused.iter().find(|paused| paused.queue == queue)))
}

fn line(queue: &str, paused: Option<&PausedQueue>) -> QueueLine {
    QueueLine {
        queue: queue.to_owned(),
        paused: paused.is_some(),
        paused_at: paused.map(|paused| instant::text(paused.paused_at)),
        paused_by: paused.map(|paused| paused.act.actor.clone()),
        reason: paused.map(|paused| paused.act.reason.clone()).filter(|reason| !reason.is_empty()),
    }
}

/// An unknown queue is not a bad value here: it is what was asked about.
pub(crate) fn refused(refused: EnqueueRefused) -> Problem {
    match refused {
        EnqueueRefused::UnknownQueue { .. } => {
            Problem::new(Sort::NoSuchQueue, refused.to_string()).field("queue")
        }
        other => other.into(),
    }
}
