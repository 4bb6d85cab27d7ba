//! `POST /v1/events`: one event, or an array of them, all or none.

use super::body::{self, OneOrMany};
use super::events::wait_for_fanout;
use super::jobs::{bad_query, wait_time};
use super::{Answer, Api, Shared, answer, idempotency};
use crate::instant;
use crate::problem::{Problem, Sort};
use crate::recording::RecordedReceipt;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::time::Duration;
use tidings::core::limits;
use tidings::{Record, Time};

/// Most bytes of one call: an array shares them.
const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// One event. `data` keeps its bytes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EventBody {
    r#type: String,
    data: Box<RawValue>,
    subject: Option<String>,
    tenant: Option<String>,
    key: Option<String>,
    #[serde(default, deserialize_with = "instant::optional")]
    occurred_at: Option<Time>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RecordQuery {
    wait: Option<String>,
}

/// The receipts of a batch, in the order of its events.
#[derive(Serialize)]
struct BatchRecorded {
    events: Vec<InBatch>,
}

#[derive(Serialize)]
struct InBatch {
    id: String,
    existing: bool,
}

/// Records, and answers after the commit.
pub(super) async fn record(
    State(api): Shared,
    query: Result<Query<RecordQuery>, QueryRejection>,
    request: Request,
) -> Answer {
    let Query(query) = query.map_err(|rejection| bad_query(&rejection))?;
    let wait = query.wait.as_deref().map(wait_time).transpose()?;
    let key = idempotency::key(request.headers())?;
    match body::read_one_or_many(request, BODY_BYTES_MAX).await? {
        OneOrMany::One(event) => one(&api, event, key, wait).await,
        OneOrMany::Many(events) => {
            refuse_for_many("wait", wait.is_some(), "read each at `/v1/events/{id}?wait=` instead")?;
            refuse_for_many("Idempotency-Key", key.is_some(), "give each event a `key` of its own instead")?;
            many(&api, events).await
        }
    }
}

async fn one(api: &Api, mut event: EventBody, key: Option<String>, wait: Option<Duration>) -> Answer {
    if let Some(key) = key {
        if event.key.as_ref().is_some_and(|own| *own != key) {
            let detail = "`key` and the header Idempotency-Key are two different keys; send one of them";
            return Err(Problem::new(Sort::InvalidField, detail).field("key"));
        }
        event.key = Some(key);
    }
    let receipt = api.tidings().record(event.into()).await?;
    let recorded = match wait {
        None => RecordedReceipt::of(api.tidings(), receipt).await?,
        Some(at_most) => {
            wait_for_fanout(api, receipt.id, at_most).await?;
            RecordedReceipt::read(api.tidings(), receipt).await?
        }
    };
    let mut response = answer::json(StatusCode::ACCEPTED, &recorded)?;
    if let Ok(location) = HeaderValue::from_str(&format!("/v1/events/{}", receipt.id)) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

async fn many(api: &Api, events: Vec<EventBody>) -> Answer {
    if events.is_empty() {
        let detail = format!("the array is empty; send 1 to {} events", limits::BATCH_MAX);
        return Err(Problem::new(Sort::InvalidField, detail));
    }
    let receipts = api.tidings().record_all(events.into_iter().map(Record::from).collect()).await?;
    let events = receipts
        .into_iter()
        .map(|receipt| InBatch { id: receipt.id.to_string(), existing: receipt.existing })
        .collect();
    answer::json(StatusCode::ACCEPTED, &BatchRecorded { events })
}

fn refuse_for_many(name: &str, given: bool, instead: &str) -> Result<(), Problem> {
    if given {
        let detail = format!("`{name}` is for one event; {instead}");
        return Err(Problem::new(Sort::InvalidParameter, detail).field(name));
    }
    Ok(())
}

impl From<EventBody> for Record {
    fn from(body: EventBody) -> Record {
        let EventBody { r#type, data, subject, tenant, key, occurred_at } = body;
        let record = Record::json(r#type, data.get())
            .subject(subject.unwrap_or_default())
            .tenant(tenant.unwrap_or_default());
        let record = key.into_iter().fold(record, Record::key);
        occurred_at.into_iter().fold(record, Record::occurred_at)
    }
}
