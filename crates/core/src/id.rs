//! Ids with a typed prefix, so that one read aloud says what it names.
//!
//! An id is a UUID (version 7, so that ids sort by creation). This module only
//! prints and parses; whoever creates a job passes a fresh UUID in.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use uuid::Uuid;

/// Names one job: `job_` and 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct JobId(pub Uuid);

const JOB_PREFIX: &str = "job_";

/// The text is not an id of the kind that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not a job id: expected `job_` and 32 hexadecimal digits")]
pub struct NotAnId {
    given: String,
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{JOB_PREFIX}{}", self.0.simple())
    }
}

impl fmt::Debug for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for JobId {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<JobId, NotAnId> {
        let refused = || NotAnId { given: text.chars().take(64).collect() };
        let hex = text.strip_prefix(JOB_PREFIX).filter(|hex| hex.len() == 32).ok_or_else(refused)?;
        Uuid::try_parse(hex).map(JobId).map_err(|_| refused())
    }
}

impl TryFrom<String> for JobId {
    type Error = NotAnId;

    fn try_from(text: String) -> Result<JobId, NotAnId> {
        text.parse()
    }
}

impl From<JobId> for String {
    fn from(id: JobId) -> String {
        id.to_string()
    }
}

/// Names one run of one process. Fresh at every boot, never the host name, so
/// that a restarted container is not mistaken for the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WorkerId(pub Uuid);

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.simple())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back_as_itself() {
        let id = JobId(Uuid::from_u128(0x0198_c0de_0000_7000_8000_0000_0000_0001));
        assert_eq!(id.to_string(), "job_0198c0de000070008000000000000001");
        assert_eq!(id.to_string().parse(), Ok(id));
    }

    #[test]
    fn an_id_of_another_kind_is_refused_with_the_form_that_was_expected() {
        for text in [
            "",
            "job_",
            "evt_0198c0de000070008000000000000001",
            "0198c0de000070008000000000000001",
            "job_0198c0de-0000-7000-8000-000000000001",
        ] {
            let refusal = text.parse::<JobId>().unwrap_err().to_string();
            assert!(refusal.contains("expected `job_`"), "{refusal}");
        }
    }
}
