//! What people do to jobs: `POST /v1/jobs/{id}/retry`, `/cancel` and `/resolve`.
//!
//! Each takes who and why, and is part of the job's history.

use super::jobs::job_id;
use super::{Answer, Shared, answer, body};
use crate::api_key::Caller;
use crate::problem::Problem;
use crate::view::JobLine;
use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use serde::Deserialize;
use tidings::core::job::Job;
use tidings::{Act, Resolution};

/// Who and why; both may be left out.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "an object")]
pub(super) struct ActBody {
    reason: Option<String>,
    actor: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
struct ResolveBody {
    resolution: Resolution,
    reason: Option<String>,
    actor: Option<String>,
}

type Id = Result<Path<String>, PathRejection>;

/// Brings a job back, or does not wait for its next attempt.
pub(super) async fn retry(
    State(api): Shared,
    Extension(caller): Extension<Caller>,
    id: Id,
    request: Request,
) -> Answer {
    let ActBody { reason, actor } = body::read_if_any(request).await?;
    changed(api.tidings().retry(job_id(id)?, &act(&caller, actor, reason)).await?)
}

/// Cancels a job; one that runs is asked to stop.
pub(super) async fn cancel(
    State(api): Shared,
    Extension(caller): Extension<Caller>,
    id: Id,
    request: Request,
) -> Answer {
    let ActBody { reason, actor } = body::read_if_any(request).await?;
    changed(api.tidings().cancel(job_id(id)?, &act(&caller, actor, reason)).await?)
}

/// Decides about an unknown outcome.
pub(super) async fn resolve(
    State(api): Shared,
    Extension(caller): Extension<Caller>,
    id: Id,
    request: Request,
) -> Answer {
    let ResolveBody { resolution, reason, actor } = body::read(request).await?;
    changed(api.tidings().resolve(job_id(id)?, resolution, &act(&caller, actor, reason)).await?)
}

#[expect(clippy::needless_pass_by_value, reason = "it takes what the library returned")]
fn changed(job: Job) -> Answer {
    answer::json(StatusCode::OK, &JobLine::of(&job))
}

/// A named actor stands beside the key that was used, never in its place.
pub(super) fn act(caller: &Caller, actor: Option<String>, reason: Option<String>) -> Act {
    let key = format!("api:{}", caller.key_id);
    let actor = match actor {
        Some(actor) if !actor.trim().is_empty() => format!("{actor} ({key})"),
        _ => key,
    };
    Act { actor, reason: reason.unwrap_or_default() }
}

/// Reads who and why of another resource's act.
pub(super) async fn read_act(caller: &Caller, request: Request) -> Result<Act, Problem> {
    let ActBody { reason, actor } = body::read_if_any(request).await?;
    Ok(act(caller, actor, reason))
}
