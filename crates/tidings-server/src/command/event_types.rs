//! `tidings event-types`.

use super::Context;
use crate::cli::EventTypes;
use crate::exit::Exit;
use crate::print::shown;
use crate::problem::Problem;
use crate::table;
use serde_json::json;
use tidings::Tidings;
use tidings::core::event::{EventType, Exposure, TypeName};

pub(crate) async fn run(context: &Context, tidings: &Tidings, types: EventTypes) -> Result<Exit, Problem> {
    match types {
        EventTypes::List => {
            let types = tidings.event_types().await?;
            context.style.result(|| text_of(&types), &json!({ "event_types": types }))?;
        }
        EventTypes::Declare { name, description, exposure } => {
            let exposure = if exposure == "external" { Exposure::External } else { Exposure::Internal };
            let name = TypeName::new(&name).map_err(|refused| Problem::from(refused).field("name"))?;
            let declared = EventType { name, description, exposure };
            tidings.declare(std::slice::from_ref(&declared), &[]).await?;
            let text = || format!("{} is declared, {}", declared.name, word(declared.exposure));
            context.style.result(text, &declared)?;
        }
    }
    Ok(Exit::Done)
}

const fn word(exposure: Exposure) -> &'static str {
    match exposure {
        Exposure::Internal => "internal",
        Exposure::External => "external",
    }
}

fn text_of(types: &[EventType]) -> String {
    if types.is_empty() {
        return "No event types are declared: tidings event-types declare NAME.".to_owned();
    }
    table::of(
        ["NAME", "EXPOSURE", "DESCRIPTION"],
        types.iter().map(|declared| {
            let exposure = word(declared.exposure).to_owned();
            [declared.name.to_string(), exposure, shown(&declared.description)]
        }),
    )
}
