//! `tidings jobs`.

use super::{Context, job_id};
use crate::cli::{Decision, Jobs, JobsList, Resolve};
use crate::exit::Exit;
use crate::listing::{self, Asked};
use crate::print::shown;
use crate::problem::Problem;
use crate::table;
use crate::view::{JobDocument, JobLine, JobPage};
use tidings::core::job::Job;
use tidings::{Resolution, Tidings};

pub(crate) async fn run(context: &Context, tidings: &Tidings, jobs: Jobs) -> Result<Exit, Problem> {
    match jobs {
        Jobs::List(asked) => list(context, tidings, asked).await?,
        Jobs::Show { id } => show(context, tidings, &id).await?,
        Jobs::Retry(act) => {
            changed(context, &tidings.retry(job_id(&act.id)?, &context.act(act.who)).await?)?;
        }
        Jobs::Cancel(act) => {
            changed(context, &tidings.cancel(job_id(&act.id)?, &context.act(act.who)).await?)?;
        }
        Jobs::Resolve(Resolve { id, decision, who }) => {
            let resolved = tidings.resolve(job_id(&id)?, resolution(&decision), &context.act(who)).await?;
            changed(context, &resolved)?;
        }
    }
    Ok(Exit::Done)
}

fn resolution(decision: &Decision) -> Resolution {
    // Exactly one of them is set: the parser sees to it.
    match decision {
        Decision { accepted: true, .. } => Resolution::Accepted,
        Decision { retry: true, .. } => Resolution::Retry,
        Decision { give_up: _, .. } => Resolution::GiveUp,
    }
}

async fn list(context: &Context, tidings: &Tidings, asked: JobsList) -> Result<(), Problem> {
    let JobsList { state, kind, queue, tenant, limit, cursor } = asked;
    let page = listing::page(tidings, Asked { state, kind, queue, tenant, limit, cursor }).await?;
    context.style.result(|| text_of(&page), &page)
}

fn text_of(page: &JobPage) -> String {
    if page.jobs.is_empty() {
        return "No jobs.".to_owned();
    }
    let mut text = table::of(
        ["ID", "STATE", "KIND", "QUEUE", "ATTEMPTS", "DUE"],
        page.jobs.iter().map(|job| {
            let state = if job.held { "unknown (held)" } else { job.state.as_str() };
            let attempts = job.counters.claims.to_string();
            let due = job.due_at.clone().unwrap_or_default();
            [job.id.clone(), state.to_owned(), shown(&job.kind), shown(&job.queue), attempts, due]
        }),
    );
    if let Some(cursor) = &page.next_cursor {
        text.push_str(&format!("\nThere are more: --cursor {cursor}"));
    }
    text
}

async fn show(context: &Context, tidings: &Tidings, id: &str) -> Result<(), Problem> {
    let id = job_id(id)?;
    let view = tidings.job(id).await?.ok_or_else(|| Problem::no_such_job(id))?;
    let document = JobDocument::of(&view, tidings);
    context.style.result(|| super::trace::summary(&document), &document)
}

fn changed(context: &Context, job: &Job) -> Result<(), Problem> {
    let line = JobLine::of(job);
    context.style.result(
        || {
            let due = line.due_at.as_ref().map_or_else(String::new, |due| format!(", due at {due}"));
            let asked = if line.cancel_requested { ", asked to stop" } else { "" };
            format!("{} is {}{due}{asked}", line.id, line.state.as_str())
        },
        &line,
    )
}
