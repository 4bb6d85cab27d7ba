//! `GET /v1/subscriptions` and `GET`, `PUT` and `DELETE /v1/subscriptions/{name}`.

use super::{Answer, Api, Shared, answer, body};
use crate::problem::{Problem, Sort};
use crate::subscription::{self, SubscriptionBody, SubscriptionDocument};
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::Serialize;

#[derive(Serialize)]
struct SubscriptionsDocument {
    subscriptions: Vec<SubscriptionDocument>,
}

type Name = Result<Path<String>, PathRejection>;

/// Every subscription, by name.
pub(super) async fn list(State(api): Shared) -> Answer {
    let subscriptions = subscription::all(api.tidings()).await?;
    answer::json(StatusCode::OK, &SubscriptionsDocument { subscriptions })
}

/// One of them.
pub(super) async fn show(State(api): Shared, name: Name) -> Answer {
    answer::json(StatusCode::OK, &one(&api, name).await?)
}

/// Keeps one under its name: from now on, for events that are not fanned out yet.
pub(super) async fn put(State(api): Shared, name: Name, request: Request) -> Answer {
    let body: SubscriptionBody = body::read(request).await?;
    let (kept, new) = subscription::keep(api.tidings(), text(name)?, body).await?;
    answer::json(if new { StatusCode::CREATED } else { StatusCode::OK }, &kept)
}

/// Forgets one. Events that it matched stay what they are.
pub(super) async fn remove(State(api): Shared, name: Name) -> Answer {
    subscription::remove(api.tidings(), &text(name)?).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn one(api: &Api, name: Name) -> Result<SubscriptionDocument, Problem> {
    subscription::one(api.tidings(), &text(name)?).await
}

fn text(path: Name) -> Result<String, Problem> {
    path.map(|Path(name)| name)
        .map_err(|_| Problem::new(Sort::NoSuchSubscription, "the name in the path is not valid text"))
}
