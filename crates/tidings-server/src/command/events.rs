//! `tidings events`, and how an event is printed.

use super::{Context, event_id};
use crate::cli::{Events, EventsList};
use crate::event_listing::{self, Asked};
use crate::exit::Exit;
use crate::instant;
use crate::print::shown;
use crate::problem::Problem;
use crate::table;
use crate::view::{
    BacklogDocument, DecisionDocument, MadeJobDocument, RecordedDocument, RecordedLine, RecordedPage,
};
use std::fmt::Write;
use tidings::core::event::EventId;
use tidings::core::job::StateName;
use tidings::store::outbox::StoredEvent;
use tidings::{RecordRefused, Tidings};

pub(crate) async fn run(context: &Context, tidings: &Tidings, events: Events) -> Result<Exit, Problem> {
    match events {
        Events::List(asked) => list(context, tidings, asked).await?,
        Events::Show { id } => {
            let document = document(tidings, event_id(&id)?).await?;
            context.style.result(|| summary(&document), &document)?;
        }
        Events::Requeue { id } => {
            let id = event_id(&id)?;
            tidings.requeue(id).await?;
            let line = RecordedLine::of(&stored(tidings, id).await?);
            context.style.result(|| format!("{} is {}", line.id, line.state.replace('_', " ")), &line)?;
        }
        Events::Backlog => {
            let backlog = BacklogDocument::of(&tidings.backlog().await?, tidings.now());
            context.style.result(|| backlog_words(&backlog), &backlog)?;
        }
    }
    Ok(Exit::Done)
}

/// The event of that id with what became of it.
pub(super) async fn document(tidings: &Tidings, id: EventId) -> Result<RecordedDocument, Problem> {
    Ok(RecordedDocument::of(&stored(tidings, id).await?, tidings).await?)
}

async fn stored(tidings: &Tidings, id: EventId) -> Result<StoredEvent, Problem> {
    Ok(tidings.event(id).await?.ok_or(RecordRefused::NoSuchEvent(id))?)
}

async fn list(context: &Context, tidings: &Tidings, asked: EventsList) -> Result<(), Problem> {
    let EventsList { state, type_name, subject, tenant, limit, cursor } = asked;
    let asked = Asked { state, type_name, subject, tenant, limit, cursor };
    let page = event_listing::page(tidings, asked).await?;
    context.style.result(|| text_of(&page), &page)
}

fn text_of(page: &RecordedPage) -> String {
    if page.events.is_empty() {
        return "No events.".to_owned();
    }
    let cell = |text: &Option<String>| text.as_deref().map(shown).unwrap_or_default();
    let mut text = table::of(
        ["ID", "STATE", "TYPE", "SUBJECT", "RECORDED"],
        page.events.iter().map(|event| {
            let (subject, recorded) = (cell(&event.subject), event.recorded_at.clone());
            [event.id.clone(), event.state.to_owned(), shown(&event.r#type), subject, recorded]
        }),
    );
    if let Some(cursor) = &page.next_cursor {
        text.push_str(&format!("\nThere are more: --cursor {cursor}"));
    }
    text
}

/// The event, a line for each subscription, and what may be concluded.
pub(super) fn summary(document: &RecordedDocument) -> String {
    let event = &document.event;
    let mut text = format!("{}  {}  {}", event.id, shown(&event.r#type), event.state.replace('_', " "));
    let mut field = |name: &str, value: &str| {
        let _ = write!(text, "\n  {name:<10} {value}");
    };
    if let Some(subject) = &event.subject {
        field("subject", &shown(subject));
    }
    if let Some(tenant) = &event.tenant {
        field("tenant", &shown(tenant));
    }
    field("recorded", &event.recorded_at);
    if event.occurred_at != event.recorded_at {
        field("occurred", &event.occurred_at);
    }
    if let Some(at) = &event.settled_at {
        field(if event.state == "poisoned" { "set aside" } else { "fanned out" }, at);
    }
    field("data", &document.data.as_ref().map_or_else(String::new, |data| shown(data.get())));
    if !document.subscriptions.is_empty() {
        text.push('\n');
    }
    for decision in &document.subscriptions {
        let _ = write!(text, "\n{}: {}", shown(&decision.subscription), decision_words(decision));
        for job in decision.jobs.iter().flatten() {
            let _ = write!(text, "\n  {}", job_words(job));
        }
    }
    let _ = write!(text, "\n\n{}", shown(&document.verdict.text));
    text
}

fn decision_words(decision: &DecisionDocument) -> String {
    let named = |text: &Option<String>| text.as_deref().map(shown).unwrap_or_default();
    match decision.decision {
        "became" => match decision.jobs.as_ref().map_or(0, Vec::len) {
            0 => "became no job: it is expanded, and there was no receiver".to_owned(),
            _ => "became".to_owned(),
        },
        "to_become" => match &decision.problem {
            None => "matches, and becomes jobs when it is fanned out".to_owned(),
            Some(problem) => format!("matches, and cannot become jobs: {}", shown(problem)),
        },
        "filtered" => format!("not matched: the condition on `{}` does not hold", named(&decision.field)),
        "coalesced" => {
            format!("coalesced: {}, a later event of its subject, stands for it", named(&decision.into))
        }
        "not_matched" => {
            format!("not matched: its pattern `{}` does not match the type", named(&decision.pattern))
        }
        _ => "not asked: it was made or changed after the fan-out".to_owned(),
    }
}

/// A job that an event became.
pub(super) fn job_words(job: &MadeJobDocument) -> String {
    let held = if job.held { ", held" } else { "" };
    match &job.kind {
        Some(kind) => {
            format!("{}  {}  {}{held}", job.id, shown(kind), job.state.map_or("", StateName::as_str))
        }
        None => format!("{}  past its retention", job.id),
    }
}

fn backlog_words(backlog: &BacklogDocument) -> String {
    let or_more = if backlog.waiting >= backlog.waiting_counted_to { " or more" } else { "" };
    let oldest = backlog
        .oldest_age_ms
        .map_or_else(String::new, |age| format!(", the oldest for {}", instant::span(age)));
    let mut text = format!(
        "{}{or_more} waiting for their fan-out{oldest}; {} set aside",
        backlog.waiting, backlog.poisoned
    );
    if let Some(alert) = &backlog.alert {
        let _ = write!(text, "\nALERT: {}", shown(alert));
    }
    text
}
