//! The configuration as somebody wrote it, in TOML. Unknown names are refused: a
//! misspelt setting would be a default that nobody asked for.

use super::refused;
use crate::problem::{Problem, Sort};
use crate::subscription::ConditionWritten;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tidings::core::event::EventType;
use tidings::core::policy::PolicyData;
use tidings::core::route::Pattern;

/// The whole file. Every part may be left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Written {
    pub(crate) listen: Option<String>,
    pub(crate) database: Option<String>,
    pub(crate) pool_size: Option<usize>,
    pub(crate) workers: Option<usize>,
    pub(crate) poll_ms: Option<u64>,
    pub(crate) stop_grace_ms: Option<u64>,
    pub(crate) allow_private: Option<bool>,
    pub(crate) http: Http,
    pub(crate) retention: Retention,
    pub(crate) queues: BTreeMap<String, Queue>,
    pub(crate) kinds: BTreeMap<String, KindWritten>,
    pub(crate) policies: BTreeMap<String, PolicyData>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) event_types: Vec<EventType>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) subscriptions: Vec<SubscriptionWritten>,
}

/// `[http]`: where requests may go.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Http {
    pub(crate) allow: Option<Vec<String>>,
    pub(crate) ports: Option<Vec<u16>>,
    pub(crate) plain_http: Option<bool>,
    pub(crate) limits: Limits,
}

/// `[http.limits]`: how long the phases of a request may take.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Limits {
    pub(crate) dns_ms: Option<u64>,
    pub(crate) connect_ms: Option<u64>,
    pub(crate) connect_all_ms: Option<u64>,
    pub(crate) tls_ms: Option<u64>,
    pub(crate) write_ms: Option<u64>,
    pub(crate) first_byte_ms: Option<u64>,
    pub(crate) head_ms: Option<u64>,
    pub(crate) body_ms: Option<u64>,
    pub(crate) total_ms: Option<u64>,
}

/// `[retention]`: how long what has finished is kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Retention {
    pub(crate) completed_hours: Option<i64>,
    pub(crate) discarded_hours: Option<i64>,
    pub(crate) cancelled_hours: Option<i64>,
    pub(crate) events_hours: Option<i64>,
    pub(crate) evidence_hours: Option<i64>,
}

/// `[queues.NAME]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Queue {
    pub(crate) workers: Option<usize>,
}

/// `[kinds."NAME"]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct KindWritten {
    pub(crate) policy: Option<String>,
    pub(crate) queue: Option<String>,
    pub(crate) time_limit_ms: Option<i64>,
}

/// `[[subscriptions]]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SubscriptionWritten {
    pub(crate) name: String,
    pub(crate) pattern: Pattern,
    pub(crate) job: Option<String>,
    pub(crate) expanded: Option<String>,
    #[serde(default)]
    pub(crate) filter: Vec<ConditionWritten>,
    #[serde(default)]
    pub(crate) coalesce: bool,
}

/// The file's text as a table. The text itself is never repeated: it may hold a password.
pub(crate) fn table(text: &str, place: &str) -> Result<toml::Table, Problem> {
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
        let detail = format!("{place}, line {line}: this is not TOML: {}", error.message());
        Problem::new(Sort::BadConfiguration, detail)
    })?;
    Written::of_table(table.clone(), |_| place.to_owned())?;
    Ok(table)
}

impl Written {
    /// Reads a table, whose settings stand at `place_of` their path.
    pub(crate) fn of_table(
        table: toml::Table,
        place_of: impl Fn(&str) -> String,
    ) -> Result<Written, Problem> {
        serde_path_to_error::deserialize(table).map_err(|error| {
            let path = error.path().to_string();
            let inner = error.into_inner();
            if path == "." {
                let detail = format!("{}: {}", place_of(""), inner.message());
                return Problem::new(Sort::BadConfiguration, detail);
            }
            refused(&place_of(&path), &path, &format!("cannot be taken: {}", inner.message()))
        })
    }
}
