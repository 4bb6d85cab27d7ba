//! `GET /v1/events`, `GET /v1/events/{id}` and `POST /v1/events/{id}/requeue`.

use super::acts::read_act;
use super::jobs::{bad_query, wait_time};
use super::{Answer, Api, Shared, answer, page};
use crate::api_key::Caller;
use crate::event_listing::{self, Asked};
use crate::problem::{Problem, Sort};
use crate::view::{RecordedDocument, RecordedLine};
use axum::Extension;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, Request, State};
use axum::http::StatusCode;
use serde::Deserialize;
use std::time::Duration;
use tidings::RecordRefused;
use tidings::core::event::{EventId, NotAnEventId};
use tidings::store::outbox::StoredEvent;

/// What a list may be asked for.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListQuery {
    state: Option<String>,
    r#type: Option<String>,
    subject: Option<String>,
    tenant: Option<String>,
    limit: Option<String>,
    cursor: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ShowQuery {
    wait: Option<String>,
}

type Id = Result<Path<String>, PathRejection>;

/// A page of events, newest first.
pub(super) async fn list(State(api): Shared, query: Result<Query<ListQuery>, QueryRejection>) -> Answer {
    let Query(query) = query.map_err(|rejection| bad_query(&rejection))?;
    let next = page::question(&[
        ("state", &query.state),
        ("type", &query.r#type),
        ("subject", &query.subject),
        ("tenant", &query.tenant),
        ("limit", &query.limit),
    ]);
    let ListQuery { state, r#type: type_name, subject, tenant, limit, cursor } = query;
    let asked = Asked { state, type_name, subject, tenant, limit, cursor };
    let found = event_listing::page(api.tidings(), asked).await?;
    page::response(&found, "/v1/events", &next, found.next_cursor.as_deref())
}

/// One event with what each subscription made of it; with `?wait=SECONDS` once it is
/// fanned out, or after that time.
pub(super) async fn show(
    State(api): Shared,
    id: Id,
    query: Result<Query<ShowQuery>, QueryRejection>,
) -> Answer {
    let Query(query) = query.map_err(|rejection| bad_query(&rejection))?;
    let id = event_id(id)?;
    if let Some(seconds) = query.wait {
        wait_for_fanout(&api, id, wait_time(&seconds)?).await?;
    }
    let document = RecordedDocument::of(&stored(&api, id).await?, api.tidings()).await?;
    answer::json(StatusCode::OK, &document)
}

/// Puts back an event that was set aside.
pub(super) async fn requeue(
    State(api): Shared,
    Extension(caller): Extension<Caller>,
    id: Id,
    request: Request,
) -> Answer {
    let id = event_id(id)?;
    // Read so that a malformed one is refused; the library keeps no history of events yet.
    read_act(&caller, request).await?;
    api.tidings().requeue(id).await?;
    answer::json(StatusCode::OK, &RecordedLine::of(&stored(&api, id).await?))
}

async fn stored(api: &Api, id: EventId) -> Result<StoredEvent, Problem> {
    Ok(api.tidings().event(id).await?.ok_or(RecordRefused::NoSuchEvent(id))?)
}

/// Waits for the fan-out, but no longer than the process goes on.
pub(super) async fn wait_for_fanout(api: &Api, id: EventId, at_most: Duration) -> Result<(), Problem> {
    let mut stopping = api.parts.stopping.clone();
    tokio::select! {
        waited = api.tidings().await_fanout(id, at_most) => waited.map(drop).map_err(Problem::from),
        _ = stopping.wait_for(|stopping| *stopping) => Ok(()),
    }
}

/// The event that a path names. A text that is no id names no event.
fn event_id(path: Id) -> Result<EventId, Problem> {
    let refused = |detail: String| Problem::new(Sort::NoSuchEvent, detail);
    let Path(text) = path.map_err(|_| refused("the id in the path is not valid text".to_owned()))?;
    text.parse().map_err(|bad: NotAnEventId| refused(bad.to_string()))
}
