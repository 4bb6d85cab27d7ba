//! The beginning of an answer's body as text that may be kept and shown.
//!
//! Receivers echo requests. What was sent as a secret is taken out again, and so
//! is what looks like one. Absent on purpose: a guess at every secret there is;
//! the excerpt is bounded and belongs to the operator's eyes.

use tidings_core::limits::EXCERPT_BYTES_MAX;
use tidings_core::text;

/// What stands in a secret's place.
const REDACTED: &str = "[REDACTED]";

/// What a secret begins with when it can be told by its looks.
const MARKS: [&str; 4] = ["whsec_", "whsk_", "Bearer ", "Basic "];

/// Fewer characters than this after a mark are a word, not a secret.
const SECRET_CHARACTERS_MIN: usize = 8;

/// Safe text of at most [`EXCERPT_BYTES_MAX`] bytes, without `secrets`.
pub(super) fn of(body: &[u8], secrets: &[String]) -> String {
    let mut text = String::from_utf8_lossy(body).into_owned();
    for secret in secrets {
        text = text.replace(secret.as_str(), REDACTED);
    }
    for mark in MARKS {
        text = without_marked(&text, mark);
    }
    text::safe(&text, EXCERPT_BYTES_MAX)
}

/// Keeps the mark and takes out what follows it.
fn without_marked(text: &str, mark: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = find_ignoring_case(rest, mark) {
        let (before, after) = rest.split_at(at + mark.len());
        let secret_bytes = after.bytes().take_while(|byte| is_secret_byte(*byte)).count();
        kept.push_str(before);
        kept.push_str(if secret_bytes < SECRET_CHARACTERS_MIN { &after[..secret_bytes] } else { REDACTED });
        rest = &after[secret_bytes..];
    }
    kept + rest
}

fn find_ignoring_case(text: &str, mark: &str) -> Option<usize> {
    text.as_bytes().windows(mark.len()).position(|window| window.eq_ignore_ascii_case(mark.as_bytes()))
}

/// Characters of base64, its URL form, JWTs and opaque tokens; all of one byte,
/// so a cut after them is at a character.
fn is_secret_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/=-_.~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_that_a_receiver_echoes_are_taken_out() {
        let sent = ["s3cr3t-key-of-mine".to_owned()];
        for (body, expected) in [
            ("key=s3cr3t-key-of-mine;", "key=[REDACTED];"),
            ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw!", "whsec_[REDACTED]!"),
            ("authorization: bearer eyJhbGciOi.J9.abc\nnext", "authorization: bearer [REDACTED] next"),
            ("two whsec_aaaaaaaa and whsec_bbbbbbbb", "two whsec_[REDACTED] and whsec_[REDACTED]"),
            ("the Bearer of news", "the Bearer of news"),
            ("é Bearer é", "é Bearer é"),
        ] {
            assert_eq!(of(body.as_bytes(), &sent), expected);
        }
    }

    #[test]
    fn any_bytes_become_bounded_valid_text() {
        assert_eq!(of(b"\xe2\x5c\x78\xff\xfe\x00", &[]), "\u{fffd}\\x\u{fffd}\u{fffd}\u{fffd}");
        assert_eq!(of("é".repeat(10_000).as_bytes(), &[]), "é".repeat(EXCERPT_BYTES_MAX / 2));
        assert_eq!(of(&[b'a'; EXCERPT_BYTES_MAX + 1], &[]).len(), EXCERPT_BYTES_MAX);
    }
}
