//! Events: facts about the user's domain, and the types that they must have.
//!
//! A type is declared before anything of it is recorded, and is internal unless it
//! says otherwise: an event cannot leave the instance by accident.

use crate::limits;
use crate::payload::{self, PayloadRefused};
use crate::time::Time;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use uuid::Uuid;

/// Names one event: `evt_` and 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EventId(pub Uuid);

/// A type name: dotted words, like `corpus.note.created`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TypeName(String);

/// Who may learn of events of a type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exposure {
    /// Subscriptions inside the instance only.
    #[default]
    Internal,
    /// Endpoints outside as well.
    External,
}

/// A declared event type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventType {
    /// Its name.
    pub name: TypeName,
    /// What happened when an event of it is recorded.
    #[serde(default)]
    pub description: String,
    /// Who may learn of it.
    #[serde(default)]
    pub exposure: Exposure,
}

/// A fact about the user's domain, recorded with the change that it describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Names it.
    pub id: EventId,
    /// What happened.
    pub type_name: TypeName,
    /// Whose it is; empty where there are no tenants.
    pub tenant: String,
    /// To what it happened, like `note/42`; may be empty.
    pub subject: String,
    /// When it happened.
    pub occurred_at: Time,
    /// JSON text, exactly as it was given.
    pub data: String,
}

/// Why an event was refused at the door.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EventRefused {
    /// Not a name.
    #[error(
        "`{0}` is not an event type: write dotted words of a-z, 0-9, `_` and `-`, at most 128 bytes, \
         like `note.created`"
    )]
    BadTypeName(String),
    /// Nobody declared it.
    #[error("event type `{type_name}` is not declared; declare it first. Declared types are: {known}")]
    UndeclaredType {
        /// What was named.
        type_name: String,
        /// What there is.
        known: String,
    },
    /// The data is not JSON that can be kept.
    #[error("data {0}")]
    BadData(#[from] PayloadRefused),
    /// A field that is too long or has control characters.
    #[error("{field} {problem}")]
    BadField {
        /// Which.
        field: &'static str,
        /// What is wrong and what to write.
        problem: String,
    },
}

const EVENT_PREFIX: &str = "evt_";

/// The text is not an event id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not an event id: expected `evt_` and 32 hexadecimal digits")]
pub struct NotAnEventId {
    given: String,
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{EVENT_PREFIX}{}", self.0.simple())
    }
}

impl fmt::Debug for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for EventId {
    type Err = NotAnEventId;

    fn from_str(text: &str) -> Result<EventId, NotAnEventId> {
        let refused = || NotAnEventId { given: text.chars().take(64).collect() };
        let hex = text.strip_prefix(EVENT_PREFIX).filter(|hex| hex.len() == 32).ok_or_else(refused)?;
        Uuid::try_parse(hex).map(EventId).map_err(|_| refused())
    }
}

impl TryFrom<String> for EventId {
    type Error = NotAnEventId;

    fn try_from(text: String) -> Result<EventId, NotAnEventId> {
        text.parse()
    }
}

impl From<EventId> for String {
    fn from(id: EventId) -> String {
        id.to_string()
    }
}

impl TypeName {
    /// Checks a name.
    ///
    /// # Errors
    /// When it is not dotted words.
    pub fn new(name: &str) -> Result<TypeName, EventRefused> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-');
        let word = |word: &str| !word.is_empty() && word.chars().all(plain);
        if name.len() > limits::TYPE_BYTES_MAX || !name.split('.').all(word) {
            return Err(EventRefused::BadTypeName(crate::text::safe(name, limits::TYPE_BYTES_MAX)));
        }
        Ok(TypeName(name.to_owned()))
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TypeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for TypeName {
    type Error = EventRefused;

    fn try_from(text: String) -> Result<TypeName, EventRefused> {
        TypeName::new(&text)
    }
}

impl From<TypeName> for String {
    fn from(name: TypeName) -> String {
        name.0
    }
}

impl Event {
    /// Checks what does not depend on which types there are.
    ///
    /// # Errors
    /// The first field that is wrong.
    pub fn check(&self) -> Result<(), EventRefused> {
        payload::check(&self.data)?;
        check_text("subject", &self.subject, limits::SUBJECT_BYTES_MAX)?;
        check_text("tenant", &self.tenant, limits::TENANT_BYTES_MAX)
    }
}

/// Checks a text field: its length, and that it is one line of plain text.
///
/// # Errors
/// What is wrong with it, and what to write.
pub fn check_text(field: &'static str, text: &str, bytes_max: usize) -> Result<(), EventRefused> {
    let problem = if text.len() > bytes_max {
        format!("is {} bytes long; at most {bytes_max} are taken", text.len())
    } else if text.chars().any(char::is_control) {
        "has control characters; write plain text".to_owned()
    } else {
        return Ok(());
    };
    Err(EventRefused::BadField { field, problem })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_name_is_dotted_words() {
        for good in ["note", "corpus.note.created", "a-b.c_d.e9"] {
            assert_eq!(TypeName::new(good).unwrap().as_str(), good);
        }
        for bad in ["", ".", "a.", ".a", "a..b", "A.b", "a b", "a*", "ä", &"x".repeat(129)] {
            assert!(TypeName::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_type_is_internal_unless_it_says_otherwise() {
        let declared: EventType = serde_json::from_str(r#"{"name": "note.created"}"#).unwrap();
        assert_eq!(declared.exposure, Exposure::Internal);
    }
}
