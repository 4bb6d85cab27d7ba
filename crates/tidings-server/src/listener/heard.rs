//! One request as it was heard, and how often its id was heard before.

use crate::print::shown;
use serde::Serialize;
use std::collections::BTreeMap;
use tidings::core::sign::{Secret, SignedHeaders, verify};
use tidings::{Millis, Time};

/// How far a signature's time may be off, as Standard Webhooks advises.
const TOLERANCE: Millis = Millis::from_minutes(5);

/// What arrived.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    /// Names in lower case; values as text.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// What is known of its signature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "signature", content = "signature_problem", rename_all = "snake_case")]
pub(crate) enum Signature {
    /// No secret was given.
    NotChecked,
    /// There is none.
    Missing,
    /// It fits.
    Valid,
    /// It does not, and why.
    Invalid(String),
}

/// One request with what was made of it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Heard {
    /// From 1.
    pub(crate) number: u64,
    pub(crate) at: String,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    /// As text; bytes that are none are replaced.
    pub(crate) body: String,
    pub(crate) body_bytes: usize,
    #[serde(flatten)]
    pub(crate) signature: Signature,
    pub(crate) webhook_id: Option<String>,
    /// How often this id was heard, this time included.
    pub(crate) times_heard: u64,
    /// What is done with it.
    pub(crate) reply: String,
}

impl Request {
    /// The first header of that name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    /// Whether the request is from who knows the secret.
    pub(crate) fn signature(&self, secret: Option<&Secret>, now: Time) -> Signature {
        let Some(secret) = secret else { return Signature::NotChecked };
        let names = ["webhook-id", "webhook-timestamp", "webhook-signature"];
        let [id, timestamp, signature] = names.map(|name| self.header(name).map(str::to_owned));
        if id.is_none() && timestamp.is_none() && signature.is_none() {
            return Signature::Missing;
        }
        let headers = SignedHeaders {
            id: id.unwrap_or_default(),
            timestamp: timestamp.unwrap_or_default(),
            signature: signature.unwrap_or_default(),
        };
        match verify(std::slice::from_ref(secret), &headers, &self.body, now, TOLERANCE) {
            Ok(()) => Signature::Valid,
            Err(problem) => Signature::Invalid(problem.to_string()),
        }
    }
}

impl Heard {
    /// As a block for people.
    pub(crate) fn text(&self) -> String {
        let mut lines = vec![format!(
            "#{} {} {} {} -> {}",
            self.number,
            self.at,
            self.method,
            shown(&self.path),
            self.reply
        )];
        lines.extend(self.headers.iter().map(|(name, value)| format!("  {}: {}", shown(name), shown(value))));
        if let Some(words) = self.signature.words() {
            lines.push(format!("  signature {words}"));
        }
        if self.times_heard > 1 {
            lines.push(format!("  this webhook-id was heard {} times by now", self.times_heard));
        }
        if self.body_bytes > 0 {
            lines.push(format!("  {}", shown(&self.body)));
        }
        lines.join("\n")
    }
}

impl Signature {
    fn words(&self) -> Option<String> {
        match self {
            Signature::NotChecked => None,
            Signature::Missing => Some("MISSING".to_owned()),
            Signature::Valid => Some("valid".to_owned()),
            Signature::Invalid(problem) => Some(format!("INVALID: {problem}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidings::core::sign::sign;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const NOW: Time = Time(1_764_494_100_000);

    fn signed(body: &[u8]) -> Request {
        let secret: Secret = SECRET.parse().unwrap();
        let SignedHeaders { id, timestamp, signature } = sign(&[secret], "job_1", NOW, body).unwrap();
        let names = ["webhook-id", "webhook-timestamp", "webhook-signature"];
        let headers = names.map(str::to_owned).into_iter().zip([id, timestamp, signature]).collect();
        Request { method: "POST".into(), path: "/".into(), headers, body: body.to_vec() }
    }

    #[test]
    fn a_signature_is_valid_invalid_missing_or_not_looked_at() {
        let secret: Secret = SECRET.parse().unwrap();
        let good = signed(b"{}");
        assert_eq!(good.signature(Some(&secret), NOW), Signature::Valid);
        assert_eq!(good.signature(None, NOW), Signature::NotChecked);
        let changed = Request { body: b"{ }".to_vec(), ..good.clone() };
        assert!(matches!(changed.signature(Some(&secret), NOW), Signature::Invalid(_)));
        let late = NOW + Millis::from_minutes(6);
        assert!(matches!(good.signature(Some(&secret), late), Signature::Invalid(_)));
        let plain = Request { headers: Vec::new(), ..good };
        assert_eq!(plain.signature(Some(&secret), NOW), Signature::Missing);
    }
}
