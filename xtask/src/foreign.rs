//! Installs what judges us from outside, each where its language is there: the
//! Standard Webhooks packages of Python and of Node, and their drivers of PostgreSQL.
//!
//! They lie in `target/` and are installed once. What cannot be installed is
//! said, and handed to the tests, which then say that they were skipped and why.

use crate::process;
use std::path::PathBuf;
use std::process::Command;
use testkit::foreign::{DRIVERS_VARIABLE, Foreign, VERIFIERS_VARIABLE};

/// Packages of one purpose. Pinned: a judge that changes under the tests is no judge.
struct Purpose {
    name: &'static str,
    variable: &'static str,
    python_module: &'static str,
    python_package: &'static str,
    node_module: &'static str,
    node_package: &'static str,
}

const PURPOSES: [Purpose; 2] = [
    Purpose {
        name: "verifiers",
        variable: VERIFIERS_VARIABLE,
        python_module: "standardwebhooks",
        python_package: "standardwebhooks==1.1.0",
        node_module: "standardwebhooks",
        node_package: "standardwebhooks@1.1.1",
    },
    Purpose {
        name: "drivers",
        variable: DRIVERS_VARIABLE,
        python_module: "psycopg",
        python_package: "psycopg[binary]==3.3.9",
        node_module: "pg",
        node_package: "pg@8.23.1",
    },
];

/// Makes sure of all of them; variables for the tests.
pub(crate) fn ensure() -> impl Iterator<Item = (&'static str, String)> {
    PURPOSES.iter().map(|purpose| {
        let found = Foreign { python: python(purpose), node: node(purpose) };
        for (language, place) in [("Python", &found.python), ("Node", &found.node)] {
            if let Err(reason) = place {
                let name = purpose.name;
                process::say(&format!("no {name} for {language}, their tests will be skipped: {reason}"));
            }
        }
        (purpose.variable, found.to_variable())
    })
}

/// An interpreter that can import the package, in a virtual environment.
fn python(purpose: &Purpose) -> Result<PathBuf, String> {
    let folder = process::target().join(purpose.name);
    let interpreter = folder.join("bin").join("python");
    let import = format!("import {}", purpose.python_module);
    let imports = || process::run_quietly(Command::new(&interpreter).args(["-c", &import]));
    if imports().is_ok() {
        return Ok(interpreter);
    }
    present("python3")?;
    let wanted = purpose.python_package;
    process::say(&format!("installing the Python package {wanted} into target/{}", purpose.name));
    process::run_quietly(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))
        .map_err(|error| format!("{error} (on Debian: apt-get install python3-venv)"))?;
    let pip = ["-m", "pip", "--quiet", "--disable-pip-version-check", "--retries", "1", "install", wanted];
    process::run_quietly(Command::new(&interpreter).args(pip))?;
    imports().map(|()| interpreter.clone())
}

/// A folder whose `node_modules` holds the package.
fn node(purpose: &Purpose) -> Result<PathBuf, String> {
    let folder = process::target().join(format!("{}-node", purpose.name));
    if folder.join("node_modules").join(purpose.node_module).join("package.json").is_file() {
        return Ok(folder);
    }
    present("node")?;
    present("npm")?;
    let wanted = purpose.node_package;
    process::say(&format!("installing the Node package {wanted} into target/{}-node", purpose.name));
    std::fs::create_dir_all(&folder)
        .map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    let npm = ["install", "--loglevel=error", "--no-audit", "--no-fund", "--fetch-retries=1", wanted];
    process::run_quietly(Command::new("npm").args(npm).arg("--prefix").arg(&folder))?;
    Ok(folder)
}

fn present(program: &str) -> Result<(), String> {
    process::run_quietly(Command::new(program).arg("--version"))
        .map_err(|_| format!("{program} is not installed"))
}
