//! What can go wrong for a caller, named once for the API and the command line.
//!
//! The API answers a problem as RFC 9457 `application/problem+json`, the command
//! line prints its text and ends with its exit code. Programs branch on `type`,
//! which never changes; people read `detail`, which says what to do.

use crate::exit::Exit;
use serde_json::{Map, Value, json};
use std::fmt;
use tidings::core::decide::Refusal;
use tidings::core::event::EventRefused;
use tidings::core::route::RouteRefused;
use tidings::store::StoreError;
use tidings::{ActRefused, EnqueueRefused, JobId, OpenRefused, RecordRefused, WorkRefused};

/// What sort of problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    MalformedBody,
    InvalidParameter,
    InvalidField,
    UnknownKind,
    UnknownQueue,
    UndeclaredEventType,
    NoSuchQueue,
    IdempotencyKeyReused,
    Unauthorized,
    Forbidden,
    NoSuchRoute,
    NoSuchJob,
    NoSuchEvent,
    NoSuchSubscription,
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

impl Sort {
    /// Every sort.
    #[cfg(test)]
    #[rustfmt::skip]
    const ALL: [Sort; 25] = [
        Sort::MalformedBody, Sort::InvalidParameter, Sort::InvalidField, Sort::UnknownKind, Sort::UnknownQueue,
        Sort::UndeclaredEventType, Sort::NoSuchQueue, Sort::IdempotencyKeyReused, Sort::Unauthorized,
        Sort::Forbidden, Sort::NoSuchRoute, Sort::NoSuchJob, Sort::NoSuchEvent, Sort::NoSuchSubscription,
        Sort::MethodNotAllowed, Sort::BodyTimeout, Sort::StateConflict, Sort::UniqueKeyTaken,
        Sort::BodyTooLarge, Sort::UnsupportedMediaType, Sort::DatabaseUnavailable, Sort::DatabaseUnusable,
        Sort::TimedOut, Sort::BadConfiguration, Sort::Internal,
    ];

    /// The name in `type`, the HTTP status, the exit code, and the title.
    #[rustfmt::skip]
    const fn row(self) -> (&'static str, u16, Exit, &'static str) {
        match self {
            Sort::MalformedBody => ("malformed-body", 400, Exit::Usage, "The body is not the JSON that is expected"),
            Sort::InvalidParameter => ("invalid-parameter", 400, Exit::Usage, "A query parameter or header cannot be read"),
            Sort::InvalidField => ("invalid-field", 422, Exit::Usage, "A field has a value that cannot be taken"),
            Sort::UnknownKind => ("unknown-kind", 422, Exit::Usage, "No handler of that name is known"),
            Sort::UnknownQueue => ("unknown-queue", 422, Exit::Usage, "No workers serve that queue"),
            Sort::UndeclaredEventType => ("undeclared-event-type", 422, Exit::Usage, "No event type of that name is declared"),
            Sort::NoSuchQueue => ("no-such-queue", 404, Exit::NotFound, "There is no queue of that name"),
            Sort::IdempotencyKeyReused => ("idempotency-key-reused", 422, Exit::Conflict, "The idempotency key was used for another call"),
            Sort::Unauthorized => ("unauthorized", 401, Exit::Failure, "A valid API key is needed"),
            Sort::Forbidden => ("forbidden", 403, Exit::Failure, "The API key does not allow this"),
            Sort::NoSuchRoute => ("no-such-route", 404, Exit::NotFound, "There is nothing at this path"),
            Sort::NoSuchJob => ("no-such-job", 404, Exit::NotFound, "There is no job of that id"),
            Sort::NoSuchEvent => ("no-such-event", 404, Exit::NotFound, "There is no event of that id"),
            Sort::NoSuchSubscription => ("no-such-subscription", 404, Exit::NotFound, "There is no subscription of that name"),
            Sort::MethodNotAllowed => ("method-not-allowed", 405, Exit::Usage, "This path does not take that method"),
            Sort::BodyTimeout => ("body-timeout", 408, Exit::Failure, "The body did not arrive in time"),
            Sort::StateConflict => ("state-conflict", 409, Exit::Conflict, "Its state does not allow it"),
            Sort::UniqueKeyTaken => ("unique-key-taken", 409, Exit::Conflict, "Another job has the unique key by now"),
            Sort::BodyTooLarge => ("body-too-large", 413, Exit::Usage, "The body is too large"),
            Sort::UnsupportedMediaType => ("unsupported-media-type", 415, Exit::Usage, "The body must be JSON"),
            Sort::DatabaseUnavailable => ("database-unavailable", 503, Exit::Unavailable, "The database is not available"),
            Sort::DatabaseUnusable => ("database-unusable", 500, Exit::Unavailable, "The database cannot be used"),
            Sort::TimedOut => ("timed-out", 503, Exit::Failure, "The request took too long"),
            Sort::BadConfiguration => ("bad-configuration", 500, Exit::Usage, "A setting cannot be"),
            Sort::Internal => ("internal", 500, Exit::Failure, "It failed"),
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
    pub(crate) sort: Sort,
    detail: String,
    members: Map<String, Value>,
}

impl Problem {
    /// A problem with the words for its reader: what was wrong, where, and what to do.
    pub(crate) fn new(sort: Sort, detail: impl Into<String>) -> Problem {
        Problem { sort, detail: detail.into(), members: Map::new() }
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

    /// One of several, at this place: its field is said from the whole.
    pub(crate) fn within(mut self, place: &str) -> Problem {
        let field = match self.members.get("field").and_then(Value::as_str) {
            Some(field) => format!("{place}.{field}"),
            None => place.to_owned(),
        };
        self.detail = format!("{place}: {}", self.detail);
        self.field(field)
    }

    /// How the program ends over it.
    pub(crate) fn exit(&self) -> Exit {
        self.sort.row().2
    }

    /// As RFC 9457 writes it.
    pub(crate) fn document(&self) -> Value {
        let mut document = Map::new();
        document.insert("type".into(), json!(format!("urn:tidings:problem:{}", self.sort.word())));
        document.insert("title".into(), json!(self.sort.title()));
        document.insert("status".into(), json!(self.sort.status()));
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
        let sort = match error {
            StoreError::Unavailable(_) | StoreError::Conflict(_) => Sort::DatabaseUnavailable,
            StoreError::BadAddress(_) => Sort::BadConfiguration,
            StoreError::SchemaNewer { .. }
            | StoreError::SchemaOlder { .. }
            | StoreError::SqliteTooOld { .. }
            | StoreError::CorruptRow { .. }
            | StoreError::DatabaseDamaged(_)
            | StoreError::Refused(_) => Sort::DatabaseUnusable,
        };
        Problem::new(sort, error.to_string())
    }
}

impl From<EnqueueRefused> for Problem {
    fn from(refused: EnqueueRefused) -> Problem {
        let detail = refused.to_string();
        match refused {
            EnqueueRefused::Store(error) => error.into(),
            EnqueueRefused::UnknownKind { known, .. } => {
                Problem::new(Sort::UnknownKind, detail).field("kind").with("known", names(&known))
            }
            EnqueueRefused::UnknownQueue { known, .. } => {
                Problem::new(Sort::UnknownQueue, detail).field("queue").with("known", names(&known))
            }
            EnqueueRefused::BadArgs(bad) => Problem::new(Sort::InvalidField, detail).field(bad.path),
            EnqueueRefused::BadPayload(_) => Problem::new(Sort::InvalidField, detail).field("args"),
            EnqueueRefused::BadField { field, .. } => Problem::new(Sort::InvalidField, detail).field(field),
            EnqueueRefused::KeyReused(id) => {
                Problem::new(Sort::IdempotencyKeyReused, detail).with("id", json!(id.to_string()))
            }
            EnqueueRefused::BatchTooLarge { .. } => Problem::new(Sort::InvalidField, detail),
        }
    }
}

fn names(known: &str) -> Value {
    known.split(", ").filter(|name| !name.is_empty()).map(str::to_owned).collect::<Vec<_>>().into()
}

impl From<RecordRefused> for Problem {
    fn from(refused: RecordRefused) -> Problem {
        let detail = refused.to_string();
        match refused {
            RecordRefused::Store(error) => error.into(),
            RecordRefused::Event(refused) => refused.into(),
            RecordRefused::Route(refused) => refused.into(),
            RecordRefused::InBatch { index, refused } => {
                Problem::from(*refused).within(&format!("[{index}]"))
            }
            RecordRefused::Unserializable(_) => Problem::new(Sort::InvalidField, detail).field("data"),
            RecordRefused::KeyReused(id) => Problem::new(Sort::IdempotencyKeyReused, detail)
                .field("key")
                .with("id", json!(id.to_string())),
            RecordRefused::BatchTooLarge { .. } => Problem::new(Sort::InvalidField, detail),
            RecordRefused::NoSuchEvent(id) => {
                Problem::new(Sort::NoSuchEvent, detail).with("id", json!(id.to_string()))
            }
            RecordRefused::NotPoisoned(_) => {
                Problem::new(Sort::StateConflict, detail).with("refusal", json!("not_poisoned"))
            }
        }
    }
}

impl From<EventRefused> for Problem {
    fn from(refused: EventRefused) -> Problem {
        let detail = refused.to_string();
        match refused {
            EventRefused::BadTypeName(_) => Problem::new(Sort::InvalidField, detail).field("type"),
            EventRefused::UndeclaredType { known, .. } => {
                Problem::new(Sort::UndeclaredEventType, detail).field("type").with("known", names(&known))
            }
            EventRefused::BadData(_) => Problem::new(Sort::InvalidField, detail).field("data"),
            EventRefused::BadField { field, .. } => Problem::new(Sort::InvalidField, detail).field(field),
        }
    }
}

impl From<RouteRefused> for Problem {
    fn from(refused: RouteRefused) -> Problem {
        let problem = Problem::new(Sort::InvalidField, refused.to_string());
        match refused {
            RouteRefused::BadPattern(_) => problem.field("pattern"),
            RouteRefused::MatchesNothing { known, .. } => {
                problem.field("pattern").with("known", names(&known))
            }
            RouteRefused::NobodyTakesIt { .. } => problem.field("becomes"),
            RouteRefused::BadSubscription { .. } => problem,
        }
    }
}

impl From<ActRefused> for Problem {
    fn from(refused: ActRefused) -> Problem {
        let detail = refused.to_string();
        match refused {
            ActRefused::Store(error) => error.into(),
            ActRefused::NoSuchJob(id) => {
                Problem::new(Sort::NoSuchJob, detail).with("id", json!(id.to_string()))
            }
            ActRefused::Refused(refusal) => {
                Problem::new(Sort::StateConflict, detail).with("refusal", json!(refusal_word(refusal)))
            }
            ActRefused::KeyTaken(holder) => {
                Problem::new(Sort::UniqueKeyTaken, detail).with("holder", json!(holder.to_string()))
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
            OpenRefused::Registry(refused) => Problem::new(Sort::BadConfiguration, refused.to_string()),
            OpenRefused::Declaration(RecordRefused::Store(error)) => error.into(),
            OpenRefused::Declaration(refused) => Problem::new(Sort::BadConfiguration, refused.to_string()),
        }
    }
}

impl From<WorkRefused> for Problem {
    fn from(refused: WorkRefused) -> Problem {
        match refused {
            WorkRefused::Store(error) => error.into(),
            other => Problem::new(Sort::BadConfiguration, other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sort_of_problem_is_in_the_contract_with_its_status() {
        let page = include_str!("../../../docs/http.md");
        for sort in Sort::ALL {
            let row = page
                .lines()
                .find(|line| line.starts_with('|') && line.contains(&format!("`{}`", sort.word())));
            let row = row.unwrap_or_else(|| panic!("docs/http.md lacks `{}`", sort.word()));
            assert!(row.contains(&format!("| {} |", sort.status())), "{row}");
        }
    }

    #[test]
    fn only_a_database_that_may_come_back_is_unavailable() {
        let sort = |error: StoreError| Problem::from(error).sort;
        assert_eq!(sort(StoreError::Unavailable("away".into())), Sort::DatabaseUnavailable);
        assert_eq!(sort(StoreError::Refused("no".into())), Sort::DatabaseUnusable);
        assert_eq!(sort(StoreError::SchemaNewer { found: 2, known: 1 }), Sort::DatabaseUnusable);
    }
}
