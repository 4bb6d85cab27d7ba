//! The terminal: results on stdout, problems on stderr, as text or as JSON.
//!
//! Nothing from outside is printed as it came: a terminal obeys what it is told.

use crate::problem::{Problem, Sort};
use serde::Serialize;
use serde_json::json;
use std::io::{self, Write};
use tidings::core::text;

/// Longest piece of foreign text on one line.
const SHOWN_BYTES_MAX: usize = 4 * 1024;

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// For people.
    Text,
    /// For programs: one document a line.
    Json,
}

impl Style {
    /// Prints a result: as text for people, or as the document.
    pub(crate) fn result(
        self,
        text: impl FnOnce() -> String,
        document: &impl Serialize,
    ) -> Result<(), Problem> {
        match self {
            Style::Text => line(&text()),
            Style::Json => {
                let json = serde_json::to_string(document).map_err(|error| {
                    Problem::new(Sort::Internal, format!("the result does not become JSON: {error}"))
                })?;
                line(&json)
            }
        }
    }

    /// Prints a problem on stderr.
    pub(crate) fn problem(self, problem: &Problem) {
        let exit = problem.exit() as u8;
        let text = match self {
            Style::Text => format!("error: {}", shown_lines(&problem.to_string())),
            Style::Json => {
                let mut document = problem.document();
                document["exit_code"] = json!(exit);
                document.to_string()
            }
        };
        // There is nobody left to tell that stderr is gone.
        let _written = writeln!(io::stderr().lock(), "{text}");
    }
}

/// Prints one line, or several, and sees that they leave at once.
pub(crate) fn line(text: &str) -> Result<(), Problem> {
    let mut out = io::stdout().lock();
    let written = writeln!(out, "{text}").and_then(|()| out.flush());
    match written {
        // Whoever read the output has seen enough (`| head`).
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Problem::new(Sort::Internal, format!("stdout cannot be written: {error}"))),
        Ok(()) => Ok(()),
    }
}

/// Foreign text as one line that a terminal does not obey.
pub(crate) fn shown(foreign: &str) -> String {
    text::safe(foreign, SHOWN_BYTES_MAX)
}

/// As [`shown`], where line breaks are meant.
fn shown_lines(foreign: &str) -> String {
    foreign.lines().map(shown).collect::<Vec<_>>().join("\n")
}
