//! What a handler may return: an outcome, an outcome with evidence, or a result.

use tidings_core::evidence::Evidence;
use tidings_core::outcome::{Effect, FailureKind, Outcome};

/// An outcome with its evidence.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "a report that nobody returns leaves its job running until the lease is over"]
pub struct Report {
    /// What the attempt came to.
    pub outcome: Outcome,
    /// What was learnt.
    pub evidence: Evidence,
}

/// Turns what a handler returns into a report.
pub trait IntoReport {
    /// The report.
    fn into_report(self) -> Report;
}

impl IntoReport for Report {
    fn into_report(self) -> Report {
        self
    }
}

impl IntoReport for Outcome {
    fn into_report(self) -> Report {
        let (effect, failure_kind) = match &self {
            Outcome::Accepted => (Effect::Done, None),
            Outcome::Snooze { .. } => (Effect::None, None),
            // Nobody but the handler knows what it had done before it gave up.
            Outcome::Retryable(_) | Outcome::Discard(_) | Outcome::Unknown(_) => {
                (Effect::Possible, Some(FailureKind::Handler))
            }
        };
        Report { outcome: self, evidence: Evidence::plain(effect, failure_kind) }
    }
}

/// An error that a handler passes on with `?` was not classified: it is
/// retryable, with its message. There is no default success.
impl<T: IntoReport, E: std::fmt::Display> IntoReport for Result<T, E> {
    fn into_report(self) -> Report {
        match self {
            Ok(value) => value.into_report(),
            Err(error) => Outcome::retryable(error.to_string()).into_report(),
        }
    }
}
