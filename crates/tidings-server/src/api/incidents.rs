//! `GET /v1/incidents`, and `GET /v1/backlog`: what the alert on waiting events looks at.

use super::jobs::bad_query;
use super::{Answer, Shared, answer};
use crate::incident_list;
use crate::view::BacklogDocument;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListQuery {
    state: Option<String>,
    limit: Option<String>,
}

/// Open incidents, newest first; with `?state=all` closed ones too.
pub(super) async fn list(State(api): Shared, query: Result<Query<ListQuery>, QueryRejection>) -> Answer {
    let Query(ListQuery { state, limit }) = query.map_err(|rejection| bad_query(&rejection))?;
    let page = incident_list::page(api.tidings(), state.as_deref(), limit.as_deref()).await?;
    answer::json(StatusCode::OK, &page)
}

/// How many events wait for their fan-out, and since when.
pub(super) async fn backlog(State(api): Shared) -> Answer {
    let backlog = api.tidings().backlog().await?;
    answer::json(StatusCode::OK, &BacklogDocument::of(&backlog, api.tidings().now()))
}
