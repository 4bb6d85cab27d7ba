//! Every setting in one list, which feeds the environment and the documentation.
//!
//! A setting is added here and in [`super::written`]; a test compares the two.

use super::{Origins, refused};
use crate::environment::Environment;
use crate::problem::{Problem, Sort};
use toml::{Table, Value};

/// One setting, by its path in the file.
pub(crate) struct Setting {
    pub(crate) path: &'static str,
    pub(crate) form: Form,
    pub(crate) default: &'static str,
    #[cfg_attr(not(test), expect(dead_code, reason = "printed into the documentation, by a test"))]
    pub(crate) meaning: &'static str,
}

/// What is written for a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Text.
    Text,
    /// Text that may hold a secret: its variable also exists with `_FILE`.
    Secret,
    /// A whole number.
    Number,
    /// `true` or `false`.
    Flag,
    /// A list of texts; in the environment with commas between.
    Texts,
    /// A list of numbers; in the environment with commas between.
    Numbers,
}

const fn setting(path: &'static str, form: Form, default: &'static str, meaning: &'static str) -> Setting {
    Setting { path, form, default, meaning }
}

/// Every setting that has one place. Those of queues, kinds and policies have a
/// place for each name, event types and subscriptions are lists; see [`super::page`].
#[rustfmt::skip]
pub(crate) const SETTINGS: &[Setting] = &[
    setting("listen", Form::Text, "127.0.0.1:7070", "Address and port of the HTTP API. Port 0 takes a free one and prints it."),
    setting("database", Form::Secret, "sqlite:tidings.db", "`sqlite:PATH` or `postgres://USER:PASSWORD@HOST:PORT/NAME`."),
    setting("pool_size", Form::Number, "16", "Connections to PostgreSQL. Background work may use half of them."),
    setting("workers", Form::Number, "10", "Attempts in flight at once in each queue that names no number of its own."),
    setting("poll_ms", Form::Number, "500", "How often a queue is looked at when nothing wakes it."),
    setting("stop_grace_ms", Form::Number, "20000", "How long running attempts get to end when the process stops."),
    setting("allow_private", Form::Flag, "false", "Requests may go to loopback and private addresses, to any port, over plain http. For trying things out."),
    setting("http.allow", Form::Texts, "[]", "Addresses or networks that requests may go to although they are not public: `10.1.2.3`, `10.1.2.3:8080`, `10.0.0.0/8`, `[fd00::1]:8080`. An entry opens itself and nothing else."),
    setting("http.ports", Form::Numbers, "[]", "Ports that requests may go to besides 443."),
    setting("http.plain_http", Form::Flag, "false", "Requests may go over plain http, and to port 80."),
    setting("http.limits.dns_ms", Form::Number, "5000", "Resolving a name."),
    setting("http.limits.connect_ms", Form::Number, "5000", "Connecting to one address."),
    setting("http.limits.connect_all_ms", Form::Number, "10000", "Connecting, all addresses of a name together."),
    setting("http.limits.tls_ms", Form::Number, "5000", "The TLS handshake."),
    setting("http.limits.write_ms", Form::Number, "10000", "Writing the request."),
    setting("http.limits.first_byte_ms", Form::Number, "10000", "From the written request to the first byte of the answer."),
    setting("http.limits.head_ms", Form::Number, "5000", "From the first byte of the answer to the end of its head."),
    setting("http.limits.body_ms", Form::Number, "5000", "Reading the answer's body."),
    setting("http.limits.total_ms", Form::Number, "10000", "A whole request. Keep it under the kind's `time_limit_ms`."),
    setting("retention.completed_hours", Form::Number, "24", "How long completed jobs are kept."),
    setting("retention.discarded_hours", Form::Number, "168", "How long discarded jobs are kept."),
    setting("retention.cancelled_hours", Form::Number, "168", "How long cancelled jobs are kept."),
    setting("retention.events_hours", Form::Number, "168", "How long events are kept after they were fanned out."),
    setting("retention.evidence_hours", Form::Number, "720", "How long the evidence of attempts is kept. It may outlive its job."),
];

/// Variables that are read elsewhere.
const OTHER_VARIABLES: &[&str] = &["TIDINGS_CONFIG", "TIDINGS_ADMIN_KEY", "TIDINGS_ADMIN_KEY_FILE"];

impl Setting {
    /// Its environment variable.
    pub(crate) fn variable(&self) -> String {
        format!("TIDINGS_{}", self.path.replace('.', "_").to_uppercase())
    }
}

/// Lays the environment over the table of the file.
pub(super) fn overlay(
    table: &mut Table,
    environment: &Environment,
    origins: &mut Origins,
) -> Result<(), Problem> {
    refuse_misspelt(environment)?;
    for setting in SETTINGS {
        let variable = setting.variable();
        let text = match setting.form {
            Form::Secret => environment.secret(&variable)?,
            Form::Text | Form::Number | Form::Flag | Form::Texts | Form::Numbers => {
                environment.get(&variable).map(str::to_owned)
            }
        };
        let Some(text) = text else { continue };
        let value = setting.form.read(&text).map_err(|problem| refused(&variable, setting.path, &problem))?;
        put(table, setting.path, value);
        origins.insert(setting.path.to_owned(), variable);
    }
    Ok(())
}

/// A misspelt variable would be a default that nobody asked for. Names of another
/// program's making (test servers, for one) say so by a longer prefix.
fn refuse_misspelt(environment: &Environment) -> Result<(), Problem> {
    let mut known: Vec<String> = OTHER_VARIABLES.iter().map(|name| (*name).to_owned()).collect();
    for setting in SETTINGS {
        known.push(setting.variable());
        if setting.form == Form::Secret {
            known.push(format!("{}_FILE", setting.variable()));
        }
    }
    let misspelt = environment
        .ours()
        .find(|name| !name.starts_with("TIDINGS_TEST_") && !known.iter().any(|known| known == name));
    match misspelt {
        Some(name) => Err(Problem::new(
            Sort::BadConfiguration,
            format!(
                "the environment variable `{name}` is no setting; those of settings are listed in docs/config.md"
            ),
        )),
        None => Ok(()),
    }
}

/// Sets the value at a dotted path.
fn put(table: &mut Table, path: &str, value: Value) {
    match path.split_once('.') {
        None => {
            table.insert(path.to_owned(), value);
        }
        Some((first, rest)) => {
            let inner = table.entry(first).or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(inner) = inner {
                put(inner, rest, value);
            }
        }
    }
}

impl Form {
    /// Reads what an environment variable holds.
    fn read(self, text: &str) -> Result<Value, String> {
        let items = || text.split(',').map(str::trim).filter(|item| !item.is_empty());
        match self {
            Form::Text | Form::Secret => Ok(Value::String(text.to_owned())),
            Form::Number => number(text),
            Form::Flag => match text {
                "true" | "1" => Ok(Value::Boolean(true)),
                "false" | "0" => Ok(Value::Boolean(false)),
                _ => Err(format!("is `{text}`; write `true` or `false`")),
            },
            Form::Texts => Ok(Value::Array(items().map(|item| Value::String(item.to_owned())).collect())),
            Form::Numbers => items().map(number).collect::<Result<Vec<_>, _>>().map(Value::Array),
        }
    }
}

fn number(text: &str) -> Result<Value, String> {
    text.parse().map(Value::Integer).map_err(|_| format!("is `{text}`; write a whole number"))
}
