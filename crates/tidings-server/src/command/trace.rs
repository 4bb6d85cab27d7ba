//! `tidings trace`: what happened to a job in the order of time, with the evidence
//! of each attempt, and what is safe to do next.

use super::{Context, event_id, events, job_id};
use crate::exit::Exit;
use crate::instant;
use crate::print::shown;
use crate::problem::Problem;
use crate::view::{AttemptDocument, EventDocument, JobDocument, RecordedDocument};
use serde::Serialize;
use std::fmt::Write;
use tidings::Tidings;
use tidings::core::event::EventId;
use tidings::core::evidence::{HttpEvidence, RetryAfterEvidence};
use tidings::core::outcome::SnoozeSource;

/// Jobs of one event that are traced in full; an event may have become thousands.
const JOBS_TRACED_MAX: usize = 50;

/// An event, with its jobs in full.
#[derive(Serialize)]
struct EventTrace {
    #[serde(flatten)]
    event: RecordedDocument,
    jobs: Vec<JobDocument>,
    /// More jobs than are shown here.
    jobs_left_out: usize,
}

/// Prints the timeline; as JSON it is the document of `jobs show`, or of `events show`
/// with those of its jobs.
pub(crate) async fn run(context: &Context, tidings: &Tidings, id: &str) -> Result<Exit, Problem> {
    if id.starts_with("evt_") {
        let trace = event_trace(tidings, event_id(id)?).await?;
        context.style.result(|| event_timeline(&trace), &trace)?;
        return Ok(Exit::Done);
    }
    let id = job_id(id)?;
    let view = tidings.job(id).await?.ok_or_else(|| Problem::no_such_job(id))?;
    let document = JobDocument::of(&view, tidings);
    context.style.result(|| timeline(&document), &document)?;
    Ok(Exit::Done)
}

async fn event_trace(tidings: &Tidings, id: EventId) -> Result<EventTrace, Problem> {
    let event = events::document(tidings, id).await?;
    let all = event.jobs();
    let mut jobs = Vec::new();
    for job in all.iter().take(JOBS_TRACED_MAX) {
        // One that is past its retention is named by the event.
        if let Some(view) = tidings.job(job_id(&job.id)?).await? {
            jobs.push(JobDocument::of(&view, tidings));
        }
    }
    Ok(EventTrace { event, jobs, jobs_left_out: all.len().saturating_sub(JOBS_TRACED_MAX) })
}

fn event_timeline(trace: &EventTrace) -> String {
    let mut text = events::summary(&trace.event);
    for job in &trace.jobs {
        let _ = write!(text, "\n\n{}", timeline(job));
    }
    if trace.jobs_left_out > 0 {
        let _ = write!(text, "\n\n{} more jobs are left out: tidings trace JOB", trace.jobs_left_out);
    }
    text
}

/// Everything, in the order of time.
fn timeline(document: &JobDocument) -> String {
    let mut blocks: Vec<(&str, String)> = document
        .attempts
        .iter()
        .map(|attempt| (attempt.started_at.as_str(), attempt_block(attempt)))
        .chain(document.events.iter().map(|event| (event.at.as_str(), event_line(event))))
        .collect();
    // Times are printed at one length, so they sort as text.
    blocks.sort_by_key(|(at, _)| *at);
    let mut text = head(document);
    args_field(&mut text, document);
    for (_, block) in blocks {
        text.push_str("\n\n");
        text.push_str(&block);
    }
    let _ = write!(text, "\n\n{}", document.verdict.text);
    text
}

/// What `jobs show` prints: the job, and a line for each attempt.
pub(crate) fn summary(document: &JobDocument) -> String {
    let mut text = head(document);
    args_field(&mut text, document);
    for attempt in &document.attempts {
        let _ = write!(text, "\n\n{}", attempt_head(attempt));
        reason_field(&mut text, attempt);
    }
    let _ = write!(text, "\n\n{}\nAll evidence: tidings trace {}", document.verdict.text, document.job.id);
    text
}

fn args_field(text: &mut String, document: &JobDocument) {
    if let Some(event) = &document.from_event {
        field(text, "event", &event.to_string());
    }
    let unknown = "not shown: this program does not know the kind and may not tell a secret";
    field(text, "args", &document.args.as_ref().map_or_else(|| unknown.to_owned(), |args| shown(args.get())));
}

fn head(document: &JobDocument) -> String {
    let job = &document.job;
    let held = if job.held { " (held)" } else { "" };
    let mut text = format!("{}  {}  {}{held}", job.id, shown(&job.kind), job.state.as_str());
    let tenant = job.tenant.as_ref().map_or_else(String::new, |tenant| format!(", tenant {}", shown(tenant)));
    field(&mut text, "queue", &format!("{}, priority {}{tenant}", shown(&job.queue), job.priority));
    field(&mut text, "enqueued", &job.enqueued_at);
    if job.run_at != job.enqueued_at {
        field(&mut text, "run at", &job.run_at);
    }
    if let Some(finished) = &job.finished_at {
        field(&mut text, "finished", finished);
    }
    let counters = &job.counters;
    let counted = format!(
        "{} started, {} counted by the policy, {} snoozes, {} crashes",
        counters.claims, counters.attempts, counters.snoozes, counters.crashes
    );
    field(&mut text, "attempts", &counted);
    text
}

fn field(text: &mut String, name: &str, value: &str) {
    let _ = write!(text, "\n  {name:<10} {value}");
}

fn attempt_head(attempt: &AttemptDocument) -> String {
    let number = attempt.attempt;
    match (attempt.outcome, attempt.duration_ms) {
        (Some(outcome), Some(duration)) => {
            let status = attempt.http_status.map_or_else(String::new, |status| format!(" ({status})"));
            format!(
                "Attempt {number}  {}  {}  {}{status}",
                attempt.started_at,
                instant::span(duration),
                outcome.as_str()
            )
        }
        _ => format!("Attempt {number}  {}  in flight", attempt.started_at),
    }
}

fn attempt_block(attempt: &AttemptDocument) -> String {
    let mut text = attempt_head(attempt);
    if let Some(effect) = attempt.effect {
        let kind = attempt.failure_kind.map_or_else(String::new, |kind| format!(", failure {}", word(&kind)));
        field(&mut text, "effect", &format!("{}{kind}", effect_words(effect)));
    }
    if let Some(http) = &attempt.http {
        http_fields(&mut text, http);
    }
    reason_field(&mut text, attempt);
    next_fields(&mut text, attempt);
    field(&mut text, "worker", &format!("{}{}", attempt.worker, ended_by(attempt)));
    text
}

fn reason_field(text: &mut String, attempt: &AttemptDocument) {
    if let Some(reason) = &attempt.reason {
        field(text, "reason", &shown(reason));
    }
}

fn ended_by(attempt: &AttemptDocument) -> &'static str {
    use tidings::core::fact::EndedBy;
    match attempt.ended_by {
        Some(EndedBy::Sweep) => ", which was not heard of again; the sweep ended the attempt",
        Some(EndedBy::Worker) | None => "",
    }
}

fn effect_words(effect: tidings::core::outcome::Effect) -> &'static str {
    use tidings::core::outcome::Effect;
    match effect {
        Effect::None => "none: the receiver cannot have acted",
        Effect::Possible => "possible: the receiver may have acted",
        Effect::Done => "done: the receiver said so",
    }
}

fn http_fields(text: &mut String, http: &HttpEvidence) {
    let address = http.address.as_ref().map_or_else(String::new, |address| format!(" at {}", shown(address)));
    field(text, "request", &format!("{} {}{address}", shown(&http.method), shown(&http.origin)));
    let phases: Vec<String> =
        http.phases_ms.iter().map(|(phase, at)| format!("{} at {at} ms", word(phase))).collect();
    let reached =
        format!("{} ({} bytes written, {} read)", word(&http.phase), http.bytes_written, http.bytes_read);
    field(text, "reached", &reached);
    if !phases.is_empty() {
        field(text, "phases", &phases.join(", "));
    }
    if let Some(host) = &http.redirect_host {
        field(text, "redirect", &format!("to {}, not followed", shown(host)));
    }
    if let Some(retry_after) = &http.retry_after {
        field(text, "asked for", &retry_after_words(retry_after));
    }
    if !http.excerpt.is_empty() {
        let cut: String = http.excerpt.chars().take(200).collect();
        field(text, "answer", &shown(&cut));
    }
}

fn retry_after_words(evidence: &RetryAfterEvidence) -> String {
    let span = |ms: Option<i64>, none: &str| ms.map_or_else(|| none.to_owned(), instant::span);
    let capped = if evidence.capped { ", capped" } else { "" };
    let note = if evidence.note.is_empty() { String::new() } else { format!(" ({})", shown(&evidence.note)) };
    format!(
        "Retry-After `{}`: asks {}, used {}{capped}{note}",
        shown(&evidence.raw),
        span(evidence.asked_ms, "nothing valid"),
        span(evidence.used_ms, "none")
    )
}

fn next_fields(text: &mut String, attempt: &AttemptDocument) {
    let Some(next) = &attempt.next else { return };
    let policy = attempt.policy_version.as_deref().map(shown).unwrap_or_default();
    let words = match (&next.at, attempt.delay_ms) {
        (Some(at), delay) => {
            let who = match next.source {
                Some(SnoozeSource::RetryAfter) => "the receiver's Retry-After, no attempt spent".to_owned(),
                Some(SnoozeSource::Handler) => "the handler, no attempt spent".to_owned(),
                None => format!("chosen by policy {policy}, jitter included"),
            };
            let capped = if next.capped { ", cut by the policy's longest snooze" } else { "" };
            let delay = delay.map_or_else(String::new, |ms| format!(" after {ms} ms"));
            format!("{}{delay}, at {at} ({who}{capped})", next.state)
        }
        (None, _) => match next.why {
            Some(why) => format!("{}: {why} (policy {policy})", next.state),
            None if next.by_late_report => format!("{}, by a late report of an earlier attempt", next.state),
            None => next.state.to_owned(),
        },
    };
    field(text, "next", &words);
}

fn event_line(event: &EventDocument) -> String {
    let mut text = format!("{}  {}", event.at, event.event.replace('_', " "));
    if let Some(attempt) = event.attempt {
        let _ = write!(text, " attempt {attempt}");
    }
    if let Some(outcome) = event.outcome {
        let settles = if event.settles == Some(true) { ", which settles the job" } else { "" };
        let _ = write!(text, ": {}{settles}", outcome.as_str());
    }
    if let Some(resolution) = &event.resolution {
        let _ = write!(text, " as {}", word(resolution));
    }
    if let Some(actor) = &event.actor {
        let _ = write!(text, " by {}", shown(actor));
    }
    if let Some(reason) = &event.reason {
        field(&mut text, "reason", &shown(reason));
    }
    text
}

/// The word that the JSON has for it, with blanks.
fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word.replace('_', " "),
        Ok(other) => other.to_string(),
        Err(_) => String::new(),
    }
}
