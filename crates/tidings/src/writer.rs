//! Group commit: what many callers want written at the same time is written with
//! one statement and one fsync. Nobody is made to wait for company: a group is
//! whatever came while the one before it was being written.
//!
//! A caller is answered after the commit, never before.

use crate::store::outbox::NewEvent;
use crate::store::{Change, NewJob, StoreError};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

/// Items that are written together at most.
const GROUP_MAX: usize = 1_000;
/// Bytes that are written together at most, unless one call alone brings more.
const GROUP_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Calls that may queue before a caller waits to hand its own over.
const QUEUE_MAX: usize = 4_096;
/// Bytes that may queue, in KiB: what is held in memory is bounded by size as well as by number.
const QUEUE_KIB_MAX: u32 = 64 * 1024;

/// Writes a group; one result for each item, in order.
type Write<T, R> = Arc<dyn Fn(Vec<T>) -> Writing<R> + Send + Sync>;
/// A write under way.
pub(crate) type Writing<R> = BoxFuture<'static, Result<Vec<R>, StoreError>>;

/// How much memory an item holds, about.
pub(crate) trait Weigh {
    /// In bytes.
    fn bytes(&self) -> usize;
}

/// What an item holds besides its text.
const ITEM_BYTES: usize = 512;

impl Weigh for NewJob {
    fn bytes(&self) -> usize {
        ITEM_BYTES + self.args.len()
    }
}

impl Weigh for NewEvent {
    fn bytes(&self) -> usize {
        ITEM_BYTES + self.event.data.len()
    }
}

impl Weigh for Change {
    /// Evidence is bounded: an excerpt and a reason.
    fn bytes(&self) -> usize {
        ITEM_BYTES * (1 + self.logged.len())
    }
}

/// Collects items into groups and has them written.
pub(crate) struct GroupWriter<T, R> {
    queue: mpsc::Sender<Call<T, R>>,
    room: Arc<Semaphore>,
}

impl<T, R> Clone for GroupWriter<T, R> {
    fn clone(&self) -> Self {
        GroupWriter { queue: self.queue.clone(), room: Arc::clone(&self.room) }
    }
}

struct Call<T, R> {
    items: Vec<T>,
    bytes: usize,
    /// Given back when the call is written and answered.
    _room: OwnedSemaphorePermit,
    answer: oneshot::Sender<Result<Vec<R>, StoreError>>,
}

impl<T: Clone + Weigh + Send + 'static, R: Send + 'static> GroupWriter<T, R> {
    /// Starts `lanes` loops that write: more than one where the database takes
    /// several writers, so that a group can form while another one is committed.
    pub(crate) fn start(
        lanes: usize,
        write: impl Fn(Vec<T>) -> Writing<R> + Send + Sync + 'static,
    ) -> GroupWriter<T, R> {
        let write: Write<T, R> = Arc::new(write);
        let (queue, calls) = mpsc::channel(QUEUE_MAX);
        let calls = Arc::new(Mutex::new(calls));
        (0..lanes).for_each(|_| {
            tokio::spawn(run(Arc::clone(&calls), Arc::clone(&write)));
        });
        let room = usize::try_from(QUEUE_KIB_MAX).unwrap_or(usize::MAX);
        GroupWriter { queue, room: Arc::new(Semaphore::new(room)) }
    }

    /// Writes `items` together with whatever else is waiting.
    pub(crate) async fn write(&self, items: Vec<T>) -> Result<Vec<R>, StoreError> {
        let (answer, result) = oneshot::channel();
        let gone = || StoreError::Unavailable("the writer has stopped".into());
        let bytes = items.iter().map(Weigh::bytes).sum();
        let kib = u32::try_from(bytes / 1024 + 1).unwrap_or(u32::MAX).min(QUEUE_KIB_MAX);
        let room = Arc::clone(&self.room).acquire_many_owned(kib).await.map_err(|_| gone())?;
        self.queue.send(Call { items, bytes, _room: room, answer }).await.map_err(|_| gone())?;
        result.await.unwrap_or_else(|_| Err(gone()))
    }
}

async fn run<T: Clone + Send + 'static, R: Send + 'static>(
    calls: Arc<Mutex<mpsc::Receiver<Call<T, R>>>>,
    write: Write<T, R>,
) {
    loop {
        let Some(group) = next_group(&mut *calls.lock().await).await else { return };
        write_group(group, &write).await;
    }
}

async fn next_group<T, R>(calls: &mut mpsc::Receiver<Call<T, R>>) -> Option<Vec<Call<T, R>>> {
    let mut group = vec![calls.recv().await?];
    let (mut items, mut bytes) = (group[0].items.len(), group[0].bytes);
    while items < GROUP_MAX
        && bytes < GROUP_BYTES_MAX
        && let Ok(call) = calls.try_recv()
    {
        items += call.items.len();
        bytes += call.bytes;
        group.push(call);
    }
    Some(group)
}

async fn write_group<T: Clone + Send + 'static, R>(group: Vec<Call<T, R>>, write: &Write<T, R>) {
    let items: Vec<T> = group.iter().flat_map(|call| call.items.iter().cloned()).collect();
    match write(items).await {
        Ok(results) => {
            let mut results = results.into_iter();
            for call in group {
                let own = results.by_ref().take(call.items.len()).collect();
                // A caller that has gone loses its answer, not its write.
                let _gone = call.answer.send(Ok(own));
            }
        }
        // One call that the database refuses must not take the others with it.
        Err(error) if !error.is_transient() && group.len() > 1 => {
            for call in group {
                let result = write(call.items).await;
                let _gone = call.answer.send(result);
            }
        }
        Err(error) => {
            for call in group {
                let _gone = call.answer.send(Err(error.clone()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    impl Weigh for i32 {
        fn bytes(&self) -> usize {
            4
        }
    }

    /// As heavy as it says, in MiB.
    #[derive(Clone)]
    struct Heavy(usize);

    impl Weigh for Heavy {
        fn bytes(&self) -> usize {
            self.0 * 1024 * 1024
        }
    }

    #[tokio::test]
    async fn a_group_is_bounded_by_its_bytes_and_a_call_heavier_than_everything_still_passes() {
        let writer = GroupWriter::start(1, |items: Vec<Heavy>| {
            async move {
                let whole: usize = items.iter().map(|item| item.0).sum();
                Ok(vec![whole; items.len()])
            }
            .boxed()
        });
        let calls = (0..40).map(|_| writer.write(vec![Heavy(3)]));
        for groups in futures_util::future::join_all(calls).await {
            assert!(groups.unwrap()[0] <= 11, "8 MiB and the call that crosses them");
        }
        assert_eq!(writer.write(vec![Heavy(1_000)]).await.unwrap(), [1_000]);
    }

    fn writer(refuses: i32) -> GroupWriter<i32, i32> {
        GroupWriter::start(1, move |items: Vec<i32>| {
            async move {
                if items.contains(&refuses) {
                    return Err(StoreError::Refused("a constraint".into()));
                }
                Ok(items.iter().map(|item| item * 10).collect())
            }
            .boxed()
        })
    }

    #[tokio::test]
    async fn each_caller_gets_the_results_of_its_own_items() {
        let writer = writer(-1);
        let calls = (0..100).map(|n| writer.write(vec![n, n + 1]));
        for (n, result) in (0..).zip(futures_util::future::join_all(calls).await) {
            assert_eq!(result.unwrap(), [n * 10, n * 10 + 10]);
        }
    }

    #[tokio::test]
    async fn a_call_that_is_refused_does_not_take_its_group_with_it() {
        let writer = writer(3);
        let calls = (0..10).map(|n| writer.write(vec![n]));
        let results = futures_util::future::join_all(calls).await;
        let refused: Vec<usize> = (0..10).filter(|n| results[*n].is_err()).collect();
        assert_eq!(refused, [3]);
    }
}
