//! The header `Idempotency-Key`: the same call twice enqueues once.

use crate::problem::{Problem, Sort};
use axum::http::HeaderMap;

/// The key that the request carries: a quoted string of structured fields
/// (RFC 9651), or the bare text that many clients send.
pub(super) fn key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let mut values = headers.get_all("idempotency-key").iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(refused("is there twice; send one"));
    }
    let text = value.to_str().map_err(|_| refused("has characters that are not ASCII"))?.trim();
    match text.strip_prefix('"') {
        Some(quoted) => unquote(quoted).map(Some),
        None if text.is_empty() => Err(refused("is empty; leave it out instead")),
        None => Ok(Some(text.to_owned())),
    }
}

/// What stands between the quotes, its `\"` and `\\` undone.
fn unquote(quoted: &str) -> Result<String, Problem> {
    let malformed = || refused("begins with a quote and is no quoted string; write \"KEY\" or the bare key");
    let mut key = String::with_capacity(quoted.len());
    let mut chars = quoted.chars();
    loop {
        match chars.next() {
            Some('"') if chars.as_str().is_empty() => break,
            Some('\\') => key.push(chars.next().filter(|c| matches!(c, '"' | '\\')).ok_or_else(malformed)?),
            Some('"') | None => return Err(malformed()),
            Some(other) => key.push(other),
        }
    }
    if key.is_empty() { Err(refused("is empty; leave it out instead")) } else { Ok(key) }
}

fn refused(problem: &str) -> Problem {
    Problem::new(Sort::InvalidParameter, format!("the header Idempotency-Key {problem}"))
        .field("Idempotency-Key")
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn read(values: &[&str]) -> Result<Option<String>, Problem> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append("idempotency-key", HeaderValue::from_str(value).unwrap());
        }
        key(&headers)
    }

    #[test]
    fn a_quoted_and_a_bare_key_are_the_same() {
        assert_eq!(read(&[]).unwrap(), None);
        for (written, key) in [
            ("order-7", "order-7"),
            (r#""order-7""#, "order-7"),
            (r#""a \"b\" \\c""#, r#"a "b" \c"#),
            ("a b", "a b"),
        ] {
            assert_eq!(read(&[written]).unwrap().as_deref(), Some(key));
        }
    }

    #[test]
    fn what_is_no_key_is_refused() {
        for bad in [&["a", "b"][..], &[""], &[r#""""#], &[r#""a"#], &[r#""a"b"#], &[r#""a\b""#], &[r#""a\"#]]
        {
            assert_eq!(read(bad).unwrap_err().sort, Sort::InvalidParameter, "{bad:?}");
        }
    }
}
