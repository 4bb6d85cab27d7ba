//! How results and problems become responses.

use crate::problem::{Problem, Sort};
use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;
use serde::Serialize;

/// What a client that is told 503 should wait, in seconds.
const RETRY_AFTER_SECONDS: &str = "2";

/// A JSON document with its status.
pub(super) fn json(status: StatusCode, document: &impl Serialize) -> Result<Response<Body>, Problem> {
    let text = serde_json::to_vec(document)
        .map_err(|error| Problem::new(Sort::Internal, format!("the answer does not become JSON: {error}")))?;
    Ok(response(status, "application/json", text))
}

fn response(status: StatusCode, content_type: &'static str, body: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    // Jobs change, and answers may hold what is not for others.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response<Body> {
        if self.sort.status() >= 500 {
            tracing::warn!(problem = %self, "a request failed");
        }
        let status = StatusCode::from_u16(self.sort.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = self.document().to_string().into_bytes();
        let mut response = response(status, "application/problem+json", body);
        let extra = match self.sort {
            Sort::Unauthorized => Some((header::WWW_AUTHENTICATE, "Bearer")),
            Sort::DatabaseUnavailable | Sort::TimedOut => Some((header::RETRY_AFTER, RETRY_AFTER_SECONDS)),
            _ => None,
        };
        if let Some((name, value)) = extra {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }
}
