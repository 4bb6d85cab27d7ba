//! Prints every state against every command, and keeps `docs/job-states.md`
//! equal to what the code does. `cargo xtask docs` rewrites the page.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test reads the page that it keeps, and may stop at a surprise"
)]

mod world;

use std::fmt::Write;
use tidings_core::decide::decide;
use tidings_core::evolve::evolve;
use tidings_core::fact::Fact;
use tidings_core::job::{Job, State};
use world::{NOW, commands, states};

const HEAD: &str = "# Job states

Written by `crates/core/tests/job_states.rs` (`cargo xtask docs`); do not edit.

Each row is one answer of `decide`: a job in the state on the left is given the command, and the facts
in the third column are recorded, in that order. `claimed` stands on the row until the attempt ends; every
other fact is a line of the job's history. \"Nothing\" means that what was asked for is already so.

The policy here allows 3 attempts and 2 crashes. The attempt in flight is number 1 unless the row says otherwise.

| state | command | facts recorded | becomes |
| --- | --- | --- | --- |
";

fn describe(job: &Job) -> String {
    let name = job.state.name().as_str();
    match &job.state {
        State::Held => format!("{name}, held"),
        State::Running { accepted_late: true, .. } => format!("{name}, accepted late"),
        State::Running { cancel_requested: true, .. } => format!("{name}, cancel requested"),
        State::Waiting { .. }
        | State::Running { .. }
        | State::Completed { .. }
        | State::Discarded { .. }
        | State::Cancelled { .. } => name.to_owned(),
    }
}

#[test]
fn docs_page_of_job_states_matches_the_code() {
    let mut page = String::from(HEAD);
    for (label, job) in states() {
        for (command_label, command) in commands() {
            match decide(&job, command, NOW) {
                Ok(facts) => {
                    let after = facts.iter().fold(job.clone(), |job, fact| evolve(job, fact, NOW));
                    let names: Vec<_> = facts.iter().map(Fact::name).collect();
                    let names = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
                    writeln!(page, "| {label} | {command_label} | {names} | {} |", describe(&after)).unwrap();
                }
                Err(refusal) => {
                    writeln!(page, "| {label} | {command_label} | refused: {refusal} | |").unwrap();
                }
            }
        }
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/job-states.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        kept == page,
        "docs/job-states.md is not what the code does: run `cargo xtask docs` and read the change"
    );
}

#[test]
fn a_job_is_due_exactly_while_something_must_still_happen_by_itself() {
    for (label, job) in states() {
        let needs_nobody = matches!(job.state, State::Held) || job.state.finished_at().is_some();
        assert_eq!(job.state.due_at().is_none(), needs_nobody, "{label}");
        assert_eq!(job.state.finished_at().is_some(), job.state.name().is_finished(), "{label}");
    }
}

#[test]
fn every_state_but_completed_has_a_way_out() {
    for (label, job) in states() {
        let ways_out = commands()
            .into_iter()
            .filter(|(_, command)| decide(&job, command.clone(), NOW).is_ok_and(|facts| !facts.is_empty()))
            .count();
        let done = matches!(job.state, State::Completed { .. });
        assert!(done || ways_out > 0, "{label} is a dead end");
    }
}
