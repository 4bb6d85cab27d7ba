//! JSON that a command is given: by a flag, in a file, or on stdin.

use crate::problem::{Problem, Sort};
use std::io::Read;
use std::path::Path;
use tidings::core::limits;

/// The two flags that may hold it: `--NAME` and `--NAME-file`.
pub(super) struct Input<'a> {
    pub(super) flag: &'static str,
    pub(super) given: Option<&'a str>,
    pub(super) file: Option<&'a Path>,
}

impl Input<'_> {
    /// The text with the bytes that were given; `None` where neither flag is there.
    pub(super) fn read(&self) -> Result<Option<String>, Problem> {
        match (self.given, self.file) {
            (Some("-"), _) => self.read_all(std::io::stdin().lock(), "stdin").map(Some),
            (Some(text), _) => Ok(Some(text.to_owned())),
            (None, Some(file)) if file == Path::new("-") => {
                self.read_all(std::io::stdin().lock(), "stdin").map(Some)
            }
            (None, Some(file)) => {
                let name = file.display().to_string();
                let opened = std::fs::File::open(file).map_err(|error| {
                    self.refused(&format!("--{}-file: `{name}` cannot be read: {error}", self.flag))
                })?;
                self.read_all(opened, &name).map(Some)
            }
            (None, None) => Ok(None),
        }
    }

    /// No more than may be kept: the library says the rest.
    fn read_all(&self, from: impl Read, name: &str) -> Result<String, Problem> {
        let most = u64::try_from(limits::ARGS_BYTES_MAX).unwrap_or(u64::MAX) + 1;
        let mut text = String::new();
        from.take(most)
            .read_to_string(&mut text)
            .map_err(|error| self.refused(&format!("{name} cannot be read as text: {error}")))?;
        // The line break that an editor or `echo` puts at the end is no part of the value.
        text.truncate(text.trim_end_matches(['\r', '\n']).len());
        Ok(text)
    }

    fn refused(&self, detail: &str) -> Problem {
        Problem::new(Sort::InvalidField, detail).field(self.flag)
    }
}
