//! Every command worth knowing, in one place: `cargo xtask help` prints them.
//!
//! `main` finds the command and calls it; each command is one file. The house
//! rules that no compiler checks live in `rules` and run as tests
//! (`cargo test -p xtask`).
//!
//! Absent on purpose: an argument parser. What a command does not know, it
//! hands to the program that it runs.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for the terminal")]
#![allow(clippy::disallowed_methods, reason = "it is `main`: it reads its own environment")]

mod bench;
mod check;
mod docs;
mod foreign;
mod help;
mod process;
#[cfg(test)]
mod rules;
mod test;

use std::process::ExitCode;

/// One command: what `help` says of it, and what it does.
pub(crate) struct Command {
    pub name: &'static str,
    pub arguments: &'static str,
    pub summary: &'static str,
    pub run: fn(&[String]) -> ExitCode,
}

/// Every command, in the order in which `help` prints them.
pub(crate) const COMMANDS: &[Command] =
    &[test::COMMAND, check::COMMAND, docs::COMMAND, bench::COMMAND, help::COMMAND];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.split_first() {
        None => help::refuse("say which command to run"),
        Some((word, rest)) => match COMMANDS.iter().find(|command| command.name == word) {
            Some(command) => (command.run)(rest),
            None => help::refuse(&format!("there is no command `{word}`")),
        },
    }
}
