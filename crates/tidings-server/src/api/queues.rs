//! `GET /v1/queues`, `POST /v1/queues/{queue}/pause` and `/resume`.

use super::acts::read_act;
use super::{Answer, Api, Shared, answer};
use crate::api_key::Caller;
use crate::problem::{Problem, Sort};
use crate::queue_list::{self, QueueLine};
use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use serde::Serialize;

#[derive(Serialize)]
struct QueuesDocument {
    queues: Vec<QueueLine>,
}

/// Every queue that this process serves.
pub(super) async fn list(State(api): Shared) -> Answer {
    answer::json(StatusCode::OK, &QueuesDocument { queues: queue_list::all(api.tidings()).await? })
}

/// Stops the claiming from a queue, everywhere.
pub(super) async fn pause(
    State(api): Shared,
    Extension(caller): Extension<Caller>,
    queue: Result<Path<String>, PathRejection>,
    request: Request,
) -> Answer {
    let queue = name(queue)?;
    let act = read_act(&caller, request).await?;
    api.tidings().pause(&queue, &act).await.map_err(queue_list::refused)?;
    state(&api, &queue).await
}

/// Lets a queue be claimed from again.
pub(super) async fn resume(
    State(api): Shared,
    Extension(caller): Extension<Caller>,
    queue: Result<Path<String>, PathRejection>,
    request: Request,
) -> Answer {
    let queue = name(queue)?;
    // Read so that a malformed one is refused; the library keeps no history of queues yet.
    read_act(&caller, request).await?;
    api.tidings().resume(&queue).await.map_err(queue_list::refused)?;
    state(&api, &queue).await
}

fn name(path: Result<Path<String>, PathRejection>) -> Result<String, Problem> {
    path.map(|Path(name)| name)
        .map_err(|_| Problem::new(Sort::NoSuchQueue, "the queue in the path is not valid text"))
}

async fn state(api: &Api, queue: &str) -> Answer {
    answer::json(StatusCode::OK, &queue_list::one(api.tidings(), queue).await?)
}
