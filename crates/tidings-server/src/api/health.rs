//! `/healthz` and `/readyz`: for whatever watches the process. They need no key
//! and say nothing about jobs.

use super::{Answer, Shared, answer};
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use std::time::Duration;

/// How long the database may take to answer.
const DATABASE_MAX: Duration = Duration::from_secs(3);

#[derive(Serialize)]
struct Health {
    status: &'static str,
}

/// What readiness depends on; each `ok`, or what is wrong.
#[derive(Serialize)]
struct Readiness {
    ready: bool,
    database: String,
    workers: String,
}

/// The process lives and answers.
pub(super) async fn lives() -> Answer {
    answer::json(StatusCode::OK, &Health { status: "ok" })
}

/// The database answers and the workers look at their queues.
pub(super) async fn ready(State(api): Shared) -> Answer {
    let database = match tokio::time::timeout(DATABASE_MAX, api.tidings().paused()).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(problem)) => {
            tracing::warn!(%problem, "not ready: the database does not answer");
            Err("does not answer".to_owned())
        }
        Err(_) => Err(format!("does not answer within {} s", DATABASE_MAX.as_secs())),
    };
    let workers = api.parts.workers.ready();
    let ready = database.is_ok() && workers.is_ok();
    let word = |result: Result<(), String>| result.err().unwrap_or_else(|| "ok".to_owned());
    let readiness = Readiness { ready, database: word(database), workers: word(workers) };
    answer::json(if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, &readiness)
}
