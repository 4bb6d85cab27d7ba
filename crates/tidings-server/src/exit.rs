//! How the program ends: its exit codes, each with its meaning, in one list.
//!
//! Scripts branch on these numbers; a number never changes its meaning.

use std::process::ExitCode;

/// An exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It did what was asked.
    Done = 0,
    /// It failed for a reason that no other code names.
    Failure = 1,
    /// What was asked for cannot be read, or cannot be.
    Usage = 2,
    /// There is no such job, queue, event or subscription.
    NotFound = 3,
    /// It exists, and its state does not allow what was asked.
    Conflict = 4,
    /// The database cannot be reached, read or written.
    Unavailable = 5,
    /// `--wait` ended before the job did, or before the event was fanned out.
    StillInFlight = 6,
    /// The job that `--wait` waited for ended without being accepted, or the event was set aside.
    NotAccepted = 7,
}

impl Exit {
    /// Every code with what it means, in the words of the documentation.
    #[cfg(test)]
    pub(crate) const ALL: [(Exit, &str); 8] = [
        (Exit::Done, "It did what was asked."),
        (Exit::Failure, "It failed for a reason that no other code names."),
        (
            Exit::Usage,
            "What was asked for cannot be read, or cannot be: a flag, the arguments, the configuration.",
        ),
        (Exit::NotFound, "There is no such job, queue, event or subscription."),
        (Exit::Conflict, "It exists, and its state does not allow what was asked."),
        (Exit::Unavailable, "The database is not there, or cannot be read or written."),
        (
            Exit::StillInFlight,
            "`--wait` ended before the job did, or before the event was fanned out. It goes on.",
        ),
        (
            Exit::NotAccepted,
            "The job that `--wait` waited for was discarded, cancelled or held; or the event was set aside.",
        ),
    ];
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}
