//! What each command does, one file each; `serve` has a module of its own.

pub(crate) mod completions;
pub(crate) mod enqueue;
pub(crate) mod event_types;
pub(crate) mod events;
pub(crate) mod incidents;
mod input;
pub(crate) mod jobs;
pub(crate) mod listen;
pub(crate) mod migrate;
pub(crate) mod queues;
pub(crate) mod record;
pub(crate) mod serve;
pub(crate) mod subscriptions;
pub(crate) mod trace;

use crate::cli::{Cli, Command, Who};
use crate::config::Config;
use crate::database::{self, Schema};
use crate::environment::Environment;
use crate::exit::Exit;
use crate::print::{Style, shown};
use crate::problem::{Problem, Sort};
use tidings::core::event::EventId;
use tidings::{Act, JobId};

/// What every command is given.
pub(crate) struct Context {
    pub(crate) style: Style,
    pub(crate) user: String,
}

/// Does what the command line says.
pub(crate) async fn run(cli: Cli, environment: &Environment) -> Result<Exit, Problem> {
    let style = if cli.global.json { Style::Json } else { Style::Text };
    let context = Context { style, user: environment.user().to_owned() };
    let flags = cli.flags();
    match cli.command {
        Command::Completions { shell } => return completions::run(shell),
        Command::Listen(listen) => return listen::run(&context, listen).await,
        Command::Serve(_)
        | Command::Migrate
        | Command::Enqueue(_)
        | Command::Jobs(_)
        | Command::Queues(_)
        | Command::Record(_)
        | Command::Events(_)
        | Command::EventTypes(_)
        | Command::Subscriptions(_)
        | Command::Incidents(_)
        | Command::Trace { .. } => {}
    }
    let config = Config::read(&flags, environment)?;
    if let Command::Serve(_) = cli.command {
        return serve::run(&context, config).await;
    }
    if let Command::Migrate = cli.command {
        return migrate::run(&context, &config).await;
    }
    let tidings = database::open(&config, Schema::AsItIs).await?;
    match cli.command {
        Command::Enqueue(enqueue) => enqueue::run(&context, &tidings, *enqueue).await,
        Command::Jobs(jobs) => jobs::run(&context, &tidings, jobs).await,
        Command::Queues(queues) => queues::run(&context, &tidings, queues).await,
        Command::Record(record) => record::run(&context, &tidings, *record).await,
        Command::Events(events) => events::run(&context, &tidings, events).await,
        Command::EventTypes(types) => event_types::run(&context, &tidings, types).await,
        Command::Subscriptions(named) => subscriptions::run(&context, &tidings, named).await,
        Command::Incidents(incidents) => incidents::run(&context, &tidings, incidents).await,
        Command::Trace { id } => trace::run(&context, &tidings, &id).await,
        Command::Serve(_) | Command::Migrate | Command::Listen(_) | Command::Completions { .. } => {
            unreachable!("they were run above")
        }
    }
}

impl Context {
    /// Who does it and why.
    fn act(&self, who: Who) -> Act {
        let actor = who.actor.unwrap_or_else(|| format!("cli:{}", self.user));
        Act { actor, reason: who.reason }
    }
}

/// The event that somebody names.
fn event_id(text: &str) -> Result<EventId, Problem> {
    text.parse().map_err(|_| {
        let detail = format!(
            "`{}` is not an event id; write `evt_` and 32 hexadecimal digits, as `tidings record` prints it",
            shown(text)
        );
        Problem::new(Sort::NoSuchEvent, detail)
    })
}

/// The job that somebody names.
fn job_id(text: &str) -> Result<JobId, Problem> {
    text.parse().map_err(|_| {
        let detail = format!(
            "`{}` is not a job id; write `job_` and 32 hexadecimal digits, as `tidings enqueue` prints it",
            shown(text)
        );
        Problem::new(Sort::NoSuchJob, detail)
    })
}
