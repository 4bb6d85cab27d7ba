//! What a receiver does with one request: the vocabulary of its scripts.

use super::Received;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What happens to one request. Build one with a constructor, refine an
/// answering one with the methods.
#[derive(Clone)]
pub struct Step {
    pub(super) kind: Kind,
}

#[derive(Clone)]
pub(super) enum Kind {
    /// Read the request (or not), then answer.
    Answer(Box<Answer>),
    /// Read the request, send these bytes and close.
    Raw { bytes: Vec<u8>, then: Then },
    /// Read the request, then send header lines for ever.
    EndlessHeaders,
    /// Read the request and say nothing until the client leaves.
    Hang,
    /// Reset without having read a byte.
    ResetUnread,
    /// Neither read nor answer until the client leaves.
    NeverRead,
    /// Send these bytes before anything was read.
    SpeakFirst(Vec<u8>),
    /// Ask the test what to do.
    Choose(Arc<dyn Fn(&Received) -> Step + Send + Sync>),
}

/// How a connection ends after the last byte that the receiver sends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    /// Orderly close.
    Close,
    /// RST.
    Reset,
    /// Stay open and silent until the client leaves.
    Hang,
}

/// An answer with a status line of its own.
#[derive(Clone)]
pub(super) struct Answer {
    /// 1xx answers that come before it: the code and how many of them.
    pub(super) informational: Option<(u16, usize)>,
    pub(super) pause_between_informational: Duration,
    pub(super) status: u16,
    pub(super) reason: Vec<u8>,
    pub(super) headers: Vec<(Vec<u8>, Vec<u8>)>,
    pub(super) body: Body,
    /// Answer after the request's head, without having read its body.
    pub(super) early: bool,
    pub(super) then: Then,
}

#[derive(Clone)]
pub(super) enum Body {
    Whole(Vec<u8>),
    /// One byte at a time.
    Drip {
        bytes: Vec<u8>,
        every: Duration,
    },
    /// Chunk after chunk, for ever, as fast as the client reads.
    Endless,
    /// Less than its Content-Length announces.
    Truncated {
        sent: Vec<u8>,
        announced: usize,
    },
}

impl Step {
    /// Reads the request and answers with `status` and no body.
    pub fn status(status: u16) -> Step {
        Step::of(Kind::Answer(Box::new(Answer {
            informational: None,
            pause_between_informational: Duration::ZERO,
            status,
            reason: b"Scripted".to_vec(),
            headers: Vec::new(),
            body: Body::Whole(Vec::new()),
            early: false,
            then: Then::Close,
        })))
    }

    /// Reads the request and answers 302 with that Location.
    pub fn redirect(location: impl AsRef<[u8]>) -> Step {
        Step::status(302).header("Location", location)
    }

    /// Sends `count` answers of that 1xx code, then 200 (or what [`Step::finally`] says).
    pub fn informational(code: u16, count: usize) -> Step {
        Step::status(200).answering(|answer| answer.informational = Some((code, count)))
    }

    /// Answers 101 to a request that asked for no upgrade.
    pub fn switching_protocols_101() -> Step {
        Step::raw("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: other\r\n\r\n")
            .then_hang()
    }

    /// Answers `status` once the request's head is there, then reads the body to its end.
    pub fn early_answer(status: u16) -> Step {
        Step::status(status).answering(|answer| answer.early = true)
    }

    /// Answers `status` once the request's head is there and resets the
    /// connection while the client may still be writing the body.
    pub fn early_answer_then_reset(status: u16) -> Step {
        Step::early_answer(status).answering(|answer| answer.then = Then::Reset)
    }

    /// Reads the request and never answers.
    pub fn hang() -> Step {
        Step::of(Kind::Hang)
    }

    /// Waits until the request is there, leaves it unread and resets.
    pub fn reset_before_reading() -> Step {
        Step::of(Kind::ResetUnread)
    }

    /// Reads the request to its end and resets.
    pub fn reset_after_reading() -> Step {
        Step::of(Kind::Raw { bytes: Vec::new(), then: Then::Reset })
    }

    /// Reads the request to its end and closes.
    pub fn close_without_answer() -> Step {
        Step::raw("")
    }

    /// Sends the beginning of a status line and closes.
    pub fn half_status_line() -> Step {
        Step::raw("HTTP/1.1 20")
    }

    /// Sends a status line and part of the headers and closes.
    pub fn half_headers() -> Step {
        Step::raw("HTTP/1.1 200 OK\r\nContent-Type: text/pl")
    }

    /// Sends a status line and header lines that never end.
    pub fn endless_headers() -> Step {
        Step::of(Kind::EndlessHeaders)
    }

    /// Answers 200 with `count` short headers besides its own.
    pub fn many_headers(count: usize) -> Step {
        (0..count).fold(Step::status(200), |step, index| step.header(format!("X-Filler-{index}"), "x"))
    }

    /// Reads the request, sends exactly these bytes and closes.
    pub fn raw(bytes: impl AsRef<[u8]>) -> Step {
        Step::of(Kind::Raw { bytes: bytes.as_ref().to_vec(), then: Then::Close })
    }

    /// Accepts the connection and never reads from it.
    pub fn accept_but_never_read() -> Step {
        Step::of(Kind::NeverRead)
    }

    /// Sends these bytes as soon as the connection is there, as another protocol would.
    pub fn speak_first(bytes: impl AsRef<[u8]>) -> Step {
        Step::of(Kind::SpeakFirst(bytes.as_ref().to_vec()))
    }

    /// Reads the request and does what `choose` says of it.
    pub fn answer_with(choose: impl Fn(&Received) -> Step + Send + Sync + 'static) -> Step {
        Step::of(Kind::Choose(Arc::new(choose)))
    }

    /// Adds a header to an answer; the value may be any bytes.
    pub fn header(self, name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Step {
        let field = (name.as_ref().to_vec(), value.as_ref().to_vec());
        self.answering(|answer| answer.headers.push(field))
    }

    /// Sets the reason phrase of an answer; it may be any bytes.
    pub fn reason(self, reason: impl AsRef<[u8]>) -> Step {
        let reason = reason.as_ref().to_vec();
        self.answering(|answer| answer.reason = reason)
    }

    /// Sets the body of an answer.
    pub fn body(self, body: impl AsRef<[u8]>) -> Step {
        let body = Body::Whole(body.as_ref().to_vec());
        self.answering(|answer| answer.body = body)
    }

    /// Sends the body byte by byte, one every `every_ms` milliseconds.
    pub fn drip_body(self, body: impl AsRef<[u8]>, every_ms: u64) -> Step {
        let body = Body::Drip { bytes: body.as_ref().to_vec(), every: Duration::from_millis(every_ms) };
        self.answering(|answer| answer.body = body)
    }

    /// Sends a chunked body that never ends.
    pub fn endless_body(self) -> Step {
        self.answering(|answer| answer.body = Body::Endless)
    }

    /// Announces `announced` bytes of body, sends `sent` and ends.
    pub fn truncated_body(self, sent: impl AsRef<[u8]>, announced: usize) -> Step {
        let body = Body::Truncated { sent: sent.as_ref().to_vec(), announced };
        self.answering(|answer| answer.body = body)
    }

    /// Sets the pause before each 1xx answer.
    pub fn every_ms(self, pause_ms: u64) -> Step {
        self.answering(|answer| answer.pause_between_informational = Duration::from_millis(pause_ms))
    }

    /// Sets the status of the answer that follows the 1xx answers.
    pub fn finally(self, status: u16) -> Step {
        self.answering(|answer| answer.status = status)
    }

    /// Resets the connection after the last byte instead of closing it.
    pub fn then_reset(self) -> Step {
        self.ending(Then::Reset)
    }

    /// Stays open and silent after the last byte instead of closing.
    pub fn then_hang(self) -> Step {
        self.ending(Then::Hang)
    }

    /// The step acts on the connection without reading from it.
    pub(super) fn leaves_unread(&self) -> bool {
        matches!(self.kind, Kind::ResetUnread | Kind::NeverRead | Kind::SpeakFirst(_))
    }

    fn of(kind: Kind) -> Step {
        Step { kind }
    }

    fn answering(mut self, change: impl FnOnce(&mut Answer)) -> Step {
        match &mut self.kind {
            Kind::Answer(answer) => change(answer),
            _ => panic!("only a step that answers with a status can be refined: {self:?}"),
        }
        self
    }

    fn ending(mut self, then: Then) -> Step {
        match &mut self.kind {
            Kind::Answer(answer) => answer.then = then,
            Kind::Raw { then: ending, .. } => *ending = then,
            _ => panic!("only a step that sends something has an end to choose: {self:?}"),
        }
        self
    }
}

impl fmt::Debug for Step {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Answer(answer) => write!(formatter, "Step::status({})", answer.status),
            Kind::Raw { bytes, .. } => write!(formatter, "Step::raw({:?})", String::from_utf8_lossy(bytes)),
            Kind::EndlessHeaders => formatter.write_str("Step::endless_headers()"),
            Kind::Hang => formatter.write_str("Step::hang()"),
            Kind::ResetUnread => formatter.write_str("Step::reset_before_reading()"),
            Kind::NeverRead => formatter.write_str("Step::accept_but_never_read()"),
            Kind::SpeakFirst(bytes) => {
                write!(formatter, "Step::speak_first({:?})", String::from_utf8_lossy(bytes))
            }
            Kind::Choose(_) => formatter.write_str("Step::answer_with(..)"),
        }
    }
}
