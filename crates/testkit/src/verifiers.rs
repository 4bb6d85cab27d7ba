//! Other people's verifiers of webhook signatures, and where they lie.
//!
//! `cargo xtask test` installs them and names them in one variable; tests read
//! it. A verifier that is not there comes with the reason, so that a test which
//! needs it can say why it was skipped.

use std::path::PathBuf;

/// The variable through which the tests learn of the verifiers.
pub const VERIFIERS_VARIABLE: &str = "TIDINGS_VERIFIERS";

const HOW_TO_INSTALL: &str = "not installed: run the tests with `cargo xtask test`";

/// Where each verifier is, or why it is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verifiers {
    /// A Python interpreter that can import `standardwebhooks`.
    pub python: Result<PathBuf, String>,
    /// A folder in which Node finds `standardwebhooks`.
    pub node: Result<PathBuf, String>,
}

impl Verifiers {
    /// What `cargo xtask test` found.
    pub fn from_environment() -> Verifiers {
        Verifiers::read(&std::env::var(VERIFIERS_VARIABLE).unwrap_or_default())
    }

    /// The variable's value: `python=ok:PATH;node=skipped:REASON`.
    pub fn to_variable(&self) -> String {
        let part = |name: &str, found: &Result<PathBuf, String>| match found {
            Ok(path) => format!("{name}=ok:{}", path.display()),
            Err(reason) => format!("{name}=skipped:{}", reason.replace([';', '\n'], ",")),
        };
        format!("{};{}", part("python", &self.python), part("node", &self.node))
    }

    fn read(value: &str) -> Verifiers {
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
        Verifiers { python: part("python"), node: part("node") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_reads_back_as_what_was_found() {
        let found =
            Verifiers { python: Ok("/t/bin/python".into()), node: Err("npm failed: 404, offline".into()) };
        assert_eq!(Verifiers::read(&found.to_variable()), found);
    }

    #[test]
    fn without_the_variable_the_reason_says_what_to_run() {
        let none = Verifiers::read("");
        assert!(none.python.unwrap_err().contains("cargo xtask test"));
        assert!(none.node.unwrap_err().contains("cargo xtask test"));
    }
}
