//! A page of jobs, as somebody asks for it: the same for API and command line.

use crate::cursor;
use crate::problem::{Problem, Sort};
use crate::view::{JobLine, JobPage};
use tidings::Tidings;
use tidings::core::job::StateName;
use tidings::store::JobFilter;

/// Jobs on a page where nobody says otherwise.
pub(crate) const LIMIT_DEFAULT: usize = 50;
/// Most jobs on a page.
pub(crate) const LIMIT_MAX: usize = 200;

/// What is asked for, as it was written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    pub(crate) state: Option<String>,
    pub(crate) kind: Option<String>,
    pub(crate) queue: Option<String>,
    pub(crate) tenant: Option<String>,
    pub(crate) limit: Option<String>,
    pub(crate) cursor: Option<String>,
}

/// The page, newest jobs first.
pub(crate) async fn page(tidings: &Tidings, asked: Asked) -> Result<JobPage, Problem> {
    let limit = limit(asked.limit.as_deref())?;
    let filter = JobFilter {
        state: asked.state.as_deref().map(state).transpose()?,
        kind: asked.kind.unwrap_or_default(),
        queue: asked.queue.unwrap_or_default(),
        tenant: asked.tenant.unwrap_or_default(),
        before: asked.cursor.as_deref().map(before).transpose()?,
        // One more than is shown tells whether there is a next page.
        limit: limit + 1,
    };
    let jobs = tidings.jobs(&filter).await?;
    let more = jobs.len() > limit;
    let shown = &jobs[..jobs.len().min(limit)];
    let next_cursor = shown.last().filter(|_| more).map(|job| cursor::after(job.id));
    Ok(JobPage { jobs: shown.iter().map(JobLine::of).collect(), next_cursor })
}

pub(crate) fn refused(field: &str, problem: &str) -> Problem {
    Problem::new(Sort::InvalidParameter, format!("`{field}` {problem}")).field(field)
}

pub(crate) fn limit(written: Option<&str>) -> Result<usize, Problem> {
    let Some(written) = written else { return Ok(LIMIT_DEFAULT) };
    match written.parse() {
        Ok(limit @ 1..=LIMIT_MAX) => Ok(limit),
        _ => Err(refused("limit", &format!("must be a number from 1 to {LIMIT_MAX}"))),
    }
}

fn state(word: &str) -> Result<StateName, Problem> {
    StateName::by_name(word).ok_or_else(|| {
        let states = StateName::ALL.map(StateName::as_str).join(", ");
        refused("state", &format!("must be one of {states}"))
    })
}

fn before(cursor: &str) -> Result<tidings::JobId, Problem> {
    cursor::parse(cursor).ok_or_else(|| refused("cursor", "is not one that was given out; begin without it"))
}
