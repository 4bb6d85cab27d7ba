//! Hints between processes over `NOTIFY`.
//!
//! `NOTIFY` takes a lock at commit that is one for the whole cluster, so it is
//! never part of a transaction that writes jobs: one small statement of its own
//! carries every hint of the moment. Its payload is a list of words.

use super::connect::Connector;
use crate::store::{StoreError, Wake};
use futures_util::{StreamExt, stream};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio_postgres::{AsyncMessage, Client, Connection, NoTls};

const CHANNEL: &str = "tidings";
/// A payload must stay under 8,000 bytes.
const PAYLOAD_BYTES_MAX: usize = 7_000;
/// Hints that may wait for a slow receiver; more are dropped, the poll finds the work.
const HINTS_MAX: usize = 1_024;
/// Between two tries to listen.
const PAUSE: Duration = Duration::from_secs(1);

pub(super) async fn announce(client: &Client, wakes: &[Wake]) -> Result<(), StoreError> {
    for payload in payloads(wakes) {
        client.execute("SELECT pg_notify($1, $2)", &[&CHANNEL, &payload]).await.map_err(StoreError::from)?;
    }
    Ok(())
}

/// Listens on a connection of its own until the receiver is dropped.
pub(super) fn start(connector: Connector) -> mpsc::Receiver<Wake> {
    let (hints, receiver) = mpsc::channel(HINTS_MAX);
    tokio::spawn(async move {
        while !hints.is_closed() {
            if let Err(problem) = once(&connector, &hints).await {
                tracing::warn!(%problem, "not listening for wake-ups; polling goes on");
            }
            tokio::select! {
                () = hints.closed() => {}
                () = tokio::time::sleep(PAUSE) => {}
            }
        }
    });
    receiver
}

async fn once(connector: &Connector, hints: &mpsc::Sender<Wake>) -> Result<(), StoreError> {
    match connector.tls() {
        Some(tls) => {
            let (client, connection) =
                connector.config().connect(tls.clone()).await.map_err(StoreError::from)?;
            pass_on(client, connection, hints).await
        }
        None => {
            let (client, connection) = connector.config().connect(NoTls).await.map_err(StoreError::from)?;
            pass_on(client, connection, hints).await
        }
    }
}

async fn pass_on<S, T>(
    client: Client,
    mut connection: Connection<S, T>,
    hints: &mpsc::Sender<Wake>,
) -> Result<(), StoreError>
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    let mut messages = stream::poll_fn(move |context| connection.poll_message(context));
    let listen = client.batch_execute("LISTEN tidings");
    tokio::pin!(listen);
    let mut listening = false;
    loop {
        tokio::select! {
            answer = &mut listen, if !listening => {
                answer.map_err(StoreError::from)?;
                listening = true;
                // Whatever came before we listened is found by looking once.
                let _full = hints.try_send(Wake::Queue(String::new()));
            }
            message = messages.next() => match message {
                Some(Ok(AsyncMessage::Notification(note))) => {
                    for wake in parse(note.payload()) {
                        // Full: a hint is lost, and a poll later the work is found.
                        let _full = hints.try_send(wake);
                    }
                }
                Some(Ok(_)) => {}
                Some(Err(failed)) => return Err(failed.into()),
                None => return Err(StoreError::Unavailable("the listening connection was closed".into())),
            },
            () = hints.closed() => return Ok(()),
        }
    }
}

fn payloads(wakes: &[Wake]) -> Vec<String> {
    let mut payloads: Vec<String> = Vec::new();
    for wake in wakes {
        let word = match wake {
            Wake::Queue(queue) => format!("q:{queue}"),
            Wake::Cancel(id) => format!("c:{id}"),
            Wake::Events => "e:".to_owned(),
            Wake::Awaited(id) => format!("a:{}", id.simple()),
            Wake::Settled(id) => format!("s:{}", id.simple()),
        };
        match payloads.last_mut() {
            Some(last) if last.len() + word.len() < PAYLOAD_BYTES_MAX => {
                last.push(' ');
                last.push_str(&word);
            }
            _ => payloads.push(word),
        }
    }
    payloads
}

/// Words that are not understood (a newer program's) are left out.
fn parse(payload: &str) -> impl Iterator<Item = Wake> {
    payload.split(' ').filter_map(|word| match word.split_once(':')? {
        ("q", queue) => Some(Wake::Queue(queue.to_owned())),
        ("e", _) => Some(Wake::Events),
        ("c", id) => id.parse().ok().map(Wake::Cancel),
        ("a", id) => id.parse().ok().map(Wake::Awaited),
        ("s", id) => id.parse().ok().map(Wake::Settled),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_read_back_and_a_payload_stays_under_the_servers_limit() {
        let wakes: Vec<Wake> = (0..1_000).map(|n| Wake::Queue(format!("queue-{n}"))).collect();
        let payloads = payloads(&wakes);
        assert!(payloads.len() > 1 && payloads.iter().all(|payload| payload.len() < 8_000));
        let read: Vec<Wake> = payloads.iter().flat_map(|payload| parse(payload)).collect();
        assert_eq!(read, wakes);
        assert_eq!(parse("x:future q:default").collect::<Vec<_>>(), [Wake::Queue("default".into())]);
    }
}
