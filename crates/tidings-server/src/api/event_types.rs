//! `GET /v1/event-types` and `POST /v1/event-types`.

use super::{Answer, Shared, answer, body};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use serde::Serialize;
use tidings::core::event::EventType;

#[derive(Serialize)]
struct EventTypesDocument {
    event_types: Vec<EventType>,
}

/// Every declared type, by name.
pub(super) async fn list(State(api): Shared) -> Answer {
    let event_types = api.tidings().event_types().await?;
    answer::json(StatusCode::OK, &EventTypesDocument { event_types })
}

/// Declares a type, or says something else of a declared one.
pub(super) async fn declare(State(api): Shared, request: Request) -> Answer {
    let declared: EventType = body::read(request).await?;
    api.tidings().declare(std::slice::from_ref(&declared), &[]).await?;
    answer::json(StatusCode::OK, &declared)
}
