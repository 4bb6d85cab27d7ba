//! A page of events, as somebody asks for it: the same for API and command line.

use crate::cursor;
use crate::listing::{limit, refused};
use crate::problem::Problem;
use crate::view::{RecordedLine, RecordedPage};
use tidings::Tidings;
use tidings::core::event::EventId;
use tidings::store::outbox::EventFilter;

/// What is asked for, as it was written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    pub(crate) state: Option<String>,
    pub(crate) type_name: Option<String>,
    pub(crate) subject: Option<String>,
    pub(crate) tenant: Option<String>,
    pub(crate) limit: Option<String>,
    pub(crate) cursor: Option<String>,
}

/// The page, newest events first.
pub(crate) async fn page(tidings: &Tidings, asked: Asked) -> Result<RecordedPage, Problem> {
    let limit = limit(asked.limit.as_deref())?;
    let filter = EventFilter {
        state: asked.state.map(state).transpose()?.unwrap_or_default(),
        type_name: asked.type_name.unwrap_or_default(),
        subject: asked.subject.unwrap_or_default(),
        tenant: asked.tenant.unwrap_or_default(),
        before: asked.cursor.as_deref().map(before).transpose()?,
        // One more than is shown tells whether there is a next page.
        limit: limit + 1,
    };
    let events = tidings.events(&filter).await?;
    let more = events.len() > limit;
    let shown = &events[..events.len().min(limit)];
    let next_cursor = shown.last().filter(|_| more).map(|stored| cursor::after_event(stored.event.id));
    Ok(RecordedPage { events: shown.iter().map(RecordedLine::of).collect(), next_cursor })
}

/// The words of `RelayState::as_str`.
const STATES: [&str; 3] = ["waiting", "fanned_out", "poisoned"];

fn state(word: String) -> Result<String, Problem> {
    if STATES.contains(&word.as_str()) {
        return Ok(word);
    }
    Err(refused("state", &format!("must be one of {}", STATES.join(", "))))
}

fn before(cursor: &str) -> Result<EventId, Problem> {
    cursor::parse_event(cursor)
        .ok_or_else(|| refused("cursor", "is not one that was given out; begin without it"))
}
