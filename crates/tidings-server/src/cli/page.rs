//! The page of commands, printed from the parser. A test compares it with `docs/`.

use super::Cli;
use crate::exit::Exit;
use clap::{Arg, ArgAction, Command, CommandFactory};
use std::fmt::Write;

fn page() -> String {
    let mut page = String::from(
        "# Command line\n\nWritten by the test `docs_page_of_commands_matches_the_code` (`cargo xtask docs`); \
         do not edit.\n\n\
         `serve` runs the API and the workers. Every other command opens the database itself, the one of \
         `--database`, so that on the machine that owns it no key is needed; but only `serve` and `migrate` \
         make a database or change its schema. Results go to stdout, the log and problems to stderr. With \
         `--json` a result is one JSON document, or for `listen` one a line, and a problem is one as `docs/http.md` \
         describes them, with `exit_code`.\n\n\
         ## Exit codes\n\n| code | meaning |\n|---|---|\n",
    );
    for (exit, meaning) in Exit::ALL {
        let _ = writeln!(page, "| {} | {meaning} |", exit as u8);
    }
    let cli = Cli::command();
    page.push_str("\n## Everywhere\n\n");
    arguments(&mut page, cli.get_arguments().filter(|argument| argument.is_global_set()));
    for command in cli.get_subcommands() {
        section(&mut page, "tidings", command);
    }
    page
}

fn section(page: &mut String, before: &str, command: &Command) {
    let name = format!("{before} {}", command.get_name());
    if command.has_subcommands() {
        for inner in command.get_subcommands() {
            section(page, &name, inner);
        }
        return;
    }
    let positional: String = command
        .get_positionals()
        .map(|argument| format!(" {}", argument.get_id().as_str().to_uppercase()))
        .collect();
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let _ = write!(page, "\n## `{name}{positional}`\n\n{about}.\n\n");
    arguments(page, command.get_arguments());
}

fn arguments<'a>(page: &mut String, arguments: impl Iterator<Item = &'a Arg>) {
    for argument in arguments {
        let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(page, "* `{}`: {help}{}", usage(argument), default(argument));
    }
}

fn usage(argument: &Arg) -> String {
    let id = argument.get_id().as_str();
    let Some(long) = argument.get_long() else { return id.to_uppercase() };
    let takes_value = matches!(argument.get_action(), ArgAction::Set | ArgAction::Append);
    let value = argument
        .get_value_names()
        .and_then(|names| names.first())
        .map_or_else(|| id.to_uppercase(), ToString::to_string);
    if takes_value { format!("--{long} {value}") } else { format!("--{long}") }
}

fn default(argument: &Arg) -> String {
    let defaults: Vec<_> = argument
        .get_default_values()
        .iter()
        .map(|value| value.to_string_lossy())
        .filter(|value| !value.is_empty())
        .collect();
    let is_flag = matches!(argument.get_action(), ArgAction::SetTrue);
    if defaults.is_empty() || is_flag {
        String::new()
    } else {
        format!(" [default: {}]", defaults.join(", "))
    }
}

#[test]
fn docs_page_of_commands_matches_the_code() {
    crate::docs_page::check("cli.md", &page());
}
