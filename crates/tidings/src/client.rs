//! What an application, the API and the command line do with jobs: enqueue,
//! look, wait, cancel, retry, resolve, pause.
//!
//! A response promises only what is committed.
//!
//! Absent on purpose: carrying jobs out; see [`crate::worker`].

use crate::enqueue::{Door, Enqueue, EnqueueOptions, EnqueueRefused, Receipt};
use crate::inspect::{self, JobView};
use crate::kind::{Kind, Registry};
use crate::parts::Parts;
use crate::store::outbox::{NewEvent, Recorded};
use crate::store::{Inserted, JobFilter, NewJob, PausedQueue, Store, StoreError, Told, tell};
use crate::wait::{Waited, Waits};
use crate::writer::GroupWriter;
use futures_util::FutureExt;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tidings_core::decide::{Command, Refusal};
use tidings_core::fact::{Act, Resolution};
use tidings_core::id::JobId;
use tidings_core::job::{Job, State};
use tidings_core::limits;
use tidings_core::text;
use tidings_core::time::Time;

/// A door to one database. Cheap to clone; clones share everything.
#[derive(Clone)]
pub struct Tidings {
    pub(crate) parts: Arc<Parts>,
    inserts: GroupWriter<NewJob, Inserted>,
    records: GroupWriter<NewEvent, Recorded>,
    pub(crate) waits: Arc<Waits>,
}

/// Why a job was not changed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ActRefused {
    /// No job of that id, or it is past its retention.
    #[error("there is no job {0}; finished jobs are kept for a time only")]
    NoSuchJob(JobId),
    /// The job's state does not allow it.
    #[error("{0}")]
    Refused(Refusal),
    /// It would come back, but another job has its unique key.
    #[error("{0} has the same unique key by now; cancel that one first")]
    KeyTaken(JobId),
    /// The database cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Loops that insert, where the database takes several writers.
const INSERT_LANES: usize = 2;

impl Tidings {
    pub(crate) fn new(parts: Parts) -> Tidings {
        let store = Arc::clone(&parts.store);
        let lanes = if store.pool_size().is_some() { INSERT_LANES } else { 1 };
        let inserts = GroupWriter::start(lanes, move |jobs| {
            let store = Arc::clone(&store);
            async move { store.insert(jobs).await }.boxed()
        });
        let (store, clock) = (Arc::clone(&parts.store), Arc::clone(&parts.clock));
        let records = GroupWriter::start(lanes, move |events| {
            let (store, now) = (Arc::clone(&store), clock.now());
            async move { store.record(events, now).await }.boxed()
        });
        Tidings { parts: Arc::new(parts), inserts, records, waits: Arc::new(Waits::new()) }
    }

    /// Enqueues a job. It is committed when this returns.
    ///
    /// # Errors
    /// When the job is refused at the door or the database does not take it.
    pub async fn enqueue<K: Kind>(&self, job: impl Into<Enqueue<K>>) -> Result<Receipt, EnqueueRefused> {
        let new = self.door().typed(&job.into())?;
        self.insert_one(new).await
    }

    /// Enqueues a job of a kind by name, with its arguments as JSON text, whose
    /// bytes are kept exactly.
    ///
    /// # Errors
    /// When the job is refused at the door or the database does not take it.
    pub async fn enqueue_json(
        &self,
        kind: &str,
        args: impl Into<String>,
        options: &EnqueueOptions,
    ) -> Result<Receipt, EnqueueRefused> {
        let new = self.door().admit(kind, args.into(), options)?;
        self.insert_one(new).await
    }

    /// Enqueues up to [`limits::BATCH_MAX`] jobs in one transaction: all or none. One whose
    /// unique key or idempotency key another job has is answered with that job.
    ///
    /// # Errors
    /// The first job that is refused at the door, or that the database does not take them:
    /// nothing was enqueued then. And an idempotency key that was used for another call:
    /// the other jobs were enqueued, and the same batch again is answered with them only if
    /// they have keys, too.
    pub async fn enqueue_all<K: Kind>(
        &self,
        jobs: impl IntoIterator<Item = impl Into<Enqueue<K>>>,
    ) -> Result<Vec<Receipt>, EnqueueRefused> {
        let door = self.door();
        let new = jobs.into_iter().map(|job| door.typed(&job.into())).collect::<Result<Vec<_>, _>>()?;
        if new.len() > limits::BATCH_MAX {
            return Err(EnqueueRefused::BatchTooLarge { given: new.len() });
        }
        let queues: BTreeSet<String> = new.iter().map(|new| new.job.queue.clone()).collect();
        let inserted = self.parts.store.insert(new).await?;
        for queue in queues {
            self.parts.wakes.enqueued(&queue);
        }
        inserted.into_iter().map(receipt).collect()
    }

    /// The job with its attempts, or `None` where there is none of that id.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn job(&self, id: JobId) -> Result<Option<JobView>, StoreError> {
        inspect::job(&*self.parts.store, id).await
    }

    /// Jobs, newest first.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn jobs(&self, filter: &JobFilter) -> Result<Vec<Job>, StoreError> {
        inspect::jobs(&*self.parts.store, filter).await
    }

    /// Waits until the job has finished or is held, at most `at_most`; then its
    /// receipt. At most 64 callers wait at once, the next gets its receipt at once.
    ///
    /// # Errors
    /// When there is no such job, or the database cannot be read.
    pub async fn wait(&self, id: JobId, at_most: Duration) -> Result<Waited, ActRefused> {
        let look = || async move {
            let stored = self.parts.store.load(&[id]).await?.into_iter().next().flatten();
            let job = stored.ok_or(ActRefused::NoSuchJob(id))?.job;
            let over = job.state.finished_at().is_some() || matches!(job.state, State::Held);
            Ok::<_, ActRefused>(over.then(|| Waited::Settled(Box::new(job))))
        };
        let waited = self.waits.until(&self.parts.wakes, id.0, at_most, look).await?;
        Ok(waited.unwrap_or(Waited::Receipt(Receipt { id, existing: true })))
    }

    /// Cancels a job. One that runs is asked to stop, and cancelled when it does.
    ///
    /// # Errors
    /// When it has completed or was discarded.
    pub async fn cancel(&self, id: JobId, act: &Act) -> Result<Job, ActRefused> {
        let job = self.act(id, Command::Cancel(safe(act))).await?;
        if matches!(job.state, State::Running { .. }) {
            self.parts.wakes.cancel(id);
        } else {
            self.parts.wakes.settled(id.0);
        }
        Ok(job)
    }

    /// Brings a discarded or cancelled job back with all its attempts, or makes a
    /// waiting one due now.
    ///
    /// # Errors
    /// When it was accepted, is in flight, or is held.
    pub async fn retry(&self, id: JobId, act: &Act) -> Result<Job, ActRefused> {
        let job = self.act(id, Command::Retry(safe(act))).await?;
        self.parts.wakes.enqueued(&job.queue);
        Ok(job)
    }

    /// Decides about a job whose last outcome is unknown.
    ///
    /// # Errors
    /// When its outcome is known, or it is in flight.
    pub async fn resolve(&self, id: JobId, resolution: Resolution, act: &Act) -> Result<Job, ActRefused> {
        let job = self.act(id, Command::Resolve(resolution, safe(act))).await?;
        match resolution {
            Resolution::Retry => self.parts.wakes.enqueued(&job.queue),
            Resolution::Accepted | Resolution::GiveUp => self.parts.wakes.settled(id.0),
        }
        Ok(job)
    }

    /// Stops the claiming from a queue, in every process. What runs goes on.
    ///
    /// # Errors
    /// When there is no such queue, or the database cannot be written.
    pub async fn pause(&self, queue: &str, act: &Act) -> Result<(), EnqueueRefused> {
        self.known_queue(queue)?;
        Ok(self.parts.store.pause(queue, self.now(), &safe(act)).await?)
    }

    /// Lets a queue be claimed from again.
    ///
    /// # Errors
    /// When there is no such queue, or the database cannot be written.
    pub async fn resume(&self, queue: &str) -> Result<(), EnqueueRefused> {
        self.known_queue(queue)?;
        self.parts.store.resume(queue).await?;
        self.parts.wakes.enqueued(queue);
        Ok(())
    }

    /// Which queues are paused, since when, by whom and why.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn paused(&self) -> Result<Vec<PausedQueue>, StoreError> {
        self.parts.store.paused().await
    }

    /// The queues that this process serves, sorted.
    pub fn queues(&self) -> &BTreeSet<String> {
        &self.parts.queues
    }

    /// The kinds that this process knows.
    pub fn registry(&self) -> &Registry {
        &self.parts.registry
    }

    /// The store behind this door, for what has no verb here.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.parts.store
    }

    /// What time it is by the database's clock.
    pub fn now(&self) -> Time {
        self.parts.clock.now()
    }

    /// Says that jobs of `queue` were committed elsewhere, for example in a
    /// caller's own transaction. Only a hint: a poll would find them too.
    pub fn wake(&self, queue: &str) {
        self.parts.wakes.enqueued(queue);
    }

    /// As [`Tidings::wake`], for the queue of the kind `K`.
    pub fn wake_kind<K: Kind>(&self) {
        if let Some(kind) = self.parts.registry.get(K::DECLARATION.name) {
            self.parts.wakes.enqueued(&kind.queue);
        }
    }

    pub(crate) async fn write_events(&self, events: Vec<NewEvent>) -> Result<Vec<Recorded>, StoreError> {
        self.records.write(events).await
    }

    pub(crate) fn door(&self) -> Door<'_> {
        Door { registry: &self.parts.registry, queues: &self.parts.queues, now: self.now() }
    }

    async fn insert_one(&self, new: NewJob) -> Result<Receipt, EnqueueRefused> {
        let queue = new.job.queue.clone();
        let inserted = self.inserts.write(vec![new]).await?;
        self.parts.wakes.enqueued(&queue);
        inserted.into_iter().next().map_or_else(
            || Err(EnqueueRefused::Store(StoreError::Unavailable("the writer gave no answer".into()))),
            receipt,
        )
    }

    async fn act(&self, id: JobId, command: Command<'_>) -> Result<Job, ActRefused> {
        match tell(&*self.parts.store, id, command, self.now()).await? {
            Told::Done(job) => Ok(*job),
            Told::NoSuchJob => Err(ActRefused::NoSuchJob(id)),
            Told::Refused(refusal) => Err(ActRefused::Refused(refusal)),
            Told::KeyTaken(holder) => Err(ActRefused::KeyTaken(holder)),
        }
    }

    fn known_queue(&self, queue: &str) -> Result<(), EnqueueRefused> {
        if self.parts.queues.contains(queue) {
            return Ok(());
        }
        let known = self.parts.queues.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        Err(EnqueueRefused::UnknownQueue { queue: text::safe(queue, limits::QUEUE_BYTES_MAX), known })
    }
}

/// What the insert of one job means for its caller.
pub(crate) fn receipt(inserted: Inserted) -> Result<Receipt, EnqueueRefused> {
    match inserted {
        Inserted::New(id) => Ok(Receipt { id, existing: false }),
        Inserted::Existing(id) => Ok(Receipt { id, existing: true }),
        Inserted::KeyReused(id) => Err(EnqueueRefused::KeyReused(id)),
    }
}

/// Names and reasons come from outside: bounded, one line.
fn safe(act: &Act) -> Act {
    Act { actor: text::safe(&act.actor, limits::TENANT_BYTES_MAX), reason: text::reason(&act.reason) }
}
