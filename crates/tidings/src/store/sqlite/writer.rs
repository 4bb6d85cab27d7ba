//! One thread that writes, and commits everything that waits at once: one fsync
//! for many callers. Each caller's work is in a savepoint of its own, so that one
//! that fails takes nobody else with it. A caller is answered after the commit.

use super::error;
use crate::store::StoreError;
use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};

/// Most callers that share a commit.
const GROUP_MAX: usize = 256;
/// Callers that may queue before a caller waits.
const QUEUE_MAX: usize = 4_096;

/// Hands work to the writing thread. When the last handle goes, the thread ends.
pub(super) struct Writer {
    queue: mpsc::Sender<Box<dyn Work>>,
}

/// One caller's work.
trait Work: Send {
    /// Does it inside the group's transaction; whether it is to be kept.
    fn run(&mut self, tx: &Connection) -> bool;
    /// Tells the caller, once it is known whether the group was committed.
    fn finish(self: Box<Self>, committed: Result<(), StoreError>);
}

struct Call<T, F> {
    work: Option<F>,
    result: Option<Result<T, StoreError>>,
    answer: oneshot::Sender<Result<T, StoreError>>,
}

impl<T: Send, F: FnOnce(&Connection) -> Result<T, StoreError> + Send> Work for Call<T, F> {
    fn run(&mut self, tx: &Connection) -> bool {
        let Some(work) = self.work.take() else { return false };
        let result = work(tx);
        let keep = result.is_ok();
        self.result = Some(result);
        keep
    }

    fn finish(self: Box<Self>, committed: Result<(), StoreError>) {
        let result = match (self.result, committed) {
            (Some(Err(error)), _) | (_, Err(error)) => Err(error),
            (Some(Ok(value)), Ok(())) => Ok(value),
            (None, Ok(())) => Err(StoreError::Unavailable("the work was never run".into())),
        };
        // The caller may have gone; what is committed stays committed.
        let _gone = self.answer.send(result);
    }
}

impl Writer {
    pub(super) fn start(connection: Connection) -> Result<Writer, StoreError> {
        let (queue, mut work) = mpsc::channel(QUEUE_MAX);
        std::thread::Builder::new()
            .name("tidings-sqlite-writer".into())
            .spawn(move || run(connection, &mut work))
            .map_err(|error| StoreError::Unavailable(format!("no thread for the writer: {error}")))?;
        Ok(Writer { queue })
    }

    /// Runs `work` in a transaction; its result, after the commit.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, result) = oneshot::channel();
        let call = Box::new(Call { work: Some(work), result: None, answer });
        self.queue.send(call).await.map_err(|_| writer_gone())?;
        result.await.unwrap_or_else(|_| Err(writer_gone()))
    }
}

fn writer_gone() -> StoreError {
    StoreError::Unavailable("the writing thread has stopped".into())
}

fn run(mut connection: Connection, queue: &mut mpsc::Receiver<Box<dyn Work>>) {
    while let Some(first) = queue.blocking_recv() {
        let mut group = vec![first];
        let committed = write_group(&mut connection, &mut group, queue);
        for work in group {
            work.finish(committed.clone());
        }
    }
}

/// Takes up whoever comes while the group is being written.
fn write_group(
    connection: &mut Connection,
    group: &mut Vec<Box<dyn Work>>,
    queue: &mut mpsc::Receiver<Box<dyn Work>>,
) -> Result<(), StoreError> {
    let mut tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(error)?;
    let mut next = 0;
    while next < group.len() {
        let savepoint = tx.savepoint().map_err(error)?;
        let keep = group[next].run(&savepoint);
        if keep {
            savepoint.commit().map_err(error)?;
        } else {
            drop(savepoint);
            if tx.is_autocommit() {
                // As on a full disk: what follows would be committed alone, and told that it is not.
                return Err(StoreError::Unavailable(
                    "the transaction was rolled back by SQLite because of somebody else's statement".into(),
                ));
            }
        }
        next += 1;
        if group.len() < GROUP_MAX
            && let Ok(work) = queue.try_recv()
        {
            group.push(work);
        }
    }
    tx.commit().map_err(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs three callers' statements in one group; whether each was told that it is done.
    async fn run_together(statements: [&'static str; 3]) -> (Vec<bool>, Vec<i64>) {
        let directory = tempfile::tempdir().unwrap();
        let open = || Connection::open(directory.path().join("t.db")).unwrap();
        open().execute_batch("CREATE TABLE t (n INTEGER PRIMARY KEY)").unwrap();
        let writer = Writer::start(open()).unwrap();
        let (everybody_is_here, wait) = std::sync::mpsc::channel::<()>();
        let first = writer.write(move |_| {
            wait.recv().unwrap();
            Ok(())
        });
        let others =
            statements.map(|text| Box::pin(writer.write(move |tx| tx.execute_batch(text).map_err(error))));
        let (_, told) = futures_util::future::join(first, async {
            let mut others = futures_util::future::join_all(others);
            // Once polled, each is in the queue.
            std::future::poll_fn(|context| {
                assert!(std::pin::Pin::new(&mut others).poll(context).is_pending());
                std::task::Poll::Ready(())
            })
            .await;
            everybody_is_here.send(()).unwrap();
            others.await
        })
        .await;
        let reader = open();
        let mut rows = reader.prepare("SELECT n FROM t ORDER BY n").unwrap();
        let rows = rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        (told.iter().map(Result::is_ok).collect(), rows)
    }

    #[tokio::test]
    async fn one_callers_mistake_takes_nobody_else_with_it() {
        let texts = ["INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (9), (9)", "INSERT INTO t VALUES (3)"];
        assert_eq!(run_together(texts).await, (vec![true, false, true], vec![1, 3]));
    }

    /// As on a full disk: SQLite itself rolls the transaction of all of them back.
    #[tokio::test]
    async fn what_is_told_is_true_when_sqlite_gave_the_transaction_up() {
        let texts = [
            "INSERT INTO t VALUES (1)",
            "INSERT OR ROLLBACK INTO t VALUES (9), (9)",
            "INSERT INTO t VALUES (3)",
        ];
        assert_eq!(run_together(texts).await, (vec![false, false, true], vec![3]));
    }
}
