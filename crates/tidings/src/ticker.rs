//! What happens by the clock in every process: the sweep of leases that are over,
//! cancels that no wake-up told of, retention, partitions.
//!
//! No leader: each of these may run everywhere at once. The sweep is a writer like
//! any other, by compare-and-set; pruning skips what another process prunes.

use crate::in_flight::InFlight;
use crate::parts::Parts;
use crate::relay;
use crate::store::{Prune, StoreError};
use std::sync::Arc;
use std::time::Duration;
use tidings_core::job::{State, StateName};
use tidings_core::relay::pause;
use tidings_core::time::Time;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Leases ended in one go.
const SWEEP_MAX: usize = 200;
/// Rows removed in one go: short locks, and claims go on in between.
const PRUNE_MAX: usize = 1_000;
const HOUSE_EVERY: Duration = Duration::from_secs(3_600);
const BACKLOG_EVERY: Duration = Duration::from_secs(15);
const CANCEL_POLL: Duration = Duration::from_secs(1);
const PAUSE_AFTER_PROBLEM: Duration = Duration::from_secs(5);

/// Starts the loops; they end when their tasks are aborted.
pub(crate) fn start(tasks: &mut JoinSet<()>, parts: &Arc<Parts>, in_flight: &Arc<InFlight>) {
    tasks.spawn(sweep_loop(Arc::clone(parts)));
    tasks.spawn(backlog_loop(Arc::clone(parts)));
    tasks.spawn(house_loop(Arc::clone(parts)));
    tasks.spawn(cancel_loop(Arc::clone(parts), Arc::clone(in_flight)));
}

/// Fans events out until the process stops: when events are recorded here or
/// elsewhere, and by a poll that suffices alone. Passes that the database fails are
/// further and further apart.
pub(crate) async fn relay_loop(parts: Arc<Parts>, mut stop: watch::Receiver<bool>) {
    let signal = parts.wakes.events();
    let mut failures = 0;
    let mut lacks = None;
    loop {
        let wait = match relay::batch(&parts).await {
            Ok(batched) => {
                failures = 0;
                if batched.lacks.is_some() && batched.lacks != lacks {
                    tracing::warn!(reason = ?batched.lacks, "events are left to another program");
                }
                lacks = batched.lacks;
                let next_due = batched.next_due;
                // A stop comes between two batches, however many events wait.
                if batched.more && !*stop.borrow() {
                    continue;
                }
                let until = next_due.map(|due: Time| due.since(parts.clock.now()).0.unsigned_abs() + 1);
                until.map_or(parts.settings.poll, Duration::from_millis).min(parts.settings.poll)
            }
            Err(problem) => {
                failures += 1;
                tracing::warn!(%problem, failures, "events could not be fanned out; they wait");
                Duration::from_millis(pause(failures, parts.terms.draw()).0.unsigned_abs())
            }
        };
        tokio::select! {
            () = signal.notified(), if failures == 0 => {}
            () = tokio::time::sleep(wait) => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
    }
}

async fn backlog_loop(parts: Arc<Parts>) {
    loop {
        if let Err(problem) = relay::watch_backlog(&parts).await {
            tracing::warn!(%problem, "the backlog of events could not be looked at");
        }
        tokio::time::sleep(BACKLOG_EVERY).await;
    }
}

async fn sweep_loop(parts: Arc<Parts>) {
    loop {
        if let Err(problem) = sweep(&parts).await {
            tracing::warn!(%problem, "leases that are over could not be looked for");
            tokio::time::sleep(PAUSE_AFTER_PROBLEM).await;
        }
        tokio::time::sleep(parts.settings.sweep_every).await;
    }
}

/// Ends every attempt whose lease is over; how many.
pub(crate) async fn sweep(parts: &Parts) -> Result<usize, StoreError> {
    let queues: Vec<String> = parts.queues.iter().cloned().collect();
    let mut ended = 0;
    loop {
        let changes = parts.store.sweep(parts.clock.now(), &queues, SWEEP_MAX, &parts.terms).await?;
        for change in &changes {
            let job = &change.after;
            tracing::warn!(job = %job.id, kind = %job.kind, state = job.state.name().as_str(), "a worker was lost; its attempt is unknown");
            match job.state {
                State::Waiting { .. } => parts.wakes.queue(&job.queue).notify_one(),
                _ => parts.wakes.settled(job.id.0),
            }
        }
        ended += changes.len();
        if changes.is_empty() {
            return Ok(ended);
        }
    }
}

/// A hint says that something was cancelled; a poll finds what no hint told of.
async fn cancel_loop(parts: Arc<Parts>, in_flight: Arc<InFlight>) {
    let mut asked = parts.wakes.cancelled();
    loop {
        let least_age = tokio::select! {
            _hint = asked.changed() => Duration::ZERO,
            () = tokio::time::sleep(CANCEL_POLL) => CANCEL_POLL,
        };
        let running = in_flight.older_than(least_age);
        for ids in running.chunks(PRUNE_MAX) {
            let Ok(jobs) = parts.store.load(ids).await else { break };
            for stored in jobs.into_iter().flatten() {
                if let State::Running { claim, cancel_requested: true, .. } = &stored.job.state {
                    in_flight.cancel(stored.job.id, claim.number);
                }
            }
        }
    }
}

async fn house_loop(parts: Arc<Parts>) {
    loop {
        if let Err(problem) = keep_house(&parts).await {
            tracing::warn!(%problem, "housekeeping was not finished; it goes on in an hour");
        }
        tokio::time::sleep(HOUSE_EVERY).await;
    }
}

/// Prepares the log's next weeks, and removes what is older than retention keeps.
pub(crate) async fn keep_house(parts: &Parts) -> Result<(), StoreError> {
    let now = parts.clock.now();
    parts.store.keep_house(now).await?;
    for what in due_to_go(parts, now) {
        while parts.store.prune(what, PRUNE_MAX).await? >= PRUNE_MAX as u64 {
            tokio::task::yield_now().await;
        }
    }
    Ok(())
}

fn due_to_go(parts: &Parts, now: Time) -> [Prune; 6] {
    let kept = &parts.settings.retention;
    [
        Prune::Finished(StateName::Completed, now - kept.completed),
        Prune::Finished(StateName::Discarded, now - kept.discarded),
        Prune::Finished(StateName::Cancelled, now - kept.cancelled),
        Prune::Keys(now),
        Prune::Events(now - kept.events),
        Prune::Facts(now - kept.facts),
    ]
}
