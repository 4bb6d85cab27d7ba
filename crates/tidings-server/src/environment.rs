//! The environment of the process, read once by `main` and passed as a value.

use crate::problem::{Problem, Sort};
use std::collections::BTreeMap;

/// The variables that concern us.
#[derive(Clone, Default)]
pub(crate) struct Environment {
    variables: BTreeMap<String, String>,
}

impl Environment {
    /// Keeps what is UTF-8; nothing else can be a setting.
    pub(crate) fn of(
        variables: impl IntoIterator<Item = (std::ffi::OsString, std::ffi::OsString)>,
    ) -> Environment {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Environment { variables: variables.into_iter().filter_map(text).collect() }
    }

    /// The variable's value, if it is set and not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// A secret: the value of `name`, or the content of the file that `name_FILE`
    /// names, without the line break at its end.
    pub(crate) fn secret(&self, name: &str) -> Result<Option<String>, Problem> {
        let file_variable = format!("{name}_FILE");
        match (self.get(name), self.get(&file_variable)) {
            (Some(_), Some(_)) => {
                let detail = format!("{name} and {file_variable} are both set: keep one of them");
                Err(Problem::new(Sort::BadConfiguration, detail))
            }
            (Some(value), None) => Ok(Some(value.to_owned())),
            (None, Some(file)) => {
                let content = std::fs::read_to_string(file).map_err(|error| {
                    let detail = format!("{file_variable}: `{file}` cannot be read: {error}");
                    Problem::new(Sort::BadConfiguration, detail)
                })?;
                Ok(Some(content.trim_end_matches(['\r', '\n']).to_owned()).filter(|value| !value.is_empty()))
            }
            (None, None) => Ok(None),
        }
    }

    /// The variables whose name begins with `TIDINGS_`.
    pub(crate) fn ours(&self) -> impl Iterator<Item = &str> {
        self.variables.keys().map(String::as_str).filter(|name| name.starts_with("TIDINGS_"))
    }

    /// Who is at the terminal, as the system's environment says.
    pub(crate) fn user(&self) -> &str {
        ["USER", "LOGNAME", "USERNAME"].into_iter().find_map(|name| self.get(name)).unwrap_or("unknown")
    }
}

#[cfg(test)]
impl Environment {
    /// As if these were set.
    pub(crate) fn with(variables: &[(&str, &str)]) -> Environment {
        Environment::of(variables.iter().map(|(name, value)| ((*name).into(), (*value).into())))
    }
}
