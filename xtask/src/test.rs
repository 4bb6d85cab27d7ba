//! `cargo xtask test`: every test, on both databases, from a fresh machine on.
//!
//! It installs what the tests need and says so on stderr, hands it to them in
//! the environment, and stops the PostgreSQL that they started. The exit code
//! is that of `cargo test`.

use crate::{Command, foreign, process};
use std::process::ExitCode;
use testkit::postgres;

pub(crate) const COMMAND: Command = Command {
    name: "test",
    arguments: "[--no-postgres] [cargo test arguments…]",
    summary: "every test; installs or starts what they need (PostgreSQL, packages of Python and Node)",
    run: |arguments| {
        run(arguments).unwrap_or_else(|problem| {
            process::say(&problem);
            ExitCode::FAILURE
        })
    },
};

const NO_POSTGRES: &str = "--no-postgres";

fn run(arguments: &[String]) -> Result<ExitCode, String> {
    let with_postgres = !arguments.iter().any(|word| word == NO_POSTGRES);
    if with_postgres {
        prepare_postgres()?;
    }
    let whole = arguments.iter().all(|word| word == NO_POSTGRES);
    if whole {
        // The rules in a release build as well: only there does arithmetic wrap unseen.
        let rules = process::run(&mut process::cargo(&["test", "--release", "--package", "tidings-core"]));
        if rules != ExitCode::SUCCESS {
            return Ok(rules);
        }
    }
    let mut tests = process::cargo(&["test", "--all-features"]);
    tests.args(words(arguments)).envs(foreign::ensure());
    let code = process::run(&mut tests);
    if with_postgres && postgres::stop_shared()? {
        process::say("stopped the PostgreSQL of the tests");
    }
    Ok(code)
}

fn prepare_postgres() -> Result<(), String> {
    if std::env::var_os(postgres::SERVER_VARIABLE).is_some() {
        process::say(&format!("PostgreSQL: the server that {} names", postgres::SERVER_VARIABLE));
        return Ok(());
    }
    process::say(
        "PostgreSQL: its package is installed if it is missing; a throw-away server is started and stopped",
    );
    let programs = postgres::ensure_installed()
        .map_err(|problem| format!("{problem}; or leave its tests out: cargo xtask test {NO_POSTGRES}"))?;
    process::say(&format!("PostgreSQL: {}", programs.display()));
    Ok(())
}

/// The arguments of `cargo test` behind our own. Without PostgreSQL, tests with
/// `postgres` in their name or module are skipped, and so is the kit that
/// starts it.
fn words(arguments: &[String]) -> Vec<&str> {
    let given: Vec<&str> = arguments.iter().map(String::as_str).filter(|word| *word != NO_POSTGRES).collect();
    let without_postgres = given.len() < arguments.len();
    let ours = given.iter().position(|word| *word == "--").unwrap_or(given.len());
    let (for_cargo, for_tests) = given.split_at(ours);
    let names_a_package =
        for_cargo.iter().any(|word| word.starts_with("-p") || word.starts_with("--package"));
    let mut words = vec![];
    if !names_a_package {
        words.push("--workspace");
        words.extend(without_postgres.then_some(["--exclude", "testkit"]).into_iter().flatten());
    }
    words.extend(for_cargo);
    words.extend(if for_tests.is_empty() && without_postgres { &["--"] } else { for_tests });
    words.extend(without_postgres.then_some(["--skip", "postgres"]).into_iter().flatten());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_reach_cargo_test_and_packages_replace_the_workspace() {
        let table = [
            ("", "--workspace"),
            ("contract -- --nocapture", "--workspace contract -- --nocapture"),
            ("-p tidings contract", "-p tidings contract"),
            ("--no-postgres", "--workspace --exclude testkit -- --skip postgres"),
            ("--no-postgres -p tidings -- --nocapture", "-p tidings -- --nocapture --skip postgres"),
        ];
        for (given, expected) in table {
            let arguments: Vec<String> = given.split_whitespace().map(str::to_owned).collect();
            assert_eq!(words(&arguments).join(" "), expected, "{given}");
        }
    }
}
