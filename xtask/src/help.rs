//! `cargo xtask help`: prints the commands.

use crate::{COMMANDS, Command};
use std::process::ExitCode;

pub(crate) const COMMAND: Command =
    Command { name: "help", arguments: "", summary: "print this list", run: |_| print_to_stdout() };

/// Exit code for words that are not a command, as shells and parsers use it.
const EXIT_USAGE: u8 = 2;

/// Says what was wrong, then what there is.
pub(crate) fn refuse(problem: &str) -> ExitCode {
    eprintln!("xtask: {problem}\n\n{}", text());
    ExitCode::from(EXIT_USAGE)
}

fn print_to_stdout() -> ExitCode {
    println!("{}", text());
    ExitCode::SUCCESS
}

fn text() -> String {
    let usages: Vec<String> =
        COMMANDS.iter().map(|command| format!("{} {}", command.name, command.arguments)).collect();
    let width = usages.iter().map(String::len).max().unwrap_or(0);
    let lines = COMMANDS
        .iter()
        .zip(&usages)
        .map(|(command, usage)| format!("  cargo xtask {usage:width$}  {}", command.summary));
    std::iter::once("Commands:".to_owned()).chain(lines).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_names_every_command_once() {
        for command in COMMANDS {
            let line = format!("cargo xtask {} ", command.name);
            assert_eq!(text().matches(&line).count(), 1, "{}", command.name);
        }
    }
}
