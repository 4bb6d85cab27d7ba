//! Sending what a step says, byte for byte.

use super::connection::Wire;
use super::step::{Answer, Body, Then};
use std::io;
use std::time::Duration;

/// Longest run of bytes in one write of something endless.
const ENDLESS_CHUNK_BYTES: usize = 16 * 1024;

/// How long an answer is left in the network before the connection is reset,
/// so that the client can have it: a reset may overtake it.
const BEFORE_RESET: Duration = Duration::from_millis(20);

/// Sends the answer with everything that comes before it.
pub(super) async fn answer(wire: &mut Wire, answer: &Answer) -> io::Result<()> {
    if let Some((code, count)) = answer.informational {
        for _ in 0..count {
            tokio::time::sleep(answer.pause_between_informational).await;
            wire.write_all(format!("HTTP/1.1 {code} Wait\r\nX-Hint: early\r\n\r\n").as_bytes()).await?;
        }
    }
    wire.write_all(&head(answer)).await?;
    match &answer.body {
        Body::Whole(bytes) => wire.write_all(bytes).await,
        Body::Truncated { sent, .. } => wire.write_all(sent).await,
        Body::Drip { bytes, every } => drip(wire, bytes, *every).await,
        Body::Endless => endless_body(wire).await,
    }
}

/// Sends a status line, then header lines until the client leaves.
pub(super) async fn endless_headers(wire: &mut Wire) -> io::Result<()> {
    wire.write_all(b"HTTP/1.1 200 OK\r\n").await?;
    let lines = b"X-Endless: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n".repeat(64);
    loop {
        wire.write_all(&lines).await?;
    }
}

/// Ends the connection as the step wants it.
pub(super) async fn end(wire: Wire, then: Then) -> io::Result<()> {
    match then {
        Then::Close => {
            // Reading on keeps the close orderly: closing a socket with unread
            // bytes would reset it.
            wire.close_orderly().await
        }
        Then::Reset => {
            tokio::time::sleep(BEFORE_RESET).await;
            wire.reset()
        }
        Then::Hang => wire.read_until_client_leaves().await,
    }
}

fn head(answer: &Answer) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {} ", answer.status).into_bytes();
    head.extend_from_slice(&answer.reason);
    head.extend_from_slice(b"\r\n");
    for (name, value) in &answer.headers {
        head.extend_from_slice(name);
        head.extend_from_slice(b": ");
        head.extend_from_slice(value);
        head.extend_from_slice(b"\r\n");
    }
    if let Some(framing) = framing(answer) {
        head.extend_from_slice(format!("{framing}\r\n").as_bytes());
    }
    head.extend_from_slice(b"Connection: close\r\n\r\n");
    head
}

/// The header that tells the body's end; 204 and 304 have no body.
fn framing(answer: &Answer) -> Option<String> {
    let length = match &answer.body {
        Body::Endless => return Some("Transfer-Encoding: chunked".to_owned()),
        Body::Whole(bytes) | Body::Drip { bytes, .. } => bytes.len(),
        Body::Truncated { announced, .. } => *announced,
    };
    (!matches!(answer.status, 204 | 304)).then(|| format!("Content-Length: {length}"))
}

async fn drip(wire: &mut Wire, bytes: &[u8], every: Duration) -> io::Result<()> {
    for byte in bytes {
        tokio::time::sleep(every).await;
        wire.write_all(&[*byte]).await?;
    }
    Ok(())
}

async fn endless_body(wire: &mut Wire) -> io::Result<()> {
    let mut chunk = format!("{ENDLESS_CHUNK_BYTES:x}\r\n").into_bytes();
    chunk.resize(chunk.len() + ENDLESS_CHUNK_BYTES, b'z');
    chunk.extend_from_slice(b"\r\n");
    loop {
        wire.write_all(&chunk).await?;
    }
}
