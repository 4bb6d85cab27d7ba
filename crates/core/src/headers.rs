//! Which request headers a caller may give.
//!
//! A header can smuggle a second request, forge a signature or change who the
//! connection talks to, so names that belong to the connection, to the message's
//! framing or to the signature are Tidings' own. Refused at the door with the
//! remedy, never dropped in silence later.
//!
//! Absent on purpose: any judgement of values besides their characters.

use crate::limits::{REQUEST_HEADERS_BYTES_MAX, REQUEST_HEADERS_MAX};
use crate::text;

/// Longest header name that a message repeats, in bytes.
const SHOWN_NAME_BYTES_MAX: usize = 100;

/// Names that a caller may not give, in lower case, and what to do instead.
const RESERVED: [(&str, &str); 21] = [
    ("accept-encoding", ANSWERS_PLAIN),
    ("connection", CONNECTION),
    ("content-length", FRAMING),
    ("expect", CONNECTION),
    ("host", "leave it out: it is taken from the URL"),
    ("http2-settings", CONNECTION),
    ("keep-alive", CONNECTION),
    ("max-forwards", CONNECTION),
    ("proxy-authenticate", PROXY),
    ("proxy-authorization", PROXY),
    ("proxy-connection", PROXY),
    ("range", "leave it out: an answer is read from its beginning"),
    ("signature", SIGNATURE),
    ("signature-input", SIGNATURE),
    ("te", CONNECTION),
    ("trailer", FRAMING),
    ("transfer-encoding", FRAMING),
    ("upgrade", CONNECTION),
    ("via", PROXY),
    ("webhook-signature", SIGNATURE),
    ("x-forwarded-host", PROXY),
];

/// Every name that begins so belongs to Standard Webhooks.
const SIGNATURE_PREFIX: &str = "webhook-";

const ANSWERS_PLAIN: &str = "leave it out: answers are asked for without compression";
const CONNECTION: &str = "leave it out: it belongs to the connection, which Tidings manages";
const FRAMING: &str = "leave it out: it is computed from the body";
const PROXY: &str = "leave it out: no proxy is used";
const SIGNATURE: &str = "leave it out and give `secret` instead: Tidings signs each attempt itself";

/// Why a request's headers were refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderRefused {
    /// More fields than are sent.
    #[error("{count} headers were given, and at most {REQUEST_HEADERS_MAX} are sent; give fewer")]
    TooMany {
        /// How many were given.
        count: usize,
    },
    /// More bytes than are sent.
    #[error(
        "the headers are {bytes} bytes long, and at most {REQUEST_HEADERS_BYTES_MAX} are sent; \
         shorten them or move data into the body"
    )]
    TooLong {
        /// Length of all names and values, in bytes.
        bytes: usize,
    },
    /// Not a header name.
    #[error("header name `{name}` is not valid; use letters, digits and `-`")]
    BadName {
        /// The name, made safe to show.
        name: String,
    },
    /// Not a header value; it is not shown, it may be a secret.
    #[error(
        "the value of header `{name}` holds a character that a header cannot carry; \
         use printable ASCII on one line, and encode anything else (for example as percent-encoding)"
    )]
    BadValue {
        /// The header's name.
        name: String,
    },
    /// A name that belongs to Tidings.
    #[error("header `{name}` cannot be given; {remedy}")]
    Reserved {
        /// The header's name.
        name: String,
        /// What to do instead.
        remedy: &'static str,
    },
    /// The same name twice, in any case.
    #[error("header `{name}` is given twice; give one line, with its values separated by commas")]
    Repeated {
        /// The header's name.
        name: String,
    },
}

/// Checks the headers that a caller gives for its request.
///
/// # Errors
/// The first header that cannot be sent, and what to do about it.
pub fn check_request_headers(headers: &[(String, String)]) -> Result<(), HeaderRefused> {
    if headers.len() > REQUEST_HEADERS_MAX {
        return Err(HeaderRefused::TooMany { count: headers.len() });
    }
    let bytes = headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    if bytes > REQUEST_HEADERS_BYTES_MAX {
        return Err(HeaderRefused::TooLong { bytes });
    }
    for (index, (name, value)) in headers.iter().enumerate() {
        check_one(name, value)?;
        if headers[..index].iter().any(|(earlier, _)| earlier.eq_ignore_ascii_case(name)) {
            return Err(HeaderRefused::Repeated { name: shown(name) });
        }
    }
    Ok(())
}

/// Whether that header belongs to the connection, the framing or the exchange:
/// whoever sends the request sets it itself or leaves it out, signed or not.
pub fn belongs_to_connection(name: &str) -> bool {
    reserved_remedy(name).is_some_and(|remedy| remedy != SIGNATURE)
}

fn check_one(name: &str, value: &str) -> Result<(), HeaderRefused> {
    if name.is_empty() || !name.bytes().all(is_token_byte) {
        return Err(HeaderRefused::BadName { name: shown(name) });
    }
    if let Some(remedy) = reserved_remedy(name) {
        return Err(HeaderRefused::Reserved { name: shown(name), remedy });
    }
    if !value.bytes().all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte)) {
        return Err(HeaderRefused::BadValue { name: shown(name) });
    }
    Ok(())
}

fn reserved_remedy(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    if name.starts_with(SIGNATURE_PREFIX) {
        return Some(SIGNATURE);
    }
    RESERVED.iter().find(|(reserved, _)| *reserved == name).map(|(_, remedy)| *remedy)
}

/// `tchar` of RFC 9110, section 5.6.2.
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn shown(name: &str) -> String {
    text::safe(name, SHOWN_NAME_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, value: &str) -> Result<(), HeaderRefused> {
        check_request_headers(&[(name.to_owned(), value.to_owned())])
    }

    #[test]
    fn ordinary_headers_are_sent_as_given() {
        for (name, value) in [
            ("Authorization", "Bearer abc"),
            ("X-Api-Key", "k"),
            ("Content-Type", "application/json; charset=utf-8"),
            ("Idempotency-Key", "\"8e03978e\""),
            ("Cookie", "a=b"),
            ("User-Agent", "shop/1.0"),
            ("x-empty", ""),
            ("X-Tabbed", "a\tb"),
        ] {
            assert_eq!(check(name, value), Ok(()), "{name}");
        }
        assert_eq!(check_request_headers(&[]), Ok(()));
    }

    #[test]
    fn names_of_the_connection_the_framing_and_the_signature_are_refused_with_a_remedy() {
        for name in [
            "Host",
            "HOST",
            "content-length",
            "Content-Length",
            "Transfer-Encoding",
            "Connection",
            "Keep-Alive",
            "Proxy-Authorization",
            "Proxy-Connection",
            "TE",
            "Trailer",
            "Upgrade",
            "Expect",
            "Accept-Encoding",
            "webhook-id",
            "Webhook-Timestamp",
            "webhook-signature",
            "webhook-anything",
        ] {
            let refused = check(name, "x").expect_err(name);
            assert!(matches!(refused, HeaderRefused::Reserved { .. }), "{name}: {refused:?}");
            let message = refused.to_string();
            assert!(message.contains(name) && message.contains("leave it out"), "{message}");
        }
    }

    #[test]
    fn the_list_of_reserved_names_is_in_lower_case_and_sorted() {
        assert!(RESERVED.is_sorted());
        assert!(RESERVED.iter().all(|(name, _)| *name == name.to_ascii_lowercase()));
    }

    #[test]
    fn a_signature_does_not_belong_to_the_connection() {
        for (name, expected) in [
            ("Host", true),
            ("te", true),
            ("webhook-id", false),
            ("webhook-signature", false),
            ("X-A", false),
        ] {
            assert_eq!(belongs_to_connection(name), expected, "{name}");
        }
    }

    #[test]
    fn nothing_gets_past_the_end_of_its_line() {
        for value in ["a\r\nX-Injected: 1", "a\nb", "a\rb", "a\u{0}b", "a\u{7f}", "caf\u{e9}", "\u{1f600}"] {
            let refused = check("X-A", value).expect_err(value);
            assert_eq!(refused, HeaderRefused::BadValue { name: "X-A".into() });
            assert!(!refused.to_string().contains(value), "a value may be a secret");
        }
        for name in ["", "a b", "a:", "a\r\nb", "\u{e9}", "a\u{0}", "(x)"] {
            assert!(matches!(check(name, "x"), Err(HeaderRefused::BadName { .. })), "{name:?}");
        }
    }

    #[test]
    fn a_name_given_twice_in_any_case_is_refused() {
        let headers = [("X-A".to_owned(), "1".to_owned()), ("x-a".to_owned(), "2".to_owned())];
        assert_eq!(check_request_headers(&headers), Err(HeaderRefused::Repeated { name: "x-a".into() }));
    }

    #[test]
    fn count_and_length_are_bounded() {
        let many = |count: usize| (0..count).map(|n| (format!("X-{n}"), "v".to_owned())).collect::<Vec<_>>();
        assert_eq!(check_request_headers(&many(REQUEST_HEADERS_MAX)), Ok(()));
        assert_eq!(check_request_headers(&many(10_000)), Err(HeaderRefused::TooMany { count: 10_000 }));
        let name = "X-Long".to_owned();
        let fitting = "v".repeat(REQUEST_HEADERS_BYTES_MAX - name.len());
        assert_eq!(check_request_headers(&[(name.clone(), fitting.clone())]), Ok(()));
        assert_eq!(
            check_request_headers(&[(name, fitting + "v")]),
            Err(HeaderRefused::TooLong { bytes: REQUEST_HEADERS_BYTES_MAX + 1 })
        );
    }
}
