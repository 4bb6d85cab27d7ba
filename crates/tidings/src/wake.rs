//! Wake-ups are hints. A lost one costs a poll, never a job.
//!
//! Inside a process they are signals; between processes the store carries them,
//! gathered so that a burst of enqueues is a handful of messages.

use crate::store::{Store, Wake};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tidings_core::id::JobId;
use tokio::sync::{Notify, mpsc, watch};
use uuid::Uuid;

/// Least time between two messages to other processes.
const ANNOUNCE_GAP: Duration = Duration::from_millis(5);
/// Hints that may wait to be announced; more are dropped.
const OUTBOUND_MAX: usize = 4_096;
/// Jobs that other processes wait for, as far as this one remembers.
const AWAITED_MAX: usize = 4_096;
/// Jobs that settled here lately: a process that began to wait just before may not
/// have been heard yet when its job was done.
const SETTLED_MAX: usize = 4_096;

/// Where hints come together.
#[derive(Clone)]
pub(crate) struct Wakes {
    inner: Arc<Inner>,
    outbound: mpsc::Sender<Wake>,
}

#[derive(Default)]
struct Inner {
    queues: Mutex<HashMap<String, Arc<Notify>>>,
    events: Arc<Notify>,
    waiters: Mutex<HashMap<Uuid, Vec<Arc<Notify>>>>,
    /// Changes whenever somebody asked to cancel a running job.
    cancelled: watch::Sender<()>,
    elsewhere: Mutex<Elsewhere>,
    /// Lets the task that takes hints in end with the last user of these wake-ups.
    alive: watch::Sender<()>,
}

/// What has to be known so that waiters in other processes are told.
#[derive(Default)]
struct Elsewhere {
    awaited: HashSet<Uuid>,
    settled_lately: VecDeque<Uuid>,
}

impl Wakes {
    /// Connects this process's hints to the others'.
    pub(crate) fn start(store: Arc<dyn Store>) -> Wakes {
        let (outbound, pending) = mpsc::channel(OUTBOUND_MAX);
        let wakes = Wakes { inner: Arc::new(Inner::default()), outbound };
        if let Some(inbound) = store.listen() {
            let alive = wakes.inner.alive.subscribe();
            tokio::spawn(take_in(Arc::downgrade(&wakes.inner), wakes.outbound.downgrade(), inbound, alive));
        }
        tokio::spawn(announce(store, pending));
        wakes
    }

    /// The signal of a queue.
    pub(crate) fn queue(&self, queue: &str) -> Arc<Notify> {
        let mut queues = lock(&self.inner.queues);
        Arc::clone(queues.entry(queue.to_owned()).or_default())
    }

    /// Changes when a running job may have been cancelled, here or elsewhere.
    pub(crate) fn cancelled(&self) -> watch::Receiver<()> {
        self.inner.cancelled.subscribe()
    }

    /// Something is due in a queue.
    pub(crate) fn enqueued(&self, queue: &str) {
        self.inner.wake_queue(queue);
        self.tell(Wake::Queue(queue.to_owned()));
    }

    /// The signal that there may be events to fan out.
    pub(crate) fn events(&self) -> Arc<Notify> {
        Arc::clone(&self.inner.events)
    }

    /// Events were recorded.
    pub(crate) fn recorded(&self) {
        self.inner.events.notify_one();
        self.tell(Wake::Events);
    }

    /// Somebody asked to cancel a running job.
    pub(crate) fn cancel(&self, id: JobId) {
        self.inner.cancelled.send_replace(());
        self.tell(Wake::Cancel(id));
    }

    /// A job has finished or is held, or an event is fanned out.
    pub(crate) fn settled(&self, id: Uuid) {
        self.inner.wake_waiters(id);
        if lock(&self.inner.elsewhere).settled(id) {
            self.tell(Wake::Settled(id));
        }
    }

    /// A signal for the moment at which the job or event settles, here or elsewhere.
    pub(crate) fn wait_for(&self, id: Uuid) -> Arc<Notify> {
        let signal = Arc::new(Notify::new());
        lock(&self.inner.waiters).entry(id).or_default().push(Arc::clone(&signal));
        self.tell(Wake::Awaited(id));
        signal
    }

    /// Nobody waits on this signal any more.
    pub(crate) fn forget(&self, id: Uuid, signal: &Arc<Notify>) {
        let mut waiters = lock(&self.inner.waiters);
        if let Some(signals) = waiters.get_mut(&id) {
            signals.retain(|other| !Arc::ptr_eq(other, signal));
            if signals.is_empty() {
                waiters.remove(&id);
            }
        }
    }

    fn tell(&self, wake: Wake) {
        // Full or stopped: a hint is lost, and a poll later the work is found.
        let _lost = self.outbound.try_send(wake);
    }
}

impl Inner {
    /// An empty name is every queue, and the events: hints may have been missed.
    fn wake_queue(&self, queue: &str) {
        let queues = lock(&self.queues);
        for (_, signal) in queues.iter().filter(|(name, _)| queue.is_empty() || *name == queue) {
            signal.notify_one();
        }
    }

    fn wake_waiters(&self, id: Uuid) {
        for signal in lock(&self.waiters).get(&id).into_iter().flatten() {
            signal.notify_one();
        }
    }

    /// Takes a hint of another process; what is to be answered.
    fn take(&self, wake: Wake) -> Option<Wake> {
        match wake {
            Wake::Queue(queue) => {
                self.wake_queue(&queue);
                if queue.is_empty() {
                    self.events.notify_one();
                }
            }
            Wake::Settled(id) => self.wake_waiters(id),
            Wake::Events => self.events.notify_one(),
            Wake::Cancel(_) => self.cancelled.send_modify(|()| ()),
            Wake::Awaited(id) => return lock(&self.elsewhere).awaited(id).then_some(Wake::Settled(id)),
        }
        None
    }
}

impl Elsewhere {
    /// A job settled here; whether somebody elsewhere waits for it.
    fn settled(&mut self, id: Uuid) -> bool {
        if self.settled_lately.len() == SETTLED_MAX {
            self.settled_lately.pop_front();
        }
        self.settled_lately.push_back(id);
        self.awaited.remove(&id)
    }

    /// Somebody elsewhere waits for a job; whether it settled here just before.
    fn awaited(&mut self, id: Uuid) -> bool {
        if self.settled_lately.contains(&id) {
            return true;
        }
        if self.awaited.len() == AWAITED_MAX {
            // Whoever is forgotten here still polls.
            self.awaited.clear();
        }
        self.awaited.insert(id);
        false
    }
}

/// Ends with the last handle of the wake-ups, and with it the listening connection.
async fn take_in(
    inner: Weak<Inner>,
    outbound: mpsc::WeakSender<Wake>,
    mut inbound: mpsc::Receiver<Wake>,
    mut alive: watch::Receiver<()>,
) {
    loop {
        let wake = tokio::select! {
            wake = inbound.recv() => wake,
            _gone = alive.changed() => None,
        };
        let (Some(wake), Some(inner)) = (wake, inner.upgrade()) else { return };
        if let (Some(answer), Some(outbound)) = (inner.take(wake), outbound.upgrade()) {
            let _lost = outbound.try_send(answer);
        }
    }
}

async fn announce(store: Arc<dyn Store>, mut pending: mpsc::Receiver<Wake>) {
    while let Some(first) = pending.recv().await {
        let mut wakes = vec![first];
        while let Ok(wake) = pending.try_recv() {
            if !wakes.contains(&wake) {
                wakes.push(wake);
            }
        }
        if let Err(problem) = store.announce(&wakes).await {
            tracing::debug!(%problem, "wake-ups were not announced; polling goes on");
        }
        tokio::time::sleep(ANNOUNCE_GAP).await;
    }
}

/// A panic while one of these was held left a map of signals, which is as good as before.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random;
    use tidings_core::time::Time;

    #[test]
    fn who_begins_to_wait_just_after_the_end_is_told_and_who_waits_before_it_too() {
        let mut elsewhere = Elsewhere::default();
        let [early, late] = [random::job_id(Time(0)).0, random::job_id(Time(0)).0];
        assert!(!elsewhere.awaited(early), "it has not settled yet");
        assert!(elsewhere.settled(early), "somebody waits for it");
        assert!(!elsewhere.settled(late), "nobody waits for it yet");
        assert!(elsewhere.awaited(late), "it settled just before");
    }

    #[tokio::test]
    async fn who_begins_to_listen_looks_for_jobs_and_events_that_it_was_not_told_of() {
        let inner = Inner::default();
        assert_eq!(inner.take(Wake::Queue(String::new())), None);
        inner.events.notified().await;
    }

    #[test]
    fn what_is_remembered_of_others_is_bounded() {
        let mut elsewhere = Elsewhere::default();
        for _ in 0..3 * SETTLED_MAX {
            elsewhere.settled(random::job_id(Time(0)).0);
            elsewhere.awaited(random::job_id(Time(0)).0);
        }
        assert_eq!(elsewhere.settled_lately.len(), SETTLED_MAX);
        assert!(elsewhere.awaited.len() <= AWAITED_MAX);
    }
}
