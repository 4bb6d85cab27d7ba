//! `tidings serve`: the API and the workers, until somebody stops them.

use super::Context;
use crate::api::{Api, SharedWorkers};
use crate::api_key::{self, FirstKey, Keys};
use crate::config::{Config, Declarations};
use crate::database::{self, Schema};
use crate::exit::Exit;
use crate::http_server;
use crate::problem::{Problem, Sort};
use crate::stop;
use crate::subscription;
use hyper_util::service::TowerToHyperService;
use serde::Serialize;
use std::net::SocketAddr;
use tidings::{RecordRefused, Tidings};
use tokio::net::TcpListener;

/// A given key that is shorter is warned of.
const KEY_CHARACTERS_MIN: usize = 16;

/// What is said at the start.
#[derive(Serialize)]
struct Started {
    listening: String,
    database: String,
    queues: Vec<QueueStarted>,
    admin_key: Option<String>,
    notes: Vec<String>,
}

#[derive(Serialize)]
struct QueueStarted {
    queue: String,
    workers: usize,
}

/// Runs until it is stopped.
pub(crate) async fn run(context: &Context, config: Config) -> Result<Exit, Problem> {
    // Before anything that takes time: a signal that comes during the start is heeded after it.
    let stopping = stop::requested()?;
    // So early that a second server on the port ends before it touches the database.
    let listener = bind(config.listen).await?;
    let address = listener.local_addr().map_err(|error| cannot_listen(config.listen, &error))?;
    let tidings = database::open(&config, Schema::Migrate).await?;
    declare(&tidings, &config.declarations).await?;
    let workers = SharedWorkers::of(tidings.work().await?);
    // Last, with nothing between it and the print that may fail: a key that was stored and
    // not shown is lost.
    let first_key = api_key::first(&tidings, config.admin_key.as_deref()).await?;
    let started = started(&config, address, tidings.queues().iter(), first_key);
    context.style.result(|| started.text(), &started)?;

    let keys = Keys::new(tidings.clone(), config.admin_key.as_deref());
    let router = Api::new(tidings.clone(), keys, workers.clone(), stopping.clone()).router();
    let service = TowerToHyperService::new(router);
    let serving = http_server::serve(listener, |_, _| service.clone(), stop::wait(stopping.clone()));
    let working = async {
        stop::wait(stopping).await;
        tracing::info!("stopping: no new work is taken, running attempts may end");
        if let Some(workers) = workers.take() {
            workers.stop().await;
        }
    };
    tokio::join!(serving, working);
    tracing::info!("stopped");
    Ok(Exit::Done)
}

/// Declares what the configuration says. Nothing is carried out before: a subscription
/// that cannot be must not be found out by its events.
async fn declare(tidings: &Tidings, declarations: &Declarations) -> Result<(), Problem> {
    let Declarations { types, subscriptions, place } = declarations;
    let refused = |refused: RecordRefused| match refused {
        RecordRefused::Store(error) => error.into(),
        other => Problem::new(Sort::BadConfiguration, format!("{place}: {other}")).field("subscriptions"),
    };
    if !types.is_empty() {
        tidings.declare(types, &[]).await.map_err(refused)?;
    }
    if !subscriptions.is_empty() {
        subscription::subscribe(tidings, subscriptions).await.map_err(refused)?;
    }
    Ok(())
}

async fn bind(address: SocketAddr) -> Result<TcpListener, Problem> {
    TcpListener::bind(address).await.map_err(|error| cannot_listen(address, &error))
}

fn cannot_listen(address: SocketAddr, error: &std::io::Error) -> Problem {
    let detail = format!("cannot listen on {address}: {error}; choose another with --listen");
    Problem::new(Sort::BadConfiguration, detail)
}

fn started<'a>(
    config: &Config,
    address: SocketAddr,
    queues: impl Iterator<Item = &'a String>,
    first_key: FirstKey,
) -> Started {
    let workers = |queue: &String| config.settings.workers.get(queue).copied();
    let queues = queues
        .map(|queue| QueueStarted {
            queue: queue.clone(),
            workers: workers(queue).unwrap_or(config.settings.workers_default),
        })
        .collect();
    let mut notes = Vec::new();
    let admin_key = match first_key {
        FirstKey::Made(key) => Some(key),
        FirstKey::Given => {
            notes.push("The admin key of TIDINGS_ADMIN_KEY is accepted.".to_owned());
            if config.admin_key.as_ref().is_some_and(|key| key.len() < KEY_CHARACTERS_MIN) {
                notes.push(format!(
                    "WARNING: it has fewer than {KEY_CHARACTERS_MIN} characters and can be guessed: take a long \
                     random one, as `openssl rand -hex 32` prints it."
                ));
            }
            None
        }
        FirstKey::Kept => {
            notes.push("The admin key is the one of the first start; TIDINGS_ADMIN_KEY adds one.".to_owned());
            None
        }
    };
    if config.http.guard.allow_private {
        notes.push(
            "WARNING: private and loopback addresses may be called (--allow-private): whoever can enqueue \
             reaches what this machine reaches. For trying things out only."
                .to_owned(),
        );
    }
    if !address.ip().is_loopback() {
        notes.push(
            "The API speaks plain HTTP to other machines: put a proxy with TLS in front of it.".to_owned(),
        );
    }
    Started {
        listening: format!("http://{address}"),
        database: config.database.to_string(),
        queues,
        admin_key,
        notes,
    }
}

impl Started {
    fn text(&self) -> String {
        let queues: Vec<String> =
            self.queues.iter().map(|queue| format!("{} ({} workers)", queue.queue, queue.workers)).collect();
        let mut lines = vec![
            format!("Tidings {} listens on {}", env!("CARGO_PKG_VERSION"), self.listening),
            format!("Database: {}", self.database),
            format!("Queues: {}", queues.join(", ")),
        ];
        lines.extend(self.admin_key.iter().map(|key| format!("Admin key (shown once): {key}")));
        lines.extend(self.notes.iter().cloned());
        lines.join("\n")
    }
}
