//! `GET /v1/jobs` and `GET /v1/jobs/{id}`.

use super::{Answer, Api, Shared, WAIT_SECONDS_MAX, answer, page};
use crate::listing::{self, Asked};
use crate::problem::{Problem, Sort};
use crate::view::JobDocument;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use serde::Deserialize;
use std::time::Duration;
use tidings::JobId;

/// What a list may be asked for.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListQuery {
    state: Option<String>,
    kind: Option<String>,
    queue: Option<String>,
    tenant: Option<String>,
    limit: Option<String>,
    cursor: Option<String>,
}

/// What one job may be asked with.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ShowQuery {
    wait: Option<String>,
}

/// A page of jobs, newest first.
pub(super) async fn list(State(api): Shared, query: Result<Query<ListQuery>, QueryRejection>) -> Answer {
    let Query(query) = query.map_err(|rejection| bad_query(&rejection))?;
    let next = page::question(&[
        ("state", &query.state),
        ("kind", &query.kind),
        ("queue", &query.queue),
        ("tenant", &query.tenant),
        ("limit", &query.limit),
    ]);
    let ListQuery { state, kind, queue, tenant, limit, cursor } = query;
    let found = listing::page(api.tidings(), Asked { state, kind, queue, tenant, limit, cursor }).await?;
    page::response(&found, "/v1/jobs", &next, found.next_cursor.as_deref())
}

/// One job with its attempts; with `?wait=SECONDS` once it has settled, or after that time.
pub(super) async fn show(
    State(api): Shared,
    id: Result<Path<String>, PathRejection>,
    query: Result<Query<ShowQuery>, QueryRejection>,
) -> Answer {
    let Query(query) = query.map_err(|rejection| bad_query(&rejection))?;
    let id = job_id(id)?;
    if let Some(seconds) = query.wait {
        wait(&api, id, wait_time(&seconds)?).await?;
    }
    let view = api.tidings().job(id).await?.ok_or_else(|| Problem::no_such_job(id))?;
    answer::json(StatusCode::OK, &JobDocument::of(&view, api.tidings()))
}

/// Waits for the job, but no longer than the process goes on.
async fn wait(api: &Api, id: JobId, at_most: Duration) -> Result<(), Problem> {
    let mut stopping = api.parts.stopping.clone();
    tokio::select! {
        waited = api.tidings().wait(id, at_most) => waited.map(|_| ()).map_err(Problem::from),
        _ = stopping.wait_for(|stopping| *stopping) => Ok(()),
    }
}

pub(super) fn wait_time(seconds: &str) -> Result<Duration, Problem> {
    match seconds.parse() {
        Ok(seconds @ 0..=WAIT_SECONDS_MAX) => Ok(Duration::from_secs(seconds)),
        _ => {
            let detail = format!("`wait` must be a number of seconds from 0 to {WAIT_SECONDS_MAX}");
            Err(Problem::new(Sort::InvalidParameter, detail).field("wait"))
        }
    }
}

/// The job that a path names. A text that is no id names no job.
pub(super) fn job_id(path: Result<Path<String>, PathRejection>) -> Result<JobId, Problem> {
    let refused = |detail: String| Problem::new(Sort::NoSuchJob, detail);
    let Path(text) = path.map_err(|_| refused("the id in the path is not valid text".to_owned()))?;
    text.parse().map_err(|bad: tidings::core::id::NotAnId| refused(bad.to_string()))
}

pub(super) fn bad_query(rejection: &QueryRejection) -> Problem {
    Problem::new(Sort::InvalidParameter, rejection.body_text())
}
