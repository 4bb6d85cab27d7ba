//! Signs and verifies requests as Standard Webhooks says: HMAC-SHA256 over
//! `id.timestamp.body`, so that a receiver can tell who sent it, that no byte
//! changed on the way, and that it is not an old one played again.
//!
//! The signature covers the exact bytes of the body; nothing here parses or
//! prints them. The id stays the same for every attempt, the timestamp is the
//! attempt's own: a timestamp fixed at the start would be stale on late retries.
//!
//! Absent on purpose: `v1a` (ed25519) signatures, and the making of secrets,
//! which needs randomness.

mod secret;

pub use secret::{BadSecret, Secret};

use crate::time::{Millis, Time};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::{Choice, ConstantTimeEq};

/// What stands before a symmetric signature in the `webhook-signature` header.
const V1: &str = "v1,";

/// The three headers of a signed request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedHeaders {
    /// `webhook-id`: names the message, the same on every attempt.
    pub id: String,
    /// `webhook-timestamp`: when this attempt was signed, in whole seconds since the Unix epoch.
    pub timestamp: String,
    /// `webhook-signature`: one `v1,<base64>` per secret, separated by spaces.
    pub signature: String,
}

/// Why a request cannot be signed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignError {
    /// There is nothing to sign with.
    #[error("there is no secret to sign with: give at least one `whsec_` secret")]
    NoSecret,
    /// The id would make the signed text ambiguous, or is no header value.
    #[error("the webhook id must be visible ASCII without `.`, and not empty: use the job's or event's id")]
    BadId,
}

/// Why a signed request is not to be trusted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// There is nothing to verify with.
    #[error("there is no secret to verify with: give at least one `whsec_` secret")]
    NoSecret,
    /// The id is empty, has a `.`, or is no header value.
    #[error("webhook-id is empty, or has a `.` or other characters that it must not have")]
    BadId,
    /// The timestamp is not a number of seconds.
    #[error("webhook-timestamp is not a whole number of seconds since 1970")]
    BadTimestamp,
    /// The timestamp is further back than the tolerance.
    #[error("webhook-timestamp is too old: it may be a request played again, or a clock is wrong")]
    TooOld,
    /// The timestamp is further ahead than the tolerance.
    #[error("webhook-timestamp lies in the future: compare the clocks of sender and receiver")]
    TooNew,
    /// The header holds no signature of a kind that is verified here.
    #[error("webhook-signature holds no `v1` signature")]
    NoSignature,
    /// No signature fits any secret.
    #[error("no signature fits: the secret is another one, or the body was changed on the way")]
    Mismatch,
}

/// Signs `body` as it will be sent, at the time of this attempt. Several
/// secrets give several signatures in the order given, which is how a secret
/// is rotated without a receiver noticing: the new one first, then the old.
pub fn sign(secrets: &[Secret], id: &str, at: Time, body: &[u8]) -> Result<SignedHeaders, SignError> {
    if secrets.is_empty() {
        return Err(SignError::NoSecret);
    }
    if !is_id(id) {
        return Err(SignError::BadId);
    }
    let timestamp = at.0.div_euclid(1_000).to_string();
    let signatures: Vec<String> = secrets
        .iter()
        .map(|secret| format!("{V1}{}", STANDARD.encode(digest(secret, id, &timestamp, body))))
        .collect();
    Ok(SignedHeaders { id: id.to_owned(), timestamp, signature: signatures.join(" ") })
}

/// Checks that one of the signatures was made with one of the secrets over
/// exactly this `body`, no longer than `tolerance` before or after `now`.
/// Signatures of other kinds are passed over. The time it takes does not tell
/// how much of a signature was right.
pub fn verify(
    secrets: &[Secret],
    headers: &SignedHeaders,
    body: &[u8],
    now: Time,
    tolerance: Millis,
) -> Result<(), VerifyError> {
    if secrets.is_empty() {
        return Err(VerifyError::NoSecret);
    }
    if !is_id(&headers.id) {
        return Err(VerifyError::BadId);
    }
    check_age(&headers.timestamp, now, tolerance)?;
    let given: Vec<&str> =
        headers.signature.split(' ').filter_map(|signature| signature.strip_prefix(V1)).collect();
    if given.is_empty() {
        return Err(VerifyError::NoSignature);
    }
    let mut fits = Choice::from(0);
    for secret in secrets {
        let expected = STANDARD.encode(digest(secret, &headers.id, &headers.timestamp, body));
        for signature in &given {
            fits |= expected.as_bytes().ct_eq(signature.as_bytes());
        }
    }
    if bool::from(fits) { Ok(()) } else { Err(VerifyError::Mismatch) }
}

/// Whether `id` can stand in a header and leaves `id.timestamp.body` unambiguous.
fn is_id(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'.')
}

fn check_age(timestamp: &str, now: Time, tolerance: Millis) -> Result<(), VerifyError> {
    if timestamp.is_empty() || !timestamp.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(VerifyError::BadTimestamp);
    }
    let seconds: i64 = timestamp.parse().map_err(|_| VerifyError::BadTimestamp)?;
    let signed_at = Time(seconds.saturating_mul(1_000));
    if now.since(signed_at) > tolerance {
        Err(VerifyError::TooOld)
    } else if signed_at.since(now) > tolerance {
        Err(VerifyError::TooNew)
    } else {
        Ok(())
    }
}

fn digest(secret: &Secret, id: &str, timestamp: &str, body: &[u8]) -> impl AsRef<[u8]> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.bytes()).expect("HMAC takes a key of any length");
    for part in [id.as_bytes(), b".", timestamp.as_bytes(), b".", body] {
        mac.update(part);
    }
    mac.finalize().into_bytes()
}

#[cfg(test)]
mod tests;
