//! The command line, as data: every command and flag, once. Help, completions and
//! `docs/cli.md` are made of it.

mod outbox;
#[cfg(test)]
mod page;

pub(crate) use outbox::{
    BecomesFlags, EventTypes, Events, EventsList, Incidents, Record, SubscriptionSet, Subscriptions,
};

use crate::config::Flags;
use crate::logging::LogFormat;
use clap::{Args, Parser, Subcommand, ValueHint};
use std::path::PathBuf;

/// Durable jobs, outbox, webhook and mail delivery on SQLite and PostgreSQL.
#[derive(Parser)]
#[command(name = "tidings", version, max_term_width = 100, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Args)]
pub(crate) struct Global {
    /// The database: `sqlite:PATH` or `postgres://USER@HOST/NAME` [default: sqlite:tidings.db; env: TIDINGS_DATABASE]
    #[arg(long, global = true, value_name = "ADDRESS", help_heading = "Everywhere")]
    pub(crate) database: Option<String>,
    /// The configuration file, in TOML [env: TIDINGS_CONFIG]
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Everywhere")]
    pub(crate) config: Option<PathBuf>,
    /// Print results and problems as JSON
    #[arg(long, global = true, help_heading = "Everywhere")]
    pub(crate) json: bool,
    /// What to log on stderr, like `info` or `tidings=debug` [env: RUST_LOG]
    #[arg(long, global = true, value_name = "FILTER", help_heading = "Everywhere")]
    pub(crate) log: Option<String>,
    /// How to write the log
    #[arg(long, global = true, value_name = "FORMAT", default_value = "text", help_heading = "Everywhere")]
    pub(crate) log_format: LogFormat,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run the HTTP API and the workers
    Serve(Serve),
    /// Bring the database's schema up to date, making the database file if it is not there
    Migrate,
    /// Enqueue a job
    Enqueue(Box<Enqueue>),
    /// List, show and change jobs
    #[command(subcommand)]
    Jobs(Jobs),
    /// List, pause and resume queues
    #[command(subcommand)]
    Queues(Queues),
    /// Record an event
    Record(Box<Record>),
    /// List, show and put back events
    #[command(subcommand)]
    Events(Events),
    /// List and declare event types
    #[command(subcommand)]
    EventTypes(EventTypes),
    /// List, show, set and remove subscriptions
    #[command(subcommand)]
    Subscriptions(Subscriptions),
    /// List incidents
    #[command(subcommand)]
    Incidents(Incidents),
    /// Print what happened to a job, attempt by attempt, and what is safe to do next; or to an event and its jobs
    Trace {
        /// The id of a job or an event
        id: String,
    },
    /// Receive requests locally: print them, verify their signatures, misbehave on command
    Listen(Listen),
    /// Print a completion script for a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
}

#[derive(Args)]
pub(crate) struct Serve {
    /// Where the API listens [default: 127.0.0.1:7070; env: TIDINGS_LISTEN]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<String>,
    /// Let requests go to private and loopback addresses, any port and plain http: for trying things out
    #[arg(long)]
    pub(crate) allow_private: bool,
    /// Attempts in flight at once in each queue [default: 10]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) workers: Option<usize>,
}

#[derive(Args)]
pub(crate) struct Enqueue {
    /// The job's kind, like `http.call`
    pub(crate) kind: String,
    /// The arguments as JSON; `-` reads them from stdin
    #[arg(long, value_name = "JSON", conflicts_with = "args_file")]
    pub(crate) args: Option<String>,
    /// A file with the arguments as JSON; `-` is stdin
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) args_file: Option<PathBuf>,
    /// Another queue than the kind's
    #[arg(long, value_name = "NAME")]
    pub(crate) queue: Option<String>,
    /// 1 (most urgent) to 4
    #[arg(long, value_name = "1-4")]
    pub(crate) priority: Option<i64>,
    /// Not before this time (RFC 3339)
    #[arg(long, value_name = "TIME")]
    pub(crate) run_at: Option<String>,
    /// No other unfinished job of the kind may share it
    #[arg(long, value_name = "KEY")]
    pub(crate) unique_key: Option<String>,
    /// Whose job it is
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// The same call twice with this key enqueues once
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
    /// Wait so long for the job to settle, and say what became of it
    #[arg(long, value_name = "SECONDS")]
    pub(crate) wait: Option<u64>,
    #[command(flatten)]
    pub(crate) http: HttpCallFlags,
}

/// The arguments of `http.call`, one by one.
#[derive(Args)]
#[command(next_help_heading = "Instead of --args, for http.call")]
pub(crate) struct HttpCallFlags {
    /// Where to send the request
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url, conflicts_with_all = ["args", "args_file"])]
    pub(crate) url: Option<String>,
    /// The method [default: POST]
    #[arg(long, value_name = "METHOD", requires = "url")]
    pub(crate) method: Option<String>,
    /// A header, `name: value`; may be given several times
    #[arg(long = "header", value_name = "HEADER", requires = "url")]
    pub(crate) headers: Vec<String>,
    /// The body: any JSON, sent as it is written
    #[arg(long, value_name = "JSON", requires = "url")]
    pub(crate) body: Option<String>,
    /// Sign the request as a Standard Webhook with this secret (`whsec_…`)
    #[arg(long, value_name = "SECRET", requires = "url")]
    pub(crate) secret: Option<String>,
    /// The receiver dedupes, or doing it twice is the same as once
    #[arg(long, requires = "url")]
    pub(crate) idempotent: bool,
}

#[derive(Subcommand)]
pub(crate) enum Jobs {
    /// List jobs, newest first
    List(JobsList),
    /// Show one job with its attempts
    Show {
        /// The job's id
        id: String,
    },
    /// Bring a discarded or cancelled job back, or do not wait for the next attempt
    Retry(JobAct),
    /// Cancel a job; one that runs is asked to stop
    Cancel(JobAct),
    /// Decide about a job whose outcome is unknown
    Resolve(Resolve),
}

#[derive(Args)]
pub(crate) struct JobsList {
    /// Only jobs in this state
    #[arg(long)]
    pub(crate) state: Option<String>,
    /// Only jobs of this kind
    #[arg(long)]
    pub(crate) kind: Option<String>,
    /// Only jobs in this queue
    #[arg(long)]
    pub(crate) queue: Option<String>,
    /// Only jobs of this tenant
    #[arg(long)]
    pub(crate) tenant: Option<String>,
    /// How many [default: 50]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) limit: Option<String>,
    /// Where the page begins, as the page before said
    #[arg(long)]
    pub(crate) cursor: Option<String>,
}

#[derive(Args)]
pub(crate) struct JobAct {
    /// The job's id
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) who: Who,
}

/// Who does it and why, for the history.
#[derive(Args)]
pub(crate) struct Who {
    /// Why, for the job's history
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) reason: String,
    /// Who [default: cli: and the user's name]
    #[arg(long, value_name = "NAME")]
    pub(crate) actor: Option<String>,
}

#[derive(Args)]
pub(crate) struct Resolve {
    /// The job's id
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) decision: Decision,
    #[command(flatten)]
    pub(crate) who: Who,
}

#[derive(Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Decision {
    /// It happened, there is proof: the job is done
    #[arg(long)]
    pub(crate) accepted: bool,
    /// Send again, with the same id
    #[arg(long)]
    pub(crate) retry: bool,
    /// Leave it: the job is discarded
    #[arg(long)]
    pub(crate) give_up: bool,
}

#[derive(Subcommand)]
pub(crate) enum Queues {
    /// List the queues, and which are paused
    List,
    /// Stop taking jobs from a queue, in every process; what runs goes on
    Pause {
        /// The queue's name
        queue: String,
        #[command(flatten)]
        who: Who,
    },
    /// Take jobs from a queue again
    Resume {
        /// The queue's name
        queue: String,
    },
}

#[derive(Args)]
pub(crate) struct Listen {
    /// Where to listen
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9090")]
    pub(crate) addr: std::net::SocketAddr,
    /// Fail the first N requests, then accept; without it, what follows is done to every request
    #[arg(long, value_name = "N")]
    pub(crate) fail: Option<u64>,
    /// The status of a failure [default: 503, or 429 with --retry-after]
    #[arg(long, value_name = "STATUS", value_parser = clap::value_parser!(u16).range(200..=599))]
    pub(crate) status: Option<u16>,
    /// Fail by never answering
    #[arg(long, conflicts_with_all = ["reset", "retry_after", "status"])]
    pub(crate) hang: bool,
    /// Fail by resetting the connection after having read the request
    #[arg(long, conflicts_with_all = ["retry_after", "status"])]
    pub(crate) reset: bool,
    /// Fail with this Retry-After: seconds, or an HTTP date
    #[arg(long, value_name = "VALUE")]
    pub(crate) retry_after: Option<String>,
    /// Verify Standard Webhooks signatures with this secret (`whsec_…`)
    #[arg(long, value_name = "SECRET")]
    pub(crate) secret: Option<String>,
}

impl Cli {
    /// What the command line says of settings.
    pub(crate) fn flags(&self) -> Flags {
        let mut flags = Flags {
            config: self.global.config.clone(),
            database: self.global.database.clone(),
            ..Flags::default()
        };
        if let Command::Serve(serve) = &self.command {
            flags.listen.clone_from(&serve.listen);
            flags.allow_private = serve.allow_private;
            flags.workers = serve.workers;
        }
        flags
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
