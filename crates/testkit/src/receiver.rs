//! An HTTP/1.1 receiver on 127.0.0.1 that does exactly what its script says.
//!
//! It is a small server of its own over raw TCP, because an HTTP library cannot
//! answer half a status line, reset a connection at a chosen byte or leave a
//! request unread. It counts what arrived on the wire: connections, and every
//! request whose head came in, whatever became of it afterwards.
//!
//! Every connection ends when the [`Receiver`] is dropped. Absent on purpose:
//! HTTP/2, keep-alive semantics of a real server, and any opinion on a request.

mod connection;
mod head;
mod play;
mod step;
mod tls;

pub use step::Step;
pub use tls::{Tls, authority};

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How long an awaiting helper waits before it panics with what was seen.
const WAIT_LIMIT: Duration = Duration::from_secs(10);

/// One request as it arrived.
#[derive(Clone, PartialEq, Eq)]
pub struct Received {
    /// Request method.
    pub method: String,
    /// Request target as sent: path and query.
    pub path: String,
    /// Header fields in the order sent, names in the case sent, values as bytes.
    pub headers: Vec<(String, Vec<u8>)>,
    /// What was read of the body; steps that do not read it leave it empty.
    pub body: Vec<u8>,
    /// The body was read to its end.
    pub body_complete: bool,
    /// 0 for the first request that arrived at this receiver, and so on.
    pub order: usize,
    /// 0 for the first connection that was accepted, and so on.
    pub connection: usize,
}

impl Received {
    /// The first header of that name (in any case), if it is UTF-8.
    pub fn header(&self, name: &str) -> Option<&str> {
        let (_, value) = self.headers.iter().find(|(given, _)| given.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(value).ok()
    }
}

impl fmt::Debug for Received {
    /// As text, and the beginning of the body only: it is for a person.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Received { method, path, headers, body, body_complete, order, connection } = self;
        let end = if *body_complete { "complete" } else { "incomplete" };
        write!(formatter, "request {order} on connection {connection}: {method} {path}")?;
        for (name, value) in headers {
            write!(formatter, " | {name}: {}", String::from_utf8_lossy(value))?;
        }
        let shown = String::from_utf8_lossy(&body[..body.len().min(200)]);
        write!(formatter, " | body ({} bytes, {end}): {shown}", body.len())
    }
}

/// A running receiver. Dropping it ends every connection and the listener.
pub struct Receiver {
    addr: SocketAddr,
    encrypted: bool,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

impl Receiver {
    /// Listens on a free port of 127.0.0.1. Each request takes the next step of
    /// the script; the last step repeats.
    ///
    /// # Panics
    /// If the script is empty or no port can be had.
    pub async fn start(script: impl IntoIterator<Item = Step>) -> Receiver {
        Receiver::start_on("127.0.0.1:0", script).await
    }

    /// As [`Receiver::start`], behind TLS. [`Receiver::url`] then begins with `https`.
    ///
    /// # Panics
    /// As [`Receiver::start`].
    pub async fn start_tls(tls: Tls, script: impl IntoIterator<Item = Step>) -> Receiver {
        Receiver::listen("127.0.0.1:0", Some(tls), script.into_iter().collect()).await
    }

    /// As [`Receiver::start`], on another loopback address (`127.0.0.2:0`).
    ///
    /// # Panics
    /// As [`Receiver::start`].
    pub async fn start_on(address: &str, script: impl IntoIterator<Item = Step>) -> Receiver {
        Receiver::listen(address, None, script.into_iter().collect()).await
    }

    async fn listen(address: &str, tls: Option<Tls>, script: VecDeque<Step>) -> Receiver {
        let listener = TcpListener::bind(address).await.expect("a loopback port can be had");
        let addr = listener.local_addr().expect("a bound listener has an address");
        let shared = Arc::new(Shared::new(script));
        let acceptor = tls.map(tls::acceptor);
        let accepting = tokio::spawn(connection::accept_all(listener, acceptor, Arc::clone(&shared)));
        Receiver { addr, encrypted: tls.is_some(), shared, accepting }
    }

    /// Address that it listens on.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// `http://127.0.0.1:PORT` followed by `path`.
    pub fn url(&self, path: &str) -> String {
        let scheme = if self.encrypted { "https" } else { "http" };
        format!("{scheme}://{}{path}", self.addr)
    }

    /// Every request whose head arrived, in that order.
    pub fn requests(&self) -> Vec<Received> {
        self.shared.lock().requests.clone()
    }

    /// How many connections were accepted.
    pub fn connections(&self) -> usize {
        self.shared.lock().connections
    }

    /// How many of them the client has closed or reset while they were open here.
    pub fn closed_by_client(&self) -> usize {
        self.shared.lock().closed_by_client
    }

    /// Waits until at least `count` requests have arrived and returns them all.
    ///
    /// # Panics
    /// After 10 seconds, with what was seen.
    pub async fn wait_for(&self, count: usize) -> Vec<Received> {
        self.wait("requests", |seen| seen.requests.len() >= count, count).await;
        self.requests()
    }

    /// Waits until the bodies of at least `count` requests were read to their end.
    ///
    /// # Panics
    /// After 10 seconds, with what was seen.
    pub async fn wait_for_bodies(&self, count: usize) -> Vec<Received> {
        let complete = |seen: &Seen| seen.requests.iter().filter(|request| request.body_complete).count();
        self.wait("complete bodies", move |seen| complete(seen) >= count, count).await;
        self.requests()
    }

    /// Waits until at least `count` connections were accepted.
    ///
    /// # Panics
    /// After 10 seconds, with what was seen.
    pub async fn wait_for_connections(&self, count: usize) {
        self.wait("connections", |seen| seen.connections >= count, count).await;
    }

    /// Waits until the client has closed or reset at least `count` connections.
    ///
    /// # Panics
    /// After 10 seconds, with what was seen.
    pub async fn wait_for_closed_by_client(&self, count: usize) {
        self.wait("connections closed by the client", |seen| seen.closed_by_client >= count, count).await;
    }

    async fn wait(&self, what: &str, reached: impl Fn(&Seen) -> bool, count: usize) {
        let mut changes = self.shared.changed.subscribe();
        let arrived = async {
            while !reached(&self.shared.lock()) {
                changes.changed().await.expect("the receiver lives as long as its handle");
            }
        };
        if tokio::time::timeout(WAIT_LIMIT, arrived).await.is_err() {
            let seen = self.shared.lock();
            panic!("waited {WAIT_LIMIT:?} for {count} {what}; seen so far: {seen:#?}");
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        // The connections are in a set that the accepting task owns.
        self.accepting.abort();
    }
}

/// What a receiver has seen.
#[derive(Debug, Default)]
struct Seen {
    requests: Vec<Received>,
    connections: usize,
    closed_by_client: usize,
}

/// What the connections of one receiver share.
struct Shared {
    seen: Mutex<Seen>,
    script: Mutex<VecDeque<Step>>,
    changed: watch::Sender<()>,
}

impl Shared {
    fn new(script: VecDeque<Step>) -> Shared {
        assert!(!script.is_empty(), "a receiver needs at least one step; the last one repeats");
        Shared { seen: Mutex::default(), script: Mutex::new(script), changed: watch::Sender::new(()) }
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().expect("nothing panics while it holds what was seen")
    }

    /// Changes what was seen and wakes who waits for it.
    fn note<T>(&self, change: impl FnOnce(&mut Seen) -> T) -> T {
        let result = change(&mut self.lock());
        self.changed.send_replace(());
        result
    }

    /// Takes the next step; the last one stays for all that follow.
    fn next_step(&self) -> Step {
        let mut script = self.script.lock().expect("nothing panics while it holds the script");
        if script.len() > 1 {
            script.pop_front().expect("the script holds more than one step")
        } else {
            script.front().expect("a script is never empty").clone()
        }
    }

    /// Takes the next step if it acts on the connection before any byte is read.
    fn next_step_on_accept(&self) -> Option<Step> {
        let leaves_unread = {
            let script = self.script.lock().expect("nothing panics while it holds the script");
            script.front().is_some_and(Step::leaves_unread)
        };
        leaves_unread.then(|| self.next_step())
    }
}

/// A port of 127.0.0.1 that refuses connections: it was free a moment ago.
///
/// # Panics
/// If no port can be had.
pub fn unused_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a loopback port can be had");
    listener.local_addr().expect("a bound listener has an address").port()
}

/// A receiver that accepts TCP and never says a word, so that a TLS handshake
/// with it never ends. Its port is `addr().port()`.
pub async fn silent_tls_port() -> Receiver {
    Receiver::start([Step::accept_but_never_read()]).await
}
