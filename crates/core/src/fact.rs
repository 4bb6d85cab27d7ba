//! What happened to a job: the lines of its append-only history.
//!
//! A fact has the key `(job, version)`. One attempt is one fact, appended when
//! the attempt ends, whoever ends it. The claim is the exception: while it is
//! open it stands on the row only, see [`Fact::is_logged`].

use crate::evidence::Evidence;
use crate::id::WorkerId;
use crate::job::Claim;
use crate::outcome::{AttemptOutcome, SnoozeSource};
use crate::time::Time;
use serde::{Deserialize, Serialize};

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "fact", rename_all = "snake_case")]
pub enum Fact {
    /// A worker took the job. Kept on the row, not in the log: the fact that
    /// ends the attempt says all of it again.
    #[serde(skip)]
    Claimed(Claim),
    /// An attempt ended.
    AttemptEnded(Box<AttemptEnd>),
    /// A worker gave the job back untouched; no attempt was made.
    Released {
        /// The claim that was given back.
        claim: i64,
        /// When the job is due again.
        due_at: Time,
    },
    /// A worker reported after its attempt had been ended for it.
    ReportedLate(Box<LateReport>),
    /// Somebody asked to cancel a running job.
    CancelRequested(Act),
    /// A job was cancelled while nobody worked on it.
    Cancelled(Act),
    /// Somebody brought a finished job back, with all its attempts.
    Revived {
        /// When it is due.
        due_at: Time,
        /// Who and why.
        act: Act,
    },
    /// Somebody asked for the next attempt now.
    Hurried {
        /// When it is due.
        due_at: Time,
        /// Who and why.
        act: Act,
    },
    /// Somebody decided about an unknown outcome.
    Resolved {
        /// What they decided.
        resolution: Resolution,
        /// When the job is due, if it is to be tried again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        due_at: Option<Time>,
        /// Who and why.
        act: Act,
    },
}

/// One attempt and everything that is known of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttemptEnd {
    /// The attempt's number.
    pub attempt: i64,
    /// Who made it.
    pub worker: WorkerId,
    /// When it started.
    pub started_at: Time,
    /// Who ended it.
    pub ended_by: EndedBy,
    /// What it came to.
    pub outcome: AttemptOutcome,
    /// Why, in words; empty for an accepted one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What was learnt.
    pub evidence: Evidence,
    /// `name@version` of the policy that decided what comes next.
    pub policy: String,
    /// The wait that it chose, jitter included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<i64>,
    /// What became of the job.
    pub next: Next,
}

/// Who ended an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// The worker that made it, in time.
    Worker,
    /// The sweep, after the lease.
    Sweep,
}

/// What became of a job when an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Next {
    /// Done.
    Completed {
        /// It was an earlier attempt that was accepted, as a late report said.
        #[serde(default, skip_serializing_if = "core::ops::Not::not")]
        by_late_report: bool,
    },
    /// Given up.
    Discarded {
        /// Why.
        why: DiscardWhy,
    },
    /// Cancelled, as somebody had asked.
    Cancelled,
    /// A person decides.
    Held,
    /// Tried again after a failure.
    Retryable {
        /// When.
        due_at: Time,
    },
    /// Put off.
    Snoozed {
        /// Until when.
        due_at: Time,
        /// Who named the time.
        source: SnoozeSource,
        /// The policy's longest snooze cut it.
        #[serde(default, skip_serializing_if = "core::ops::Not::not")]
        capped: bool,
    },
    /// Tried again after an unknown outcome.
    Unknown {
        /// When.
        due_at: Time,
    },
}

/// Why a job was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DiscardWhy {
    /// Trying again will not help.
    Permanent,
    /// The policy's attempts are used up.
    AttemptsUsedUp,
    /// Its workers died too often.
    CrashesUsedUp,
    /// The next attempt would come after the policy's total age.
    TooOld,
    /// The policy's ceiling of snoozes is reached.
    SnoozesUsedUp,
}

impl DiscardWhy {
    /// In words.
    pub const fn as_str(self) -> &'static str {
        match self {
            DiscardWhy::Permanent => "trying again will not help",
            DiscardWhy::AttemptsUsedUp => "its attempts are used up",
            DiscardWhy::CrashesUsedUp => "its workers died too often",
            DiscardWhy::TooOld => "it is older than its policy allows",
            DiscardWhy::SnoozesUsedUp => "it was put off too often",
        }
    }
}

/// What a worker reported of an attempt that had been ended for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LateReport {
    /// The attempt's number.
    pub attempt: i64,
    /// What it came to.
    pub outcome: AttemptOutcome,
    /// Why, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What was learnt.
    pub evidence: Evidence,
    /// It was accepted, and nobody had said so yet: the job is done.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub settles: bool,
}

/// A person's (or a program's) deed: who and why. Bounded, safe text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Act {
    /// Who.
    pub actor: String,
    /// Why; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// A decision about an unknown outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resolution {
    /// It happened; there is proof.
    Accepted,
    /// Send again, with the same id.
    Retry,
    /// Leave it.
    GiveUp,
}

impl Fact {
    /// The name on disk. Never rename one.
    pub fn name(&self) -> &'static str {
        match self {
            Fact::Claimed(_) => "claimed",
            Fact::AttemptEnded(_) => "attempt_ended",
            Fact::Released { .. } => "released",
            Fact::ReportedLate(_) => "reported_late",
            Fact::CancelRequested(_) => "cancel_requested",
            Fact::Cancelled(_) => "cancelled",
            Fact::Revived { .. } => "revived",
            Fact::Hurried { .. } => "hurried",
            Fact::Resolved { .. } => "resolved",
        }
    }

    /// Whether it is appended to the log. An open claim is not: half the rows,
    /// the same evidence.
    pub fn is_logged(&self) -> bool {
        !matches!(self, Fact::Claimed(_))
    }
}
