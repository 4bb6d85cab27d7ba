//! What an exchange has reached, noted while it happens.
//!
//! Shared between the sink that works and whoever may have to give up on it: when
//! a hard time limit drops the sink's future, the trail still tells whether a
//! byte of the request was handed to a socket.

use super::answer::AnswerHead;
use super::limits::{Clock, milliseconds};
use super::{HttpRequest, Sent, excerpt};
use http::header::{self, HeaderName};
use sha2::{Digest, Sha256};
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use tidings_core::classify::Ending;
use tidings_core::evidence::{HttpEvidence, Phase};
use tidings_core::guard::Target;
use tidings_core::limits::ANSWER_BYTES_MAX;
use tokio::time::Instant;

/// Most interim (1xx) answers before the final one.
pub(super) const INTERIM_ANSWERS_MAX: usize = 8;

/// Request headers whose values are no secrets; any other value that comes back
/// in an answer's body is taken out of the excerpt.
const PLAIN_HEADERS: [HeaderName; 5] = [
    header::ACCEPT,
    header::CONTENT_TYPE,
    header::USER_AGENT,
    HeaderName::from_static("webhook-id"),
    WEBHOOK_TIMESTAMP,
];

const WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");

/// A header value shorter than this is not worth looking for.
const SECRET_BYTES_MIN: usize = 8;

/// What a sink notes while it works. Cheap to clone; all clones are the same trail.
#[derive(Clone, Default)]
pub struct Trail(Arc<Mutex<Option<State>>>);

struct State {
    clock: Clock,
    evidence: HttpEvidence,
    request: RequestBytes,
    /// A handler that sends a second request forgets the evidence of the first, but
    /// not that it left.
    sent_before: bool,
    secrets: Vec<String>,
    body: Vec<u8>,
    body_ended: bool,
    interim_answers: usize,
    write_error: Option<String>,
    write_began: Option<Instant>,
    wait_began: Option<Instant>,
    /// First byte of the head that is being read; none again after an interim answer.
    head_began: Option<Instant>,
}

/// Tells when the last byte of a request was written: the head ends with its
/// empty line, the body has a known length.
struct RequestBytes {
    end_of_head: usize,
    head_is_written: bool,
    body_bytes_left: u64,
}

const EMPTY_LINE: &[u8] = b"\r\n\r\n";

impl std::fmt::Debug for Trail {
    /// What was reached may quote the receiver: the evidence is read on purpose or not at all.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trail").finish_non_exhaustive()
    }
}

impl Trail {
    /// Evidence of what was reached so far; none before a sink used the trail.
    pub fn evidence(&self) -> Option<HttpEvidence> {
        self.lock().as_ref().map(State::finished_evidence)
    }

    /// A sink used the trail, and not one byte of a request was handed to a socket.
    pub fn nothing_was_sent(&self) -> bool {
        self.lock().as_ref().is_some_and(|state| !state.something_was_sent())
    }

    /// A byte of a request was handed to a socket, of this one or of one before it.
    pub fn something_was_sent(&self) -> bool {
        self.lock().as_ref().is_some_and(State::something_was_sent)
    }

    /// Every byte of the request was handed to the socket.
    pub fn request_complete(&self) -> bool {
        self.lock().as_ref().is_some_and(|state| state.request.is_complete())
    }

    pub(super) fn begin(&self, request: &HttpRequest, clock: &Clock) {
        let mut state = self.lock();
        let sent_before = state.as_ref().is_some_and(State::something_was_sent);
        *state = Some(State { sent_before, ..State::new(request, clock) });
    }

    pub(super) fn sent(&self, ending: Ending) -> Sent {
        self.with(|state| Sent {
            ending,
            request_complete: state.request.is_complete(),
            evidence: state.finished_evidence(),
        })
    }

    pub(super) fn aim_at(&self, target: &Target) {
        self.with(|state| state.evidence.origin = target.origin());
    }

    pub(super) fn connected_to(&self, address: SocketAddr) {
        self.with(|state| state.evidence.address = Some(address.to_string()));
    }

    pub(super) fn enter(&self, phase: Phase) {
        self.with(|state| state.enter(phase));
    }

    pub(super) fn phase(&self) -> Phase {
        self.with(|state| state.evidence.phase)
    }

    pub(super) fn wrote(&self, slices: &[IoSlice<'_>], count: usize) {
        self.with(|state| {
            state.evidence.bytes_written += count as u64;
            let mut left = count;
            for slice in slices {
                let written = &slice[..slice.len().min(left)];
                state.request.wrote(written);
                left -= written.len();
            }
        });
    }

    pub(super) fn flushed(&self) {
        self.with(|state| {
            if state.request.is_complete() {
                state.enter(Phase::Wait);
            }
        });
    }

    pub(super) fn write_broke(&self, error: &io::Error) {
        self.with(|state| state.write_error = Some(error.to_string()));
    }

    pub(super) fn write_error(&self) -> Option<String> {
        self.with(|state| state.write_error.clone())
    }

    pub(super) fn read(&self, count: usize) {
        self.with(|state| {
            state.evidence.bytes_read += count as u64;
            state.enter(Phase::Head);
            state.head_began.get_or_insert_with(Instant::now);
        });
    }

    pub(super) fn interim_answer(&self) {
        self.with(|state| {
            state.interim_answers += 1;
            state.head_began = None;
        });
    }

    pub(super) fn has_too_many_interim_answers(&self) -> bool {
        self.with(|state| state.interim_answers > INTERIM_ANSWERS_MAX)
    }

    /// When the answer's head must be there, by the phase that is on.
    pub(super) fn head_deadline(&self, clock: &Clock) -> Instant {
        let limits = clock.limits;
        self.with(|state| match (state.head_began, state.wait_began, state.write_began) {
            (Some(began), _, _) => clock.deadline(began, limits.head_ms),
            (None, Some(began), _) => clock.deadline(began, limits.first_byte_ms),
            (None, None, began) => clock.deadline(began.unwrap_or(clock.started), limits.write_ms),
        })
    }

    pub(super) fn answered(&self, head: AnswerHead) {
        self.with(|state| {
            state.evidence.status = Some(head.status);
            state.evidence.headers = head.headers;
            state.evidence.retry_after = head.retry_after;
            state.evidence.redirect_host = head.redirect_host;
            state.enter(Phase::Body);
        });
    }

    /// Keeps as much as fits; false when it was more than that.
    pub(super) fn keep_body(&self, data: &[u8]) -> bool {
        self.with(|state| {
            let room = ANSWER_BYTES_MAX - state.body.len();
            state.body.extend_from_slice(&data[..data.len().min(room)]);
            data.len() <= room
        })
    }

    pub(super) fn body_ended(&self) {
        self.with(|state| {
            state.body_ended = true;
            state.enter(Phase::Done);
        });
    }

    /// The request went out and its answer came in, both to their ends.
    pub(super) fn is_over(&self) -> bool {
        self.with(|state| state.body_ended && state.request.is_complete())
    }

    fn lock(&self) -> MutexGuard<'_, Option<State>> {
        self.0.lock().expect("nothing panics while it holds a trail")
    }

    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(self.lock().as_mut().expect("a sink begins a trail before it notes anything"))
    }
}

impl State {
    fn new(request: &HttpRequest, clock: &Clock) -> State {
        let secret = |(name, value): &(HeaderName, http::HeaderValue)| {
            let value = value.to_str().ok().filter(|value| value.len() >= SECRET_BYTES_MIN)?;
            (!PLAIN_HEADERS.contains(name)).then(|| value.to_owned())
        };
        let mut state = State {
            clock: *clock,
            evidence: empty_evidence(request),
            request: RequestBytes {
                end_of_head: 0,
                head_is_written: false,
                body_bytes_left: request.body.len() as u64,
            },
            sent_before: false,
            secrets: request.headers.iter().filter_map(secret).collect(),
            body: Vec::new(),
            body_ended: false,
            interim_answers: 0,
            write_error: None,
            write_began: None,
            wait_began: None,
            head_began: None,
        };
        state.enter(Phase::Guard);
        state
    }

    fn something_was_sent(&self) -> bool {
        self.sent_before || self.evidence.bytes_written > 0
    }

    /// Notes a phase the first time; a phase is never gone back to.
    fn enter(&mut self, phase: Phase) {
        let entered = self.evidence.phases_ms.last().map(|(last, _)| *last);
        if entered.is_some_and(|last| last >= phase) {
            return;
        }
        let now = Instant::now();
        self.evidence.phase = phase;
        self.evidence.phases_ms.push((phase, milliseconds(now - self.clock.started)));
        match phase {
            Phase::Write => self.write_began = Some(now),
            Phase::Wait => self.wait_began = Some(now),
            _ => {}
        }
    }

    fn finished_evidence(&self) -> HttpEvidence {
        let mut evidence = self.evidence.clone();
        evidence.truncated = evidence.status.is_some() && !self.body_ended;
        if !self.body.is_empty() {
            evidence.excerpt = excerpt::of(&self.body, &self.secrets);
            evidence.body_sha256 = sha256_hex(&self.body);
        }
        evidence
    }
}

impl RequestBytes {
    fn wrote(&mut self, mut bytes: &[u8]) {
        while let (false, Some((byte, rest))) = (self.head_is_written, bytes.split_first()) {
            let expected = EMPTY_LINE[self.end_of_head];
            self.end_of_head = match *byte {
                byte if byte == expected => self.end_of_head + 1,
                b'\r' => 1,
                _ => 0,
            };
            self.head_is_written = self.end_of_head == EMPTY_LINE.len();
            bytes = rest;
        }
        self.body_bytes_left = self.body_bytes_left.saturating_sub(bytes.len() as u64);
    }

    fn is_complete(&self) -> bool {
        self.head_is_written && self.body_bytes_left == 0
    }
}

fn empty_evidence(request: &HttpRequest) -> HttpEvidence {
    HttpEvidence {
        method: request.method.to_string(),
        origin: String::new(),
        address: None,
        phase: Phase::Guard,
        phases_ms: Vec::new(),
        bytes_written: 0,
        bytes_read: 0,
        request_body_bytes: request.body.len() as u64,
        request_body_sha256: sha256_hex(&request.body),
        status: None,
        headers: Vec::new(),
        excerpt: String::new(),
        body_sha256: String::new(),
        truncated: false,
        retry_after: None,
        redirect_host: None,
    }
}

fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_complete_with_the_last_byte_of_its_body_however_it_is_cut() {
        let request = b"POST / HTTP/1.1\r\na: b\r\r\n\r\n\r\n\r\n";
        let body_bytes_left = 4;
        for cut in 0..=request.len() {
            let mut bytes = RequestBytes { end_of_head: 0, head_is_written: false, body_bytes_left };
            bytes.wrote(&request[..cut]);
            assert_eq!(bytes.is_complete(), cut == request.len(), "{cut}");
            bytes.wrote(&request[cut..]);
            assert!(bytes.is_complete(), "{cut}");
        }
    }
}
