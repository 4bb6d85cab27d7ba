//! JSON from outside: checked at the door, then kept as the bytes that were given.
//!
//! What is refused here would fail later and worse: a lone surrogate breaks the
//! receiver's parser, a hundred levels break somebody's stack, megabytes break
//! the queue for everybody else.

use crate::limits;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// Why a payload is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PayloadRefused {
    /// Longer than [`limits::ARGS_BYTES_MAX`].
    #[error("is {given} bytes long; at most {most} are taken. Store large data elsewhere and send a reference", most = limits::ARGS_BYTES_MAX)]
    TooLong {
        /// How long it is.
        given: usize,
    },
    /// Not JSON, deeper than [`limits::ARGS_DEPTH_MAX`], or with a lone surrogate.
    #[error("is not taken as JSON: {0}")]
    NotJson(String),
}

/// Checks that `text` is one JSON value that can be kept and sent as it is.
///
/// # Errors
/// The first thing that is wrong, with its line and column.
pub fn check(text: &str) -> Result<(), PayloadRefused> {
    if text.len() > limits::ARGS_BYTES_MAX {
        return Err(PayloadRefused::TooLong { given: text.len() });
    }
    let mut json = serde_json::Deserializer::from_str(text);
    (&mut json)
        .deserialize_any_value(0)
        .and_then(|()| json.end())
        .map_err(|error| PayloadRefused::NotJson(error.to_string()))
}

trait Walk<'de>: Deserializer<'de> + Sized {
    fn deserialize_any_value(self, depth: usize) -> Result<(), Self::Error> {
        self.deserialize_any(Value { depth })
    }
}

impl<'de, D: Deserializer<'de>> Walk<'de> for D {}

/// Walks a value and keeps nothing. Unlike `IgnoredAny` it reads every string,
/// and so finds escapes that are no characters.
struct Value {
    depth: usize,
}

impl<'de> serde::de::DeserializeSeed<'de> for Value {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any_value(self.depth)
    }
}

impl Value {
    fn deeper<E: serde::de::Error>(&self) -> Result<usize, E> {
        if self.depth >= limits::ARGS_DEPTH_MAX {
            return Err(E::custom(format_args!("nested deeper than {} levels", limits::ARGS_DEPTH_MAX)));
        }
        Ok(self.depth + 1)
    }
}

impl<'de> Visitor<'de> for Value {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let depth = self.deeper()?;
        while items.next_element_seed(Value { depth })?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let depth = self.deeper()?;
        while entries.next_key_seed(Value { depth })?.is_some() {
            entries.next_value_seed(Value { depth })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PE1, PE2, PE5.
    #[test]
    fn what_is_json_passes_and_what_would_break_a_receiver_does_not() {
        for good in [
            "null",
            r#"{"a":"x\u0000y"}"#,
            r#"{"a":"\ud83d\ude00","b":[9223372036854775807,0.1e1,1.0]}"#,
            r#"{"a":1,"a":2}"#,
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in ["", "{", "{} {}", r#"{"a":"\ud800"}"#, r#"["\udc00"]"#, r#"{"\ud800":1}"#, "{a:1}", "NaN"]
        {
            assert!(matches!(check(bad), Err(PayloadRefused::NotJson(_))), "{bad}");
        }
    }

    /// PE8.
    #[test]
    fn size_and_depth_are_bounded() {
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert_eq!(check(&deep(limits::ARGS_DEPTH_MAX)), Ok(()));
        let refusal = check(&deep(10_000)).unwrap_err().to_string();
        assert!(refusal.contains("nested deeper than 64 levels"), "{refusal}");
        let long = format!("\"{}\"", "x".repeat(limits::ARGS_BYTES_MAX));
        assert!(matches!(check(&long), Err(PayloadRefused::TooLong { .. })));
    }
}
