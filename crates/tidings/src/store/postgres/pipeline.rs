//! A transaction whose first and last statements travel together with `BEGIN` and
//! `COMMIT`: two round trips instead of four, on the path of every claim.
//!
//! `BEGIN` is sent as text, which the pool knows nothing of. So the connection goes
//! back to the pool only after the `COMMIT` was answered; on an error, or when the
//! future is dropped half-way, the connection is closed instead, and the server
//! rolls back.

use crate::store::StoreError;
use deadpool_postgres::Client;
use futures_util::future::join;

/// An open transaction on a connection of its own.
pub(super) struct Pipeline {
    client: Option<Client>,
}

impl Pipeline {
    /// Begins, and runs `first` in the same round trip.
    pub(super) async fn begin<T>(
        client: Client,
        first: impl AsyncFnOnce(&Client) -> Result<T, StoreError>,
    ) -> Result<(Pipeline, T), StoreError> {
        let open = Pipeline { client: Some(client) };
        let client = open.client();
        let (begun, result) = join(client.batch_execute("BEGIN"), first(client)).await;
        begun.map_err(StoreError::from)?;
        let result = result?;
        Ok((open, result))
    }

    /// Runs `last`, and commits in the same round trip. When `last` fails, the
    /// server makes a `ROLLBACK` of the `COMMIT`, and the failure is what is told.
    pub(super) async fn commit<T>(
        mut self,
        last: impl AsyncFnOnce(&Client) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let client = self.client();
        let (result, committed) = join(last(client), client.batch_execute("COMMIT")).await;
        let result = result?;
        committed.map_err(StoreError::from)?;
        // Whole again: back to the pool.
        drop(self.client.take());
        Ok(result)
    }

    /// For what runs in between.
    pub(super) fn client(&self) -> &Client {
        self.client.as_ref().expect("the client is there until the commit, which consumes the pipeline")
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        if let Some(client) = self.client.take() {
            drop(Client::take(client));
        }
    }
}

/// Prepares statements ahead, so that running them later is one message each.
pub(super) async fn prepare(client: &Client, texts: &[&str]) -> Result<(), StoreError> {
    for text in texts {
        client.prepare_cached(text).await.map_err(StoreError::from)?;
    }
    Ok(())
}
