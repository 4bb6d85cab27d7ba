//! The `tidings` program: parses, builds and calls.
//!
//! Each command is one file in [`command`]; what they and the API share is one file
//! for each noun. The library does the work: nothing here knows of SQL, of retries
//! or of time limits of jobs.

mod accepted;
mod api;
mod api_key;
mod cli;
mod command;
mod config;
mod cursor;
mod database;
#[cfg(test)]
mod docs_page;
mod environment;
mod event_listing;
mod exit;
mod http_server;
mod incident_list;
mod instant;
mod listener;
mod listing;
mod logging;
mod print;
mod problem;
mod queue_list;
mod recording;
mod stop;
mod subscription;
mod table;
mod verdict;
mod view;

use crate::cli::{Cli, Command};
use crate::environment::Environment;
use crate::exit::Exit;
use crate::print::Style;
use crate::problem::{Problem, Sort};
use clap::Parser;
use std::process::ExitCode;
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How long background tasks get when the program ends.
const LAST_TASKS: Duration = Duration::from_millis(200);

#[allow(clippy::disallowed_methods, reason = "the one place where the environment is read")]
fn main() -> ExitCode {
    let environment = Environment::of(std::env::vars_os());
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return not_parsed(&error, std::env::args_os().any(|word| word == "--json")),
    };
    let style = if cli.global.json { Style::Json } else { Style::Text };
    match start(cli, &environment) {
        Ok(exit) => exit.into(),
        Err(problem) => {
            style.problem(&problem);
            problem.exit().into()
        }
    }
}

/// Help and version are results; the rest is a usage error, also as JSON.
fn not_parsed(error: &clap::Error, json: bool) -> ExitCode {
    if !error.use_stderr() || !json {
        // There is nobody left to tell that the terminal is gone.
        let _printed = error.print();
        return if error.use_stderr() { Exit::Usage.into() } else { Exit::Done.into() };
    }
    let rendered = error.render().to_string();
    let detail = rendered.strip_prefix("error: ").unwrap_or(&rendered).trim();
    let problem = Problem::new(Sort::InvalidParameter, detail);
    Style::Json.problem(&problem);
    problem.exit().into()
}

fn start(cli: Cli, environment: &Environment) -> Result<Exit, Problem> {
    let default = if matches!(cli.command, Command::Serve(_)) { "info" } else { "warn" };
    logging::start(cli.global.log.as_deref(), cli.global.log_format, environment, default)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Problem::new(Sort::Internal, format!("the program cannot start: {error}")))?;
    let stays = matches!(cli.command, Command::Serve(_) | Command::Listen(_));
    let result = runtime.block_on(async {
        tokio::select! {
            result = command::run(cli, environment) => result,
            stopped = second_signal(), if stays => stopped,
        }
    });
    // Without this the program would wait for whatever still runs.
    runtime.shutdown_timeout(LAST_TASKS);
    result
}

/// Who asks twice does not want to wait.
async fn second_signal() -> Result<Exit, Problem> {
    let mut signals = stop::Signals::catch()?;
    signals.next().await;
    signals.next().await;
    Err(Problem::new(Sort::Internal, "stopped at once by a second signal; attempts in flight are unknown"))
}
