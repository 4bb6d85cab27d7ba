//! `cargo xtask check`: all that can be said about the code without its tests.
//!
//! Every step runs, also after one that failed, so that one call tells all
//! there is to mend.

use crate::{Command, process};
use std::process::{ExitCode, Stdio};

pub(crate) const COMMAND: Command = Command {
    name: "check",
    arguments: "",
    summary: "formatting, lints, house rules, licences and bans, documentation",
    run: |_| run(),
};

/// One step: what it is called in the summary, and the words for cargo.
struct Step {
    name: &'static str,
    words: &'static [&'static str],
    environment: Option<(&'static str, &'static str)>,
}

const fn step(name: &'static str, words: &'static [&'static str]) -> Step {
    Step { name, words, environment: None }
}

const STEPS: &[Step] = &[
    step("formatting", &["fmt", "--all", "--check"]),
    step(
        "lints",
        &["clippy", "--workspace", "--all-targets", "--all-features", "--quiet", "--", "-D", "warnings"],
    ),
    step(
        "lints, SQLite alone",
        &[
            "clippy",
            "--package",
            "tidings",
            "--no-default-features",
            "--features",
            "sqlite",
            "--quiet",
            "--",
            "-D",
            "warnings",
        ],
    ),
    step(
        "lints, PostgreSQL alone",
        &[
            "clippy",
            "--package",
            "tidings",
            "--no-default-features",
            "--features",
            "postgres",
            "--quiet",
            "--",
            "-D",
            "warnings",
        ],
    ),
    step("house rules", &["test", "--package", "xtask", "--quiet"]),
    Step {
        name: "documentation",
        words: &["doc", "--workspace", "--lib", "--no-deps", "--all-features", "--quiet"],
        environment: Some(("RUSTDOCFLAGS", "-D warnings")),
    },
];

/// Run where cargo-deny is installed. Advisories are a step of their own: they
/// need the network.
const DENY_STEPS: &[Step] = &[
    step("licences, bans, sources", &["deny", "check", "licenses", "bans", "sources"]),
    step("advisories", &["deny", "check", "advisories"]),
];

fn run() -> ExitCode {
    let deny_steps = if deny_is_installed() { DENY_STEPS } else { &[] };
    let failed: Vec<&str> =
        STEPS.iter().chain(deny_steps).filter(|step| !passes(step)).map(|step| step.name).collect();
    if deny_steps.is_empty() {
        process::say(
            "not checked: licences, bans and advisories. Install cargo-deny: cargo install --locked cargo-deny",
        );
    }
    if failed.is_empty() {
        process::say("all checks passed");
        return ExitCode::SUCCESS;
    }
    process::say(&format!("failed: {}", failed.join("; ")));
    ExitCode::FAILURE
}

fn passes(step: &Step) -> bool {
    process::run(process::cargo(step.words).envs(step.environment)) == ExitCode::SUCCESS
}

fn deny_is_installed() -> bool {
    let version = process::cargo(&["deny", "--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    version.is_ok_and(|status| status.success())
}
