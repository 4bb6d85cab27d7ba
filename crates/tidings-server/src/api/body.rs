//! Request bodies: bounded in size and time, JSON, and strict about their members.

use crate::problem::{Problem, Sort};
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::time::Duration;
use tidings::core::limits;

/// Room for what stands around the arguments.
const BODY_BYTES_MAX: usize = limits::ARGS_BYTES_MAX + 16 * 1024;
/// How long a body may take to arrive.
const BODY_READ_MAX: Duration = Duration::from_secs(10);

/// Reads the body as a JSON document.
pub(super) async fn read<T: DeserializeOwned>(request: Request) -> Result<T, Problem> {
    parse(&json(request, BODY_BYTES_MAX).await?)
}

/// One, or several in a JSON array.
pub(super) enum OneOrMany<T> {
    One(T),
    Many(Vec<T>),
}

/// As [`read`], where the body may be an array of at most `bytes_max` bytes in all.
pub(super) async fn read_one_or_many<T: DeserializeOwned>(
    request: Request,
    bytes_max: usize,
) -> Result<OneOrMany<T>, Problem> {
    one_or_many(&json(request, bytes_max).await?)
}

fn one_or_many<T: DeserializeOwned>(bytes: &[u8]) -> Result<OneOrMany<T>, Problem> {
    let text = utf8(bytes)?;
    if !text.trim_start().starts_with('[') {
        return object(text).map(OneOrMany::One);
    }
    let items: Vec<Box<RawValue>> = value(text)?;
    let item = |(index, item): (usize, Box<RawValue>)| {
        object(item.get()).map_err(|problem| problem.within(&format!("[{index}]")))
    };
    items.into_iter().enumerate().map(item).collect::<Result<_, _>>().map(OneOrMany::Many)
}

async fn json(request: Request, bytes_max: usize) -> Result<Vec<u8>, Problem> {
    let (head, body) = request.into_parts();
    let bytes = bytes(body, bytes_max).await?;
    check_type(&head.headers)?;
    Ok(bytes)
}

/// As [`read`], where no body means that nothing is said.
pub(super) async fn read_if_any<T: DeserializeOwned + Default>(request: Request) -> Result<T, Problem> {
    let (head, body) = request.into_parts();
    let bytes = bytes(body, BODY_BYTES_MAX).await?;
    if bytes.is_empty() {
        return Ok(T::default());
    }
    check_type(&head.headers)?;
    parse(&bytes)
}

async fn bytes(body: Body, bytes_max: usize) -> Result<Vec<u8>, Problem> {
    let collect = Limited::new(body, bytes_max).collect();
    match tokio::time::timeout(BODY_READ_MAX, collect).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes().to_vec()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let detail = format!(
                "the body has more than {bytes_max} bytes; store large data elsewhere and send a reference"
            );
            Err(Problem::new(Sort::BodyTooLarge, detail))
        }
        Ok(Err(_)) => Err(Problem::new(Sort::MalformedBody, "the body broke off; send it again")),
        Err(_) => {
            let detail =
                format!("the body did not arrive within {} s; send it again", BODY_READ_MAX.as_secs());
            Err(Problem::new(Sort::BodyTimeout, detail))
        }
    }
}

fn check_type(headers: &HeaderMap) -> Result<(), Problem> {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = given.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    Err(Problem::new(Sort::UnsupportedMediaType, "send the body with `Content-Type: application/json`"))
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    object(utf8(bytes)?)
}

fn utf8(bytes: &[u8]) -> Result<&str, Problem> {
    std::str::from_utf8(bytes)
        .map_err(|_| Problem::new(Sort::MalformedBody, "the body is not UTF-8; JSON must be"))
}

fn object<T: DeserializeOwned>(text: &str) -> Result<T, Problem> {
    if text.trim_start().starts_with('[') {
        // Else it would be read as the members in their order, which nobody means.
        return Err(Problem::new(Sort::MalformedBody, "the body is an array; it must be a JSON object"));
    }
    value(text)
}

fn value<T: DeserializeOwned>(text: &str) -> Result<T, Problem> {
    let mut json = serde_json::Deserializer::from_str(text);
    let parsed = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        malformed(&path, &error.into_inner())
    })?;
    json.end().map_err(|error| malformed(".", &error))?;
    Ok(parsed)
}

/// What is wrong, with the field that it is about.
fn malformed(path: &str, error: &serde_json::Error) -> Problem {
    let message = error.to_string();
    if error.is_syntax() || error.is_eof() {
        return Problem::new(Sort::MalformedBody, format!("the body is not JSON: {message}"));
    }
    let field = if path == "." { named_field(&message) } else { Some(path) };
    match field {
        Some(field) if path == "." => Problem::new(Sort::MalformedBody, message.clone()).field(field),
        Some(field) => Problem::new(Sort::MalformedBody, format!("`{field}`: {message}")).field(field),
        None => Problem::new(Sort::MalformedBody, message),
    }
}

/// The field in "missing field `kind`" and its like.
fn named_field(message: &str) -> Option<&str> {
    let about_a_field = ["missing field `", "unknown field `", "duplicate field `"];
    let rest = about_a_field.into_iter().find_map(|start| message.strip_prefix(start))?;
    rest.split_once('`').map(|(field, _)| field)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only read")]
    struct Sample {
        kind: String,
        priority: Option<i64>,
    }

    #[test]
    fn a_malformed_body_names_its_field() {
        for (body, field) in [
            ("{}", "kind"),
            (r#"{"kind":1}"#, "kind"),
            (r#"{"kind":"a","priority":"high"}"#, "priority"),
            (r#"{"kind":"a","colour":"red"}"#, "colour"),
            (r#"{"kind":"a","kind":"b"}"#, "kind"),
        ] {
            let problem = parse::<Sample>(body.as_bytes()).unwrap_err();
            assert_eq!(problem.document()["field"], field, "{body}: {problem}");
        }
    }

    #[test]
    fn what_is_no_json_says_so_with_line_and_column() {
        for body in ["", "{", r#"{"kind":"a"} {}"#, "kind=a"] {
            let problem = parse::<Sample>(body.as_bytes()).unwrap_err().to_string();
            assert!(problem.contains("not JSON") && problem.contains("line 1"), "{body}: {problem}");
        }
        assert!(parse::<Sample>(b"\xff").unwrap_err().to_string().contains("UTF-8"));
    }

    #[test]
    fn members_are_never_taken_by_their_order() {
        let problem = parse::<Sample>(br#" ["a", 1]"#).unwrap_err();
        assert!(problem.to_string().contains("must be a JSON object"), "{problem}");
    }

    #[test]
    fn of_several_each_is_an_object_and_a_refusal_says_which_is_not() {
        let read = |body: &str| one_or_many::<Sample>(body.as_bytes());
        assert!(
            matches!(read(r#" [{"kind":"a"}, {"kind":"b"}]"#), Ok(OneOrMany::Many(all)) if all.len() == 2)
        );
        assert!(matches!(read(r#"{"kind":"a"}"#), Ok(OneOrMany::One(_))));
        for (body, field) in [
            (r#"[{"kind":"a"}, {}]"#, "[1].kind"),
            (r#"[{"kind":1}]"#, "[0].kind"),
            (r#"[{"kind":"a"}, ["a", 1]]"#, "[1]"),
            (r#"[7]"#, "[0]"),
        ] {
            let problem = read(body).err().unwrap();
            assert_eq!(problem.document()["field"], field, "{body}: {problem}");
        }
        assert!(read("[{").err().unwrap().to_string().contains("not JSON"));
    }
}
