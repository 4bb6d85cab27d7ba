//! The secret that a sender and a receiver share, as Standard Webhooks writes
//! it: `whsec_` and the base64 of 24 to 64 random bytes.
//!
//! It is checked when it is given, not when the first request is signed.
//! Libraries disagree about what they forgive (a missing prefix, missing
//! padding, the other base64 alphabet), and one that forgives what the other
//! does not ends in signatures that never fit. So nothing is forgiven here, and
//! the error says which of these it was. No error and no output holds the secret.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// What stands before a symmetric secret.
const PREFIX: &str = "whsec_";

/// How many bytes a secret may have.
const BYTES: RangeInclusive<usize> = 24..=64;

/// A shared secret. Its bytes are seen by the signer alone.
#[derive(Clone)]
pub struct Secret(Vec<u8>);

/// Why a text is not a secret. Never says what the text was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSecret {
    /// Bare base64, or something else.
    #[error("the secret does not start with `whsec_`: put that before the base64 of the bytes")]
    NoPrefix,
    /// A key of the ed25519 scheme.
    #[error("`whsk_` and `whpk_` are ed25519 keys: give a shared secret that starts with `whsec_`")]
    Asymmetric,
    /// `-` or `_` in the place of `+` and `/`.
    #[error("the secret is base64 of the URL-safe kind: write `+` for `-` and `/` for `_`")]
    UrlSafe,
    /// The `=` at the end are missing.
    #[error("the secret's base64 lacks its padding: add `=` until the part after `whsec_` divides by 4")]
    Unpadded,
    /// Not base64 at all.
    #[error("the part after `whsec_` is not base64: copy it again, without blanks or line breaks")]
    NotBase64,
    /// Too short to be safe, or longer than receivers take.
    #[error("the secret has {0} bytes: it must have 24 to 64 (`openssl rand -base64 32` makes some)")]
    Length(usize),
}

impl Secret {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl FromStr for Secret {
    type Err = BadSecret;

    fn from_str(text: &str) -> Result<Secret, BadSecret> {
        if text.starts_with("whsk_") || text.starts_with("whpk_") {
            return Err(BadSecret::Asymmetric);
        }
        let base64 = text.strip_prefix(PREFIX).ok_or(BadSecret::NoPrefix)?;
        let bytes = STANDARD.decode(base64).map_err(|_| why_not(base64))?;
        if BYTES.contains(&bytes.len()) { Ok(Secret(bytes)) } else { Err(BadSecret::Length(bytes.len())) }
    }
}

/// Names what is wrong with text that is not standard base64.
fn why_not(base64: &str) -> BadSecret {
    let standard = base64.replace('-', "+").replace('_', "/");
    let decodes = |text: &str| STANDARD_NO_PAD.decode(text.trim_end_matches('=')).is_ok();
    if decodes(base64) {
        BadSecret::Unpadded
    } else if decodes(&standard) {
        BadSecret::UrlSafe
    } else {
        BadSecret::NotBase64
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[REDACTED]")
    }
}
