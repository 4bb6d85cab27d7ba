//! `POST /v1/jobs`.

use super::{Answer, Shared, answer, body, idempotency};
use crate::accepted::Accepted;
use crate::instant;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use serde::Deserialize;
use serde_json::value::RawValue;
use tidings::core::job::Priority;
use tidings::{EnqueueOptions, Time};

/// The body. `args` keeps its bytes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
struct EnqueueBody {
    kind: String,
    args: Box<RawValue>,
    queue: Option<String>,
    priority: Option<Priority>,
    #[serde(default, deserialize_with = "instant::optional")]
    run_at: Option<Time>,
    unique_key: Option<String>,
    tenant: Option<String>,
}

/// Enqueues one job, and answers after the commit.
pub(super) async fn enqueue(State(api): Shared, request: Request) -> Answer {
    let idempotency_key = idempotency::key(request.headers())?;
    let body: EnqueueBody = body::read(request).await?;
    let options = EnqueueOptions {
        queue: body.queue,
        priority: body.priority,
        run_at: body.run_at,
        unique_key: body.unique_key,
        tenant: body.tenant,
        idempotency_key,
    };
    let receipt = api.tidings().enqueue_json(&body.kind, body.args.get(), &options).await?;
    let accepted = Accepted::of(api.tidings(), receipt).await?;
    let mut response = answer::json(StatusCode::ACCEPTED, &accepted)?;
    if let Ok(location) = HeaderValue::from_str(&format!("/v1/jobs/{}", receipt.id)) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}
