//! Who may call: everything under `/v1` needs `Authorization: Bearer KEY`.

use super::{Api, Shared};
use crate::api_key::Caller;
use crate::problem::{Problem, Sort};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// Lets a request with a good key through, and tells the handler whose it is.
pub(super) async fn check(State(api): Shared, mut request: Request, next: Next) -> Response {
    let path = request.uri().path();
    if path != "/v1" && !path.starts_with("/v1/") {
        return next.run(request).await;
    }
    match caller(&api, request.headers()).await {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    }
}

async fn caller(api: &Api, headers: &HeaderMap) -> Result<Caller, Problem> {
    let key = bearer(headers).ok_or_else(|| {
        Problem::new(Sort::Unauthorized, "send `Authorization: Bearer KEY` with a key of this server")
    })?;
    api.parts.keys.recognise(key).await?.ok_or_else(|| {
        let detail = "this key is not known; the first one was printed when the server first started, \
                      and TIDINGS_ADMIN_KEY sets one";
        Problem::new(Sort::Unauthorized, detail)
    })
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, key) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim_start())
}
