//! One request and its answer over an open connection.
//!
//! The connection is driven by the same future that waits for the answer, never
//! by a spawned task: dropping that future closes the socket. The answer is read
//! while the request is still being written, because a receiver may refuse early.

use super::answer;
use super::connect::Stream;
use super::counted::Counted;
use super::limits::Clock;
use super::trail::{INTERIM_ANSWERS_MAX, Trail};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use tidings_core::classify::Ending;
use tidings_core::evidence::Phase;
use tidings_core::guard::Target;
use tidings_core::limits::{ANSWER_HEAD_BYTES_MAX, ANSWER_HEADERS_MAX};
use tidings_core::text;
use tokio::time::{Instant, sleep_until};

/// Sends the request and reads the answer.
pub(super) async fn run(
    stream: Box<dyn Stream>,
    mut request: http::Request<Full<Bytes>>,
    target: &Target,
    clock: &Clock,
    trail: &Trail,
) -> Ending {
    let noted = trail.clone();
    hyper::ext::on_informational(&mut request, move |_| noted.interim_answer());
    let mut builder = http1::Builder::new();
    builder
        .max_headers(ANSWER_HEADERS_MAX)
        .max_header_size(ANSWER_HEAD_BYTES_MAX)
        .max_buf_size(ANSWER_HEAD_BYTES_MAX);
    let counted = TokioIo::new(Counted::new(stream, trail.clone()));
    let (mut sender, connection) = match builder.handshake(counted).await {
        Ok(ready) => ready,
        Err(error) => return Ending::Broken(text::reason(&error.to_string())),
    };
    let mut driven = Driven { connection, ended: false };

    let until = || trail.head_deadline(clock);
    match driven.during(sender.send_request(request), until).await {
        None => Ending::Deadline,
        Some(Err(error)) => broken(&error, trail),
        Some(Ok(response)) if response.status() == http::StatusCode::SWITCHING_PROTOCOLS => {
            Ending::Invalid("the receiver answered 101 although no upgrade was asked for".to_owned())
        }
        Some(Ok(response)) => {
            let (head, body) = response.into_parts();
            let status = head.status.as_u16();
            trail.answered(answer::read_head(&head, target, clock.now()));
            read_body(&mut driven, body, clock, trail).await;
            Ending::Answer { status }
        }
    }
}

/// Reads the body up to its bound. Whatever happens here, the status stands.
async fn read_body(driven: &mut Driven, mut body: Incoming, clock: &Clock, trail: &Trail) {
    let until = clock.deadline_from_now(clock.limits.body_ms);
    loop {
        match driven.during(body.frame(), || until).await {
            Some(Some(Ok(frame))) => {
                if frame.data_ref().is_some_and(|data| !trail.keep_body(data)) {
                    return;
                }
            }
            Some(None) => return trail.body_ended(),
            Some(Some(Err(_))) | None => return,
        }
    }
}

/// A connection that moves only while something is awaited with it.
struct Driven {
    connection: http1::Connection<TokioIo<Counted>, Full<Bytes>>,
    ended: bool,
}

impl Driven {
    /// What `work` comes to, or nothing when its deadline passed first. The
    /// deadline is asked for again after every step, because it moves with the
    /// phase that the step reached.
    async fn during<W: Future>(&mut self, work: W, deadline: impl Fn() -> Instant) -> Option<W::Output> {
        let mut work = pin!(work);
        let mut timer = pin!(sleep_until(deadline()));
        poll_fn(|context| {
            // Its error, if any, reaches whoever waits for the answer.
            if !self.ended && pin!(&mut self.connection).poll(context).is_ready() {
                self.ended = true;
            }
            if let Poll::Ready(output) = work.as_mut().poll(context) {
                return Poll::Ready(Some(output));
            }
            let due = deadline();
            if timer.deadline() != due {
                timer.as_mut().reset(due);
            }
            timer.as_mut().poll(context).map(|()| None)
        })
        .await
    }
}

/// What it means that no complete head came.
fn broken(error: &hyper::Error, trail: &Trail) -> Ending {
    if trail.has_too_many_interim_answers() {
        return Ending::Invalid(format!(
            "the receiver sent more than {INTERIM_ANSWERS_MAX} interim (1xx) answers"
        ));
    }
    if error.is_parse() {
        return Ending::Invalid(text::reason(&format!(
            "{error} (read as HTTP/1.1, with a head of at most {ANSWER_HEAD_BYTES_MAX} bytes and \
             {ANSWER_HEADERS_MAX} headers)"
        )));
    }
    let when = match trail.phase() {
        Phase::Head => "in the middle of the answer's head",
        Phase::Wait => "after the request was sent and before an answer came",
        _ => "while the request was being sent",
    };
    let why =
        trail.write_error().or_else(|| source_of(error)).map_or(String::new(), |why| format!(" ({why})"));
    Ending::Broken(text::reason(&format!("the connection ended {when}{why}")))
}

/// The I/O error underneath, where there is one: a plain close has none.
fn source_of(error: &hyper::Error) -> Option<String> {
    std::error::Error::source(error).map(ToString::to_string)
}

#[cfg(test)]
mod tests;
