//! Other people's programs in other languages, and where they lie: verifiers of
//! webhook signatures, drivers of PostgreSQL.
//!
//! `cargo xtask test` installs them and names those of one purpose in one variable;
//! tests read it. What is not there comes with the reason, so that a test which
//! needs it can say why it was skipped.

use std::path::PathBuf;

/// The variable through which the tests learn of `standardwebhooks`.
pub const VERIFIERS_VARIABLE: &str = "TIDINGS_VERIFIERS";
/// The variable through which the tests learn of psycopg and pg.
pub const DRIVERS_VARIABLE: &str = "TIDINGS_DRIVERS";

const HOW_TO_INSTALL: &str = "not installed: run the tests with `cargo xtask test`";

/// Where the packages of one purpose are, or why they are not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foreign {
    /// A Python interpreter that can import its package.
    pub python: Result<PathBuf, String>,
    /// A folder in which Node finds its package.
    pub node: Result<PathBuf, String>,
}

impl Foreign {
    /// What `cargo xtask test` found for the purpose of this variable.
    pub fn from_environment(variable: &str) -> Foreign {
        Foreign::read(&std::env::var(variable).unwrap_or_default())
    }

    /// The variable's value: `python=ok:PATH;node=skipped:REASON`.
    pub fn to_variable(&self) -> String {
        let part = |name: &str, found: &Result<PathBuf, String>| match found {
            Ok(path) => format!("{name}=ok:{}", path.display()),
            Err(reason) => format!("{name}=skipped:{}", reason.replace([';', '\n'], ",")),
        };
        format!("{};{}", part("python", &self.python), part("node", &self.node))
    }

    fn read(value: &str) -> Foreign {
        let part = |name: &str| {
            let parts = value.split(';').filter_map(|part| part.split_once('='));
            let found =
                parts.into_iter().find(|(key, _)| *key == name).and_then(|(_, found)| found.split_once(':'));
            match found {
                Some(("ok", path)) => Ok(PathBuf::from(path)),
                Some((_, reason)) => Err(reason.to_owned()),
                None => Err(HOW_TO_INSTALL.to_owned()),
            }
        };
        Foreign { python: part("python"), node: part("node") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_reads_back_as_what_was_found() {
        let found =
            Foreign { python: Ok("/t/bin/python".into()), node: Err("npm failed: 404, offline".into()) };
        assert_eq!(Foreign::read(&found.to_variable()), found);
    }

    #[test]
    fn without_the_variable_the_reason_says_what_to_run() {
        let none = Foreign::read("");
        assert!(none.python.unwrap_err().contains("cargo xtask test"));
        assert!(none.node.unwrap_err().contains("cargo xtask test"));
    }
}
