//! `tidings incidents`.

use super::Context;
use crate::cli::Incidents;
use crate::exit::Exit;
use crate::incident_list::{self, IncidentPage};
use crate::print::shown;
use crate::problem::Problem;
use crate::table;
use tidings::Tidings;

pub(crate) async fn run(context: &Context, tidings: &Tidings, incidents: Incidents) -> Result<Exit, Problem> {
    let Incidents::List { state, limit } = incidents;
    let page = incident_list::page(tidings, state.as_deref(), limit.as_deref()).await?;
    context.style.result(|| text_of(&page), &page)?;
    Ok(Exit::Done)
}

fn text_of(page: &IncidentPage) -> String {
    if page.incidents.is_empty() {
        return "No incidents.".to_owned();
    }
    table::of(
        ["ABOUT", "OPENED", "CLOSED", "TIMES", "REASON"],
        page.incidents.iter().map(|incident| {
            let about = format!("{} {}", shown(&incident.source), shown(&incident.subject));
            let closed = incident.closed_at.clone().unwrap_or_else(|| "open".to_owned());
            let times = incident.times.to_string();
            [about, incident.opened_at.clone(), closed, times, shown(&incident.reason)]
        }),
    )
}
