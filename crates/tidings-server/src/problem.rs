//! What can go wrong for a caller, named once for the API and the command line.
//!
//! The API answers a problem as RFC 9457 `application/problem+json`, the command
//! line prints its text and ends with its exit code. Programs branch on `type`,
//! which never changes; people read `detail`, which says what to do.

use crate::exit::Exit;
use serde_json::{Map, Value, json};
use std::fmt;
use tidings::core::decide::Refusal;
use tidings::store::StoreError;
use tidings::{ActRefused, EnqueueRefused, JobId, OpenRefused, WorkRefused};

/// What sort of problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    MalformedBody,
    InvalidParameter,
    InvalidField,
    UnknownKind,
    UnknownQueue,
    NoSuchQueue,
    IdempotencyKeyReused,
    Unauthorized,
    Forbidden,
    NoSuchRoute,
    NoSuchJob,
    MethodNotAllowed,
    BodyTimeout,
    StateConflict,
    UniqueKeyTaken,
    BodyTooLarge,
    UnsupportedMediaType,
    DatabaseUnavailable,
    DatabaseUnusable,
    TimedOut,
    BadConfiguration,
    Internal,
}

impl Kind {
    /// The name in `type`, the HTTP status, the exit code, and the title.
    #[rustfmt::skip]
    const fn row(self) -> (&'static str, u16, Exit, &'static str) {
        match self {
            Kind::MalformedBody => ("malformed-body", 400, Exit::Usage, "The body is not the JSON that is expected"),
            Kind::InvalidParameter => ("invalid-parameter", 400, Exit::Usage, "A query parameter or header cannot be read"),
            Kind::InvalidField => ("invalid-field", 422, Exit::Usage, "A field has a value that cannot be taken"),
            Kind::UnknownKind => ("unknown-kind", 422, Exit::Usage, "No handler of that name is known"),
            Kind::UnknownQueue => ("unknown-queue", 422, Exit::Usage, "No workers serve that queue"),
            Kind::NoSuchQueue => ("no-such-queue", 404, Exit::NotFound, "There is no queue of that name"),
            Kind::IdempotencyKeyReused => ("idempotency-key-reused", 422, Exit::Conflict, "The idempotency key was used for another call"),
            Kind::Unauthorized => ("unauthorized", 401, Exit::Failure, "A valid API key is needed"),
            Kind::Forbidden => ("forbidden", 403, Exit::Failure, "The API key does not allow this"),
            Kind::NoSuchRoute => ("no-such-route", 404, Exit::NotFound, "There is nothing at this path"),
            Kind::NoSuchJob => ("no-such-job", 404, Exit::NotFound, "There is no job of that id"),
            Kind::MethodNotAllowed => ("method-not-allowed", 405, Exit::Usage, "This path does not take that method"),
            Kind::BodyTimeout => ("body-timeout", 408, Exit::Failure, "The body did not arrive in time"),
            Kind::StateConflict => ("state-conflict", 409, Exit::Conflict, "The job's state does not allow it"),
            Kind::UniqueKeyTaken => ("unique-key-taken", 409, Exit::Conflict, "Another job has the unique key by now"),
            Kind::BodyTooLarge => ("body-too-large", 413, Exit::Usage, "The body is too large"),
            Kind::UnsupportedMediaType => ("unsupported-media-type", 415, Exit::Usage, "The body must be JSON"),
            Kind::DatabaseUnavailable => ("database-unavailable", 503, Exit::Unavailable, "The database is not available"),
            Kind::DatabaseUnusable => ("database-unusable", 500, Exit::Unavailable, "The database cannot be used"),
            Kind::TimedOut => ("timed-out", 503, Exit::Failure, "The request took too long"),
            Kind::BadConfiguration => ("bad-configuration", 500, Exit::Usage, "A setting cannot be"),
            Kind::Internal => ("internal", 500, Exit::Failure, "It failed"),
        }
    }

    /// The stable word, the last part of `type`.
    pub(crate) const fn word(self) -> &'static str {
        self.row().0
    }

    /// The HTTP status.
    pub(crate) const fn status(self) -> u16 {
        self.row().1
    }

    const fn title(self) -> &'static str {
        self.row().3
    }
}

/// One problem.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub(crate) kind: Kind,
    detail: String,
    members: Map<String, Value>,
}

impl Problem {
    /// A problem with the words for its reader: what was wrong, where, and what to do.
    pub(crate) fn new(kind: Kind, detail: impl Into<String>) -> Problem {
        Problem { kind, detail: detail.into(), members: Map::new() }
    }

    /// Names the field or parameter that it is about.
    pub(crate) fn field(self, field: impl Into<String>) -> Problem {
        self.with("field", Value::String(field.into()))
    }

    /// Adds a member for programs.
    pub(crate) fn with(mut self, name: &str, value: Value) -> Problem {
        self.members.insert(name.to_owned(), value);
        self
    }

    /// How the program ends over it.
    pub(crate) fn exit(&self) -> Exit {
        self.kind.row().2
    }

    /// As RFC 9457 writes it.
    pub(crate) fn document(&self) -> Value {
        let mut document = Map::new();
        document.insert("type".into(), json!(format!("urn:tidings:problem:{}", self.kind.word())));
        document.insert("title".into(), json!(self.kind.title()));
        document.insert("status".into(), json!(self.kind.status()));
        document.insert("detail".into(), json!(self.detail));
        document.extend(self.members.clone());
        Value::Object(document)
    }

    /// There is no job of that id.
    pub(crate) fn no_such_job(id: JobId) -> Problem {
        ActRefused::NoSuchJob(id).into()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Problem {
        let kind = match error {
            StoreError::Unavailable(_) => Kind::DatabaseUnavailable,
            StoreError::BadAddress(_) => Kind::BadConfiguration,
            StoreError::SchemaNewer { .. }
            | StoreError::SqliteTooOld { .. }
            | StoreError::CorruptRow { .. }
            | StoreError::DatabaseDamaged(_)
            | StoreError::Refused(_) => Kind::DatabaseUnusable,
        };
        Problem::new(kind, error.to_string())
    }
}

impl From<EnqueueRefused> for Problem {
    fn from(refused: EnqueueRefused) -> Problem {
        let detail = refused.to_string();
        match refused {
            EnqueueRefused::Store(error) => error.into(),
            EnqueueRefused::UnknownKind { known, .. } => {
                Problem::new(Kind::UnknownKind, detail).field("kind").with("known", names(&known))
            }
            EnqueueRefused::UnknownQueue { known, .. } => {
                Problem::new(Kind::UnknownQueue, detail).field("queue").with("known", names(&known))
            }
            EnqueueRefused::BadArgs(bad) => Problem::new(Kind::InvalidField, detail).field(bad.path),
            EnqueueRefused::BadPayload(_) => Problem::new(Kind::InvalidField, detail).field("args"),
            EnqueueRefused::BadField { field, .. } => Problem::new(Kind::InvalidField, detail).field(field),
            EnqueueRefused::KeyReused(id) => {
                Problem::new(Kind::IdempotencyKeyReused, detail).with("id", json!(id.to_string()))
            }
            EnqueueRefused::BatchTooLarge { .. } => Problem::new(Kind::InvalidField, detail),
        }
    }
}

fn names(known: &str) -> Value {
    known.split(", ").filter(|name| !name.is_empty()).map(str::to_owned).collect::<Vec<_>>().into()
}

impl From<ActRefused> for Problem {
    fn from(refused: ActRefused) -> Problem {
        let detail = refused.to_string();
        match refused {
            ActRefused::Store(error) => error.into(),
            ActRefused::NoSuchJob(id) => {
                Problem::new(Kind::NoSuchJob, detail).with("id", json!(id.to_string()))
            }
            ActRefused::Refused(refusal) => {
                Problem::new(Kind::StateConflict, detail).with("refusal", json!(refusal_word(refusal)))
            }
            ActRefused::KeyTaken(holder) => {
                Problem::new(Kind::UniqueKeyTaken, detail).with("holder", json!(holder.to_string()))
            }
        }
    }
}

/// A stable word for each refusal.
fn refusal_word(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::NotDue => "not_due",
        Refusal::Running => "running",
        Refusal::Held => "held",
        Refusal::Finished => "finished",
        Refusal::Accepted => "accepted",
        Refusal::InFlight => "in_flight",
        Refusal::NoSuchAttempt => "no_such_attempt",
        Refusal::LeaseNotOver => "lease_not_over",
        Refusal::NotRunning => "not_running",
        Refusal::NotUnknown => "not_unknown",
    }
}

impl From<OpenRefused> for Problem {
    fn from(refused: OpenRefused) -> Problem {
        match refused {
            OpenRefused::Store(error) => error.into(),
            OpenRefused::Registry(refused) => Problem::new(Kind::BadConfiguration, refused.to_string()),
        }
    }
}

impl From<WorkRefused> for Problem {
    fn from(refused: WorkRefused) -> Problem {
        match refused {
            WorkRefused::Store(error) => error.into(),
            other => Problem::new(Kind::BadConfiguration, other.to_string()),
        }
    }
}
