//! The HTTP API: what is asked over the network of [`tidings::Tidings`].
//!
//! One file for each resource. Everything under `/v1` needs a key. Errors are
//! RFC 9457 documents, see [`crate::problem`]; `docs/http.md` is the contract.
//!
//! Absent on purpose: SQL and the store. A handler uses the library's client and
//! read model only.

mod acts;
mod answer;
mod auth;
mod body;
mod enqueue;
mod event_types;
mod events;
mod health;
mod idempotency;
mod incidents;
mod jobs;
mod page;
mod queues;
mod record;
mod subscriptions;

use crate::api_key::Keys;
use crate::problem::{Problem, Sort};
use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tidings::{Tidings, Workers};
use tokio::sync::watch;

/// Longest wait that `?wait=` may ask for, in seconds.
pub(crate) const WAIT_SECONDS_MAX: u64 = 30;
/// How long a request may take, a wait included.
const REQUEST_MAX: Duration = Duration::from_secs(WAIT_SECONDS_MAX + 15);

/// What handlers share.
#[derive(Clone)]
pub(crate) struct Api {
    parts: Arc<Parts>,
}

struct Parts {
    tidings: Tidings,
    keys: Keys,
    workers: SharedWorkers,
    stopping: watch::Receiver<bool>,
}

/// The workers of this process, until they are stopped.
#[derive(Clone, Default)]
pub(crate) struct SharedWorkers(Arc<Mutex<Option<Workers>>>);

impl SharedWorkers {
    /// Started ones.
    pub(crate) fn of(workers: Workers) -> SharedWorkers {
        SharedWorkers(Arc::new(Mutex::new(Some(workers))))
    }

    /// Takes them, for the one who stops them.
    pub(crate) fn take(&self) -> Option<Workers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whether they look at their queues.
    fn ready(&self) -> Result<(), String> {
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(workers) => workers.ready(),
            None => Err("the process is stopping".to_owned()),
        }
    }
}

impl Api {
    /// `stopping` turns true when the process is asked to stop.
    pub(crate) fn new(
        tidings: Tidings,
        keys: Keys,
        workers: SharedWorkers,
        stopping: watch::Receiver<bool>,
    ) -> Api {
        Api { parts: Arc::new(Parts { tidings, keys, workers, stopping }) }
    }

    fn tidings(&self) -> &Tidings {
        &self.parts.tidings
    }

    /// Every route, in one list.
    pub(crate) fn router(self) -> Router {
        Router::new()
            .route("/healthz", get(health::lives))
            .route("/readyz", get(health::ready))
            .route("/v1/jobs", get(jobs::list).post(enqueue::enqueue))
            .route("/v1/jobs/{id}", get(jobs::show))
            .route("/v1/jobs/{id}/retry", post(acts::retry))
            .route("/v1/jobs/{id}/cancel", post(acts::cancel))
            .route("/v1/jobs/{id}/resolve", post(acts::resolve))
            .route("/v1/queues", get(queues::list))
            .route("/v1/queues/{queue}/pause", post(queues::pause))
            .route("/v1/queues/{queue}/resume", post(queues::resume))
            .route("/v1/events", get(events::list).post(record::record))
            .route("/v1/events/{id}", get(events::show))
            .route("/v1/events/{id}/requeue", post(events::requeue))
            .route("/v1/event-types", get(event_types::list).post(event_types::declare))
            .route("/v1/subscriptions", get(subscriptions::list))
            .route(
                "/v1/subscriptions/{name}",
                get(subscriptions::show).put(subscriptions::put).delete(subscriptions::remove),
            )
            .route("/v1/incidents", get(incidents::list))
            .route("/v1/backlog", get(incidents::backlog))
            .fallback(no_such_route)
            .method_not_allowed_fallback(method_not_allowed)
            .layer(middleware::from_fn_with_state(self.clone(), auth::check))
            .layer(middleware::from_fn(boundary))
            .with_state(self)
    }
}

async fn no_such_route() -> Problem {
    Problem::new(
        Sort::NoSuchRoute,
        "there is nothing at this path; the API's paths begin with /v1 and end without a slash",
    )
}

async fn method_not_allowed() -> Problem {
    Problem::new(
        Sort::MethodNotAllowed,
        "this path does not take that method; the Allow header lists those it takes",
    )
}

/// Bounds every request in time and logs it once: never its path, query or body,
/// which may hold names.
async fn boundary(request: Request, next: Next) -> Response {
    let method = request.method().clone();
    let route = request
        .extensions()
        .get::<axum::extract::MatchedPath>()
        .map_or_else(|| "none".to_owned(), |path| path.as_str().to_owned());
    let started = Instant::now();
    let response = match tokio::time::timeout(REQUEST_MAX, next.run(request)).await {
        Ok(response) => response,
        Err(_) => Problem::new(
            Sort::TimedOut,
            "the request took too long, and it is not known whether it was carried out; \
             send it again with the same Idempotency-Key",
        )
        .into_response(),
    };
    log(&method, &route, response.status(), started.elapsed());
    response
}

fn log(method: &axum::http::Method, route: &str, status: StatusCode, took: Duration) {
    let (status, took_ms) = (status.as_u16(), took.as_millis());
    match status {
        500.. => tracing::warn!(%method, route, status, took_ms, "request"),
        400..500 => tracing::info!(%method, route, status, took_ms, "request"),
        _ => tracing::debug!(%method, route, status, took_ms, "request"),
    }
}

/// What a handler answers with.
type Answer = Result<Response, Problem>;

/// The state of every handler.
type Shared = State<Api>;
