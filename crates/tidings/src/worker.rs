//! The workers of a process: for each queue a loop that claims as many due jobs
//! as there are free places, so that a claimed job starts at once.
//!
//! A place is free again when its attempt is *written*: what is held in memory is
//! bounded by the places. Queues share nothing, so one that is blocked starves no
//! other.
//!
//! Absent on purpose: renewing leases. A lease outlives the kind's hard time limit,
//! so an attempt is over before its lease is.

use crate::attempt::{self, Reins};
use crate::in_flight::InFlight;
use crate::parts::Parts;
use crate::random;
use crate::store::{Change, Saved, StoreError, Stored, Take, Taken};
use crate::ticker;
use crate::writer::GroupWriter;
use futures_util::FutureExt;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidings_core::decide::Command;
use tidings_core::id::WorkerId;
use tidings_core::job::Job;
use tidings_core::time::Time;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Jobs in one claim at most.
const CLAIM_MAX: usize = 1_000;
/// Loops that write reports, where the database takes several writers.
const REPORT_LANES: usize = 2;
const CLAIM_PAUSE_FIRST: Duration = Duration::from_millis(100);
const CLAIM_PAUSE_MAX: Duration = Duration::from_secs(5);
/// The ticker and the relay.
const HOUSEKEEPERS: usize = 2;
/// How long reports get to be written after the last handler has gone.
const LAST_WRITES: Duration = Duration::from_secs(10);
/// Without a successful look at a queue for this long, the process is not ready.
const STALE_AFTER: Duration = Duration::from_secs(15);

/// Running workers. Dropped, they and their handlers end as in a crash: the sweep will
/// call what ran unknown. See [`Workers::stop`] for the better way.
pub struct Workers {
    parts: Arc<Parts>,
    stop: Arc<Stop>,
    places: HashMap<String, (Arc<Semaphore>, usize)>,
    progress: Arc<Progress>,
    in_flight: Arc<InFlight>,
    tasks: JoinSet<()>,
}

/// Why workers did not start.
#[derive(Clone, Debug, thiserror::Error)]
pub enum WorkRefused {
    /// Too few connections for what would run.
    #[error(
        "{queues} queues need {needed} connections of a pool of {pool}; background work may use half, so that \
         callers keep the rest: raise `pool_size` to at least {least}, or serve fewer queues"
    )]
    PoolTooSmall {
        /// Queues with a loop.
        queues: usize,
        /// Connections that the loops hold at once.
        needed: usize,
        /// The pool's size.
        pool: usize,
        /// The least size that would do.
        least: usize,
    },
    /// The same name and version for another policy.
    #[error(
        "policy `{label}` is in the database with other data, and attempts there name it: raise the policy's `version`"
    )]
    PolicyChanged {
        /// `name@version`.
        label: String,
    },
    /// A queue without a single worker.
    #[error("queue `{0}` has 0 workers; leave it out, or give it at least 1")]
    NoWorkers(String),
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Two steps: no new claims; then no handlers either.
pub(crate) struct Stop {
    claiming: watch::Sender<bool>,
    running: watch::Sender<bool>,
}

/// How the loop of each queue gets on.
#[derive(Default)]
struct Progress(Mutex<HashMap<String, Step>>);

/// What the loop of a queue did last.
#[derive(Clone, Copy)]
enum Step {
    /// It looked for work, with success.
    Looked(Instant),
    /// Every place is taken: it has nothing to look for.
    Full,
}

impl Workers {
    pub(crate) async fn start(parts: Arc<Parts>) -> Result<Workers, WorkRefused> {
        let queues = workers_by_queue(&parts)?;
        check_pool(parts.store.pool_size(), queues.len())?;
        keep_policies(&parts).await?;
        parts.store.keep_kinds(&parts.registry.kept()).await?;
        parts.store.keep_house(parts.clock.now()).await?;
        Ok(Workers::run(parts, queues))
    }

    fn run(parts: Arc<Parts>, queues: Vec<(String, usize)>) -> Workers {
        let stop = Arc::new(Stop { claiming: watch::channel(false).0, running: watch::channel(false).0 });
        let progress = Arc::new(Progress::default());
        let in_flight = Arc::new(InFlight::default());
        let reports = report_writer(&parts);
        let worker = random::worker_id();
        let mut tasks = JoinSet::new();
        let mut places = HashMap::new();
        for (queue, workers) in queues {
            let permits = Arc::new(Semaphore::new(workers));
            places.insert(queue.clone(), (Arc::clone(&permits), workers));
            progress.note(&queue, Step::Looked(Instant::now()));
            let line = Line {
                parts: Arc::clone(&parts),
                queue,
                worker,
                places: permits,
                reports: reports.clone(),
                stop: Arc::clone(&stop),
                progress: Arc::clone(&progress),
                in_flight: Arc::clone(&in_flight),
            };
            tasks.spawn(line.run());
        }
        ticker::start(&mut tasks, &parts, &in_flight);
        tasks.spawn(ticker::relay_loop(Arc::clone(&parts), stop.claiming.subscribe()));
        Workers { parts, stop, places, progress, in_flight, tasks }
    }

    /// Whether every queue that has a free place was looked at lately.
    ///
    /// # Errors
    /// Which queue was not, and since when.
    pub fn ready(&self) -> Result<(), String> {
        self.progress.fresh(Instant::now())
    }

    /// Stops: no new claims, running jobs get the settings' grace, then they are
    /// cancelled and recorded for what they are. Jobs never started go back untouched.
    pub async fn stop(mut self) {
        self.stop.claiming.send_replace(true);
        if tokio::time::timeout(self.parts.settings.stop_grace, self.all_places_free()).await.is_err() {
            tracing::warn!("handlers did not end in time; they are cancelled");
            self.stop.running.send_replace(true);
            if tokio::time::timeout(LAST_WRITES, self.all_places_free()).await.is_err() {
                tracing::error!(
                    "reports could not be written in time; the sweep will call their attempts unknown"
                );
            }
        }
        self.tasks.shutdown().await;
    }

    async fn all_places_free(&self) {
        for (places, workers) in self.places.values() {
            let all = u32::try_from(*workers).unwrap_or(u32::MAX);
            // Closed never happens; either way there is nothing to wait for.
            let _all = places.acquire_many(all).await;
        }
    }
}

fn workers_by_queue(parts: &Parts) -> Result<Vec<(String, usize)>, WorkRefused> {
    parts
        .queues
        .iter()
        .map(|queue| {
            match parts.settings.workers.get(queue).copied().unwrap_or(parts.settings.workers_default) {
                0 => Err(WorkRefused::NoWorkers(queue.clone())),
                workers => Ok((queue.clone(), workers)),
            }
        })
        .collect()
}

/// Workers hold no connection while a handler runs; the loops do, briefly: one for
/// each queue, the report writers, the ticker, the relay.
fn check_pool(pool: Option<usize>, queues: usize) -> Result<(), WorkRefused> {
    let Some(pool) = pool else { return Ok(()) };
    let needed = queues + REPORT_LANES + HOUSEKEEPERS;
    if needed * 2 > pool {
        return Err(WorkRefused::PoolTooSmall { queues, needed, pool, least: needed * 2 });
    }
    Ok(())
}

async fn keep_policies(parts: &Parts) -> Result<(), WorkRefused> {
    for kind in parts.registry.declared() {
        let policy = &kind.policy;
        let body = serde_json::to_string(&**policy).expect("a policy has string keys and finite numbers");
        let kept = parts.store.keep_policy(policy.name(), policy.version(), &body).await?;
        if kept != body {
            return Err(WorkRefused::PolicyChanged { label: policy.label() });
        }
    }
    Ok(())
}

fn report_writer(parts: &Parts) -> GroupWriter<Change, Saved> {
    let store = Arc::clone(&parts.store);
    let lanes = if store.pool_size().is_some() { REPORT_LANES } else { 1 };
    GroupWriter::start(lanes, move |changes| {
        let store = Arc::clone(&store);
        async move { store.save(changes).await }.boxed()
    })
}

/// The loop of one queue.
struct Line {
    parts: Arc<Parts>,
    queue: String,
    worker: WorkerId,
    places: Arc<Semaphore>,
    reports: GroupWriter<Change, Saved>,
    stop: Arc<Stop>,
    progress: Arc<Progress>,
    in_flight: Arc<InFlight>,
}

impl Line {
    async fn run(self) {
        let mut stop = self.stop.claiming.subscribe();
        let signal = self.parts.wakes.queue(&self.queue);
        let mut pause = CLAIM_PAUSE_FIRST;
        loop {
            let free = tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return,
                free = self.free_places() => free,
            };
            let wanted = free.len();
            match self.take(wanted).await {
                Ok(taken) => {
                    pause = CLAIM_PAUSE_FIRST;
                    self.progress.note(&self.queue, Step::Looked(Instant::now()));
                    let more = taken.started.len() == wanted;
                    let until = self.look_again_at(&taken);
                    let stopping = *stop.borrow();
                    self.start_all(taken.started, free, stopping).await;
                    if more {
                        continue;
                    }
                    tokio::select! {
                        () = signal.notified() => {}
                        () = tokio::time::sleep_until(until) => {}
                        _ = stop.wait_for(|stop| *stop) => return,
                    }
                }
                Err(problem) => {
                    tracing::warn!(queue = %self.queue, %problem, "nothing could be claimed");
                    drop(free);
                    tokio::select! {
                        () = tokio::time::sleep(pause) => {}
                        _ = stop.wait_for(|stop| *stop) => return,
                    }
                    pause = (pause * 2).min(CLAIM_PAUSE_MAX);
                }
            }
        }
    }

    /// Waits for a free place, and takes all that are free then.
    async fn free_places(&self) -> Vec<OwnedSemaphorePermit> {
        if self.places.available_permits() == 0 {
            self.progress.note(&self.queue, Step::Full);
        }
        let mut free = Vec::new();
        free.extend(Arc::clone(&self.places).acquire_owned().await);
        while free.len() < CLAIM_MAX
            && let Ok(place) = Arc::clone(&self.places).try_acquire_owned()
        {
            free.push(place);
        }
        free
    }

    async fn take(&self, limit: usize) -> Result<Taken, StoreError> {
        let take = Take {
            now: self.parts.clock.now(),
            queue: self.queue.clone(),
            limit,
            worker: self.worker,
            terms: Arc::clone(&self.parts.terms),
        };
        self.parts.store.take_due(&take).await
    }

    /// When the next job is due, but no later than a poll from now.
    fn look_again_at(&self, taken: &Taken) -> Instant {
        let poll = self.parts.settings.poll;
        let wait = taken.next_due.map_or(poll, |due: Time| {
            Duration::from_millis(due.since(self.parts.clock.now()).0.unsigned_abs() + 1)
        });
        Instant::now() + wait.min(poll)
    }

    async fn start_all(&self, started: Vec<Stored>, places: Vec<OwnedSemaphorePermit>, stopping: bool) {
        let now = self.parts.clock.now();
        let (started, given_back): (Vec<Stored>, Vec<Stored>) =
            started.into_iter().partition(|stored| !stopping && self.lease_suffices(&stored.job, now));
        if !given_back.is_empty() {
            // Before the places are free: a stop waits for them.
            self.give_back(given_back).await;
        }
        for (stored, place) in started.into_iter().zip(places) {
            let stopped = self.stop.running.subscribe();
            let (parts, reports) = (Arc::clone(&self.parts), self.reports.clone());
            let in_flight = Arc::clone(&self.in_flight);
            let (id, attempt) = (stored.job.id, stored.job.counters.claims);
            self.in_flight.start(id, attempt, |cancelled| {
                let run = async move {
                    attempt::run(&parts, &reports, stored, Reins { cancelled, stopped }).await;
                    in_flight.leave(id, attempt);
                    drop(place);
                };
                tokio::spawn(run).abort_handle()
            });
        }
    }

    /// Whether the handler would be stopped by its time limit before its lease is
    /// over. After a claim that took long to commit it might not, and the next
    /// attempt could begin beside it.
    fn lease_suffices(&self, job: &Job, now: Time) -> bool {
        let limit = self.parts.registry.get(&job.kind).map(|kind| kind.time_limit);
        limit.zip(job.state.due_at()).is_some_and(|(limit, lease_until)| now + limit < lease_until)
    }

    /// The stop came while the claim was under way, or the claim took too long:
    /// nothing was started, nothing is spent.
    async fn give_back(&self, started: Vec<Stored>) {
        let now = self.parts.clock.now();
        let changes = started
            .iter()
            .filter_map(|stored| {
                let attempt = stored.job.counters.claims;
                Change::decide(&stored.job, Command::Release { attempt }, now).ok()
            })
            .collect();
        if let Err(problem) = self.parts.store.save(changes).await {
            tracing::warn!(queue = %self.queue, %problem, "claimed jobs could not be given back; the sweep will find them");
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.in_flight.close();
    }
}

impl Progress {
    fn note(&self, queue: &str, step: Step) {
        let mut steps = lock(&self.0);
        match steps.get_mut(queue) {
            Some(last) => *last = step,
            None => _ = steps.insert(queue.to_owned(), step),
        }
    }

    fn fresh(&self, now: Instant) -> Result<(), String> {
        let steps = lock(&self.0);
        let age = |step: &Step| match step {
            Step::Looked(at) => now - *at,
            Step::Full => Duration::ZERO,
        };
        match steps.iter().map(|(queue, step)| (queue, age(step))).find(|(_, age)| *age > STALE_AFTER) {
            Some((queue, age)) => Err(format!(
                "queue `{queue}` was last looked at {} s ago: the database is away or hangs",
                age.as_secs()
            )),
            None => Ok(()),
        }
    }
}

/// A panic while one of these was held left a map that is as good as before.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_whose_places_are_all_taken_is_ready_and_one_that_is_not_looked_at_is_not() {
        let progress = Progress::default();
        progress.note("busy", Step::Full);
        let start = Instant::now();
        progress.note("idle", Step::Looked(start));
        assert_eq!(progress.fresh(start + STALE_AFTER), Ok(()));
        let later = start + STALE_AFTER + Duration::from_secs(1);
        assert!(progress.fresh(later).unwrap_err().contains("`idle` was last looked at 16 s ago"));
        progress.note("idle", Step::Looked(later));
        assert_eq!(progress.fresh(later), Ok(()));
    }

    #[test]
    fn workers_do_not_start_on_a_pool_that_they_would_fill_by_more_than_half() {
        assert!(check_pool(None, 1_000).is_ok());
        assert!(check_pool(Some(10), 1).is_ok());
        let refusal = check_pool(Some(10), 2).unwrap_err().to_string();
        assert!(refusal.contains("raise `pool_size` to at least 12"), "{refusal}");
    }
}
