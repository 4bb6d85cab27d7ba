//! `tidings completions`.

use crate::cli::Cli;
use crate::exit::Exit;
use crate::print;
use crate::problem::{Problem, Sort};
use clap::CommandFactory;

/// Prints the script. It is the same with `--json`: a shell reads it.
pub(crate) fn run(shell: clap_complete::Shell) -> Result<Exit, Problem> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "tidings", &mut script);
    let script = String::from_utf8(script)
        .map_err(|_| Problem::new(Sort::Internal, "the completion script is not UTF-8"))?;
    print::line(script.trim_end())?;
    Ok(Exit::Done)
}
