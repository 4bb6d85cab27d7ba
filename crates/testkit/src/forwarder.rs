//! A TCP forwarder on 127.0.0.1: an address that can be pointed at another server, as
//! after a failover, and that can lose an answer.
//!
//! It knows bytes, not protocols. Every connection ends when the [`Forwarder`] is dropped.
//! Absent on purpose: delays and bandwidth.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Passes connections on to a server.
#[derive(Debug)]
pub struct Forwarder {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    target: Mutex<SocketAddr>,
    /// What a client says before an answer is lost.
    to_lose: Mutex<Option<Vec<u8>>>,
    /// How many answers were lost.
    lost: watch::Sender<usize>,
    /// Changes when every connection is to be cut.
    cut: watch::Sender<()>,
}

impl Forwarder {
    /// Listens on a free port, and passes on to `target`.
    ///
    /// # Panics
    /// If there is no free port.
    pub async fn to(target: SocketAddr) -> Forwarder {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            target: Mutex::new(target),
            to_lose: Mutex::new(None),
            lost: watch::Sender::new(0),
            cut: watch::Sender::new(()),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Forwarder { address, shared, accepting }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Passes on to another server from now on, and cuts every connection that there is.
    pub fn point_at(&self, target: SocketAddr) {
        *lock(&self.shared.target) = target;
        self.cut();
    }

    /// Cuts every connection that there is.
    pub fn cut(&self) {
        self.shared.cut.send_replace(());
    }

    /// Loses one answer: when a client says `words` (in one piece), they are passed on, what
    /// the server answers is swallowed, and the connection is closed.
    pub fn lose_the_answer_to(&self, words: &[u8]) {
        *lock(&self.shared.to_lose) = Some(words.to_vec());
    }

    /// How many answers were lost.
    pub fn lost(&self) -> usize {
        *self.shared.lost.borrow()
    }
}

impl Shared {
    /// Whether the answer to this is to be lost; once.
    fn is_to_lose(&self, said: &[u8]) -> bool {
        let has = |words: &mut Vec<u8>| said.windows(words.len()).any(|window| window == words);
        lock(&self.to_lose).take_if(has).is_some()
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((client, _)) = listener.accept().await {
        let (target, cut) = (*lock(&shared.target), shared.cut.subscribe());
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            // Refused: the client sees its connection closed, as from a server that is away.
            if let Ok(server) = TcpStream::connect(target).await {
                pass_on(client, server, &shared, cut).await;
            }
        });
    }
}

/// Until one side closes or the connection is cut.
async fn pass_on(client: TcpStream, server: TcpStream, shared: &Shared, mut cut: watch::Receiver<()>) {
    let (client_says, client_hears) = client.into_split();
    let (server_says, server_hears) = server.into_split();
    let swallowing = watch::Sender::new(false);
    tokio::select! {
        () = requests(client_says, server_hears, shared, &swallowing) => {}
        () = answers(server_says, client_hears, shared, swallowing.subscribe()) => {}
        _changed_or_gone = cut.changed() => {}
    }
}

async fn requests(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    shared: &Shared,
    swallowing: &watch::Sender<bool>,
) {
    let mut bytes = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = from.read(&mut bytes).await {
        let said = &bytes[..read];
        if shared.is_to_lose(said) {
            swallowing.send_replace(true);
        }
        if to.write_all(said).await.is_err() {
            return;
        }
    }
}

async fn answers(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    shared: &Shared,
    swallowing: watch::Receiver<bool>,
) {
    let mut bytes = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = from.read(&mut bytes).await {
        if *swallowing.borrow() {
            shared.lost.send_modify(|lost| *lost += 1);
            return;
        }
        if to.write_all(&bytes[..read]).await.is_err() {
            return;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
