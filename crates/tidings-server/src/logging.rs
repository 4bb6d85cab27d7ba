//! The log: on stderr, as text or as JSON lines. Results go to stdout.

use crate::environment::Environment;
use crate::problem::{Problem, Sort};
use clap::ValueEnum;
use std::io::{self, IsTerminal};
use tracing_subscriber::EnvFilter;

/// How log lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Starts the log. `--log` wins over `RUST_LOG`, which wins over `default`.
pub(crate) fn start(
    filter: Option<&str>,
    format: LogFormat,
    environment: &Environment,
    default: &str,
) -> Result<(), Problem> {
    let (place, text) = match (filter, environment.get("RUST_LOG")) {
        (Some(text), _) => ("--log", text),
        (None, Some(text)) => ("RUST_LOG", text),
        (None, None) => ("the default", default),
    };
    let filter: EnvFilter = text.parse().map_err(|error| {
        let detail = format!("{place}: `{text}` is no log filter ({error}); write `info` or `tidings=debug`");
        Problem::new(Sort::BadConfiguration, detail)
    })?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    match format {
        LogFormat::Text => builder.with_ansi(io::stderr().is_terminal()).init(),
        LogFormat::Json => builder.json().init(),
    }
    Ok(())
}
