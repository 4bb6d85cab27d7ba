//! The signals that stop the program: the first one asks, the second one insists.

use crate::problem::{Problem, Sort};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// The signals that ask a process to stop.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// From now on they do not kill the process.
    pub(crate) fn catch() -> Result<Signals, Problem> {
        let caught = |kind| {
            signal(kind)
                .map_err(|error| Problem::new(Sort::Internal, format!("signals cannot be caught: {error}")))
        };
        Ok(Signals {
            terminate: caught(SignalKind::terminate())?,
            interrupt: caught(SignalKind::interrupt())?,
        })
    }

    /// The next one.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Turns true with the first signal.
pub(crate) fn requested() -> Result<watch::Receiver<bool>, Problem> {
    let mut signals = Signals::catch()?;
    let (requested, stopping) = watch::channel(false);
    tokio::spawn(async move {
        signals.next().await;
        requested.send_replace(true);
        // The sender stays, so that a receiver can tell "asked" from "nobody will ask".
        requested.closed().await;
    });
    Ok(stopping)
}

/// Waits for the first signal.
pub(crate) async fn wait(mut stopping: watch::Receiver<bool>) {
    if stopping.wait_for(|stopping| *stopping).await.is_err() {
        std::future::pending::<()>().await;
    }
}
