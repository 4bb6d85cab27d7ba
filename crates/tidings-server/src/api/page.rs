//! A page of a list as a response: the document, and a `Link` to the next page.

use super::{Answer, answer};
use axum::http::{HeaderValue, StatusCode, header};
use serde::Serialize;

/// The page of the list at `path`; the next one is the same question with the cursor.
pub(super) fn response(page: &impl Serialize, path: &str, question: &str, cursor: Option<&str>) -> Answer {
    let mut response = answer::json(StatusCode::OK, page)?;
    if let Some(cursor) = cursor {
        let link = format!("<{path}?{question}cursor={cursor}>; rel=\"next\"");
        if let Ok(link) = HeaderValue::from_str(&link) {
            response.headers_mut().insert(header::LINK, link);
        }
    }
    Ok(response)
}

/// What was asked without its cursor, percent-encoded, with `&` at its end.
pub(super) fn question(asked: &[(&str, &Option<String>)]) -> String {
    asked
        .iter()
        .filter_map(|(name, value)| Some(format!("{name}={}&", percent_encoded(value.as_ref()?))))
        .collect()
}

fn percent_encoded(value: &str) -> String {
    let keep = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    value
        .bytes()
        .map(|byte| if keep(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}
