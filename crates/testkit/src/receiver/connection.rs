//! One accepted connection: record what arrives, then do what the script says.

use super::head::{self, Framing, Head};
use super::play;
use super::step::{Kind, Step, Then};
use super::tls::Stream;
use super::{Received, Shared};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// Largest request head that is looked for in bytes which stay unread.
const PEEK_BYTES: usize = 64 * 1024;

/// How often unread bytes are looked at again.
const PEEK_EVERY: Duration = Duration::from_millis(1);

/// Accepts connections until its task is aborted, which ends them all.
pub(super) async fn accept_all(listener: TcpListener, tls: Option<TlsAcceptor>, shared: Arc<Shared>) {
    let mut open = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let number = shared.note(|seen| {
            seen.connections += 1;
            seen.connections - 1
        });
        open.spawn(serve(stream, tls.clone(), Arc::clone(&shared), number));
        while open.try_join_next().is_some() {}
    }
}

/// An I/O error here means that the client went away; that is part of the script.
async fn serve(stream: TcpStream, tls: Option<TlsAcceptor>, shared: Arc<Shared>, number: usize) {
    let step = shared.next_step_on_accept();
    let outcome = async {
        let stream = match tls {
            Some(acceptor) => Stream::Tls(Box::new(acceptor.accept(stream).await?)),
            None => Stream::Plain(stream),
        };
        let wire = Wire { stream, shared: Arc::clone(&shared), number, bytes: Vec::new() };
        match step {
            Some(step) => serve_unread(wire, &step).await,
            None => serve_read(wire).await,
        }
    };
    if outcome.await.is_err() {
        shared.note(|seen| seen.closed_by_client += 1);
    }
}

/// The client's bytes stay in the socket; its request is counted by a peek.
async fn serve_unread(mut wire: Wire, step: &Step) -> io::Result<()> {
    if let Kind::SpeakFirst(bytes) = &step.kind {
        wire.write_all(bytes).await?;
        return play::end(wire, Then::Hang).await;
    }
    let mut peeked = vec![0; PEEK_BYTES];
    let mut recorded = false;
    loop {
        let ready = wire.stream.tcp().ready(Interest::READABLE).await?;
        let count = wire.stream.tcp().peek(&mut peeked).await?;
        if let (false, Some(head)) = (recorded, head::parse(&peeked[..count])) {
            wire.record(&head);
            recorded = true;
        }
        match step.kind {
            Kind::ResetUnread if recorded => return wire.reset(),
            _ if ready.is_read_closed() => return Err(client_left()),
            _ => tokio::time::sleep(PEEK_EVERY).await,
        }
    }
}

async fn serve_read(mut wire: Wire) -> io::Result<()> {
    let Some(head) = wire.read_head().await? else {
        return Err(client_left());
    };
    let order = wire.record(&head);
    let mut step = wire.shared.next_step();
    let framing = head.framing();
    if !answers_early(&step) {
        wire.read_body(order, head.bytes, &framing).await?;
    }
    while let Kind::Choose(choose) = &step.kind {
        let received = wire.shared.lock().requests[order].clone();
        step = choose(&received);
    }
    match &step.kind {
        Kind::Answer(answer) => {
            play::answer(&mut wire, answer).await?;
            if answer.early && answer.then != Then::Reset {
                wire.read_body(order, head.bytes, &framing).await?;
            }
            play::end(wire, answer.then).await
        }
        Kind::Raw { bytes, then } => {
            wire.write_all(bytes).await?;
            play::end(wire, *then).await
        }
        Kind::EndlessHeaders => play::endless_headers(&mut wire).await,
        Kind::ResetUnread => wire.reset(),
        Kind::Hang | Kind::NeverRead | Kind::SpeakFirst(_) => play::end(wire, Then::Hang).await,
        Kind::Choose(_) => unreachable!("a choice was followed to its end"),
    }
}

fn answers_early(step: &Step) -> bool {
    matches!(&step.kind, Kind::Answer(answer) if answer.early)
}

fn client_left() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the client closed the connection")
}

/// One connection and what was read from it.
pub(super) struct Wire {
    stream: Stream,
    shared: Arc<Shared>,
    number: usize,
    bytes: Vec<u8>,
}

impl Wire {
    pub(super) async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }

    /// Ends the connection by RST.
    pub(super) fn reset(self) -> io::Result<()> {
        self.stream.tcp().set_zero_linger()
    }

    /// Sends FIN and waits for the client's, so that no unread byte turns the
    /// close into a reset.
    pub(super) async fn close_orderly(mut self) -> io::Result<()> {
        self.stream.shutdown().await?;
        let mut scratch = vec![0; 16 * 1024];
        while matches!(self.stream.read(&mut scratch).await, Ok(count) if count > 0) {}
        Ok(())
    }

    pub(super) async fn read_until_client_leaves(mut self) -> io::Result<()> {
        let mut scratch = vec![0; 16 * 1024];
        while self.stream.read(&mut scratch).await? > 0 {}
        Err(client_left())
    }

    /// The head, or none when the client closed before it was there.
    async fn read_head(&mut self) -> io::Result<Option<Head>> {
        loop {
            if let Some(head) = head::parse(&self.bytes) {
                return Ok(Some(head));
            }
            if self.stream.read_buf(&mut self.bytes).await? == 0 {
                return Ok(None);
            }
        }
    }

    /// Reads the body and records it, as far as it came.
    async fn read_body(&mut self, order: usize, head_bytes: usize, framing: &Framing) -> io::Result<()> {
        let outcome = self.read_body_bytes(head_bytes, framing).await;
        let (body, complete) = head::body(framing, &self.bytes[head_bytes..]);
        self.shared.note(|seen| {
            let request = &mut seen.requests[order];
            request.body = body;
            request.body_complete = complete;
        });
        outcome
    }

    async fn read_body_bytes(&mut self, head_bytes: usize, framing: &Framing) -> io::Result<()> {
        while !head::body_is_complete(framing, &self.bytes[head_bytes..]) {
            self.bytes.reserve(64 * 1024);
            if self.stream.read_buf(&mut self.bytes).await? == 0 {
                return Err(client_left());
            }
        }
        Ok(())
    }

    /// Counts the request and returns its order.
    fn record(&self, head: &Head) -> usize {
        self.shared.note(|seen| {
            let order = seen.requests.len();
            seen.requests.push(Received {
                method: head.method.clone(),
                path: head.path.clone(),
                headers: head.headers.clone(),
                body: Vec::new(),
                body_complete: false,
                order,
                connection: self.number,
            });
            order
        })
    }
}
