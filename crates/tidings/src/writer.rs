//! Group commit: what many callers want written at the same time is written with
//! one statement and one fsync. Nobody is made to wait for company: a group is
//! whatever came while the one before it was being written.
//!
//! A caller is answered after the commit, never before.

use crate::store::StoreError;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use tokio::sync::{Mutex, mpsc, oneshot};

/// Items that are written together at most.
const GROUP_MAX: usize = 1_000;
/// Calls that may queue before a caller waits to hand its own over.
const QUEUE_MAX: usize = 4_096;

/// Writes a group; one result for each item, in order.
type Write<T, R> = Arc<dyn Fn(Vec<T>) -> Writing<R> + Send + Sync>;
/// A write under way.
pub(crate) type Writing<R> = BoxFuture<'static, Result<Vec<R>, StoreError>>;

/// Collects items into groups and has them written.
pub(crate) struct GroupWriter<T, R> {
    queue: mpsc::Sender<Call<T, R>>,
}

impl<T, R> Clone for GroupWriter<T, R> {
    fn clone(&self) -> Self {
        GroupWriter { queue: self.queue.clone() }
    }
}

struct Call<T, R> {
    items: Vec<T>,
    answer: oneshot::Sender<Result<Vec<R>, StoreError>>,
}

impl<T: Clone + Send + 'static, R: Send + 'static> GroupWriter<T, R> {
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
        GroupWriter { queue }
    }

    /// Writes `items` together with whatever else is waiting.
    pub(crate) async fn write(&self, items: Vec<T>) -> Result<Vec<R>, StoreError> {
        let (answer, result) = oneshot::channel();
        let gone = || StoreError::Unavailable("the writer has stopped".into());
        self.queue.send(Call { items, answer }).await.map_err(|_| gone())?;
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
    let mut items = group[0].items.len();
    while items < GROUP_MAX
        && let Ok(call) = calls.try_recv()
    {
        items += call.items.len();
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
