//! Installs what judges our signatures independently: the Standard Webhooks
//! packages of Python and of Node, each where its language is there.
//!
//! They lie in `target/` and are installed once. What cannot be installed is
//! said, and handed to the tests, which then say that they were skipped and why.

use crate::process;
use std::path::PathBuf;
use std::process::Command;
use testkit::verifiers::Verifiers;

const PACKAGE: &str = "standardwebhooks";
/// Pinned: a judge that changes under the tests is no judge.
const PYTHON_VERSION: &str = "1.1.0";
const NODE_VERSION: &str = "1.1.1";

/// Makes sure of both.
pub(crate) fn ensure() -> Verifiers {
    let verifiers = Verifiers { python: python(), node: node() };
    for (language, found) in [("Python", &verifiers.python), ("Node", &verifiers.node)] {
        if let Err(reason) = found {
            process::say(&format!("no {language} verifier, its tests will be skipped: {reason}"));
        }
    }
    verifiers
}

/// An interpreter that can import the package, in a virtual environment.
fn python() -> Result<PathBuf, String> {
    let folder = process::target().join("verifiers");
    let interpreter = folder.join("bin").join("python");
    let imports =
        || process::run_quietly(Command::new(&interpreter).args(["-c", &format!("import {PACKAGE}")]));
    if imports().is_ok() {
        return Ok(interpreter);
    }
    present("python3")?;
    process::say(&format!("installing the Python package {PACKAGE} into target/verifiers"));
    process::run_quietly(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))
        .map_err(|error| format!("{error} (on Debian: apt-get install python3-venv)"))?;
    let wanted = format!("{PACKAGE}=={PYTHON_VERSION}");
    let pip =
        ["-m", "pip", "--quiet", "--disable-pip-version-check", "--retries", "1", "install", wanted.as_str()];
    process::run_quietly(Command::new(&interpreter).args(pip))?;
    imports().map(|()| interpreter.clone())
}

/// A folder whose `node_modules` holds the package.
fn node() -> Result<PathBuf, String> {
    let folder = process::target().join("verifiers-node");
    if folder.join("node_modules").join(PACKAGE).join("package.json").is_file() {
        return Ok(folder);
    }
    present("node")?;
    present("npm")?;
    process::say(&format!("installing the Node package {PACKAGE} into target/verifiers-node"));
    std::fs::create_dir_all(&folder)
        .map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    let wanted = format!("{PACKAGE}@{NODE_VERSION}");
    let npm =
        ["install", "--loglevel=error", "--no-audit", "--no-fund", "--fetch-retries=1", wanted.as_str()];
    process::run_quietly(Command::new("npm").args(npm).arg("--prefix").arg(&folder))?;
    Ok(folder)
}

fn present(program: &str) -> Result<(), String> {
    process::run_quietly(Command::new(program).arg("--version"))
        .map_err(|_| format!("{program} is not installed"))
}
