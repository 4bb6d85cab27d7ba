//! `tidings queues`.

use super::Context;
use crate::cli::Queues;
use crate::exit::Exit;
use crate::print::shown;
use crate::problem::Problem;
use crate::queue_list::{self, QueueLine};
use crate::table;
use serde_json::json;
use tidings::Tidings;

pub(crate) async fn run(context: &Context, tidings: &Tidings, queues: Queues) -> Result<Exit, Problem> {
    match queues {
        Queues::List => {
            let lines = queue_list::all(tidings).await?;
            context.style.result(|| text_of(&lines), &json!({ "queues": lines }))?;
        }
        Queues::Pause { queue, who } => {
            tidings.pause(&queue, &context.act(who)).await.map_err(queue_list::refused)?;
            state(context, tidings, &queue).await?;
        }
        Queues::Resume { queue } => {
            tidings.resume(&queue).await.map_err(queue_list::refused)?;
            state(context, tidings, &queue).await?;
        }
    }
    Ok(Exit::Done)
}

async fn state(context: &Context, tidings: &Tidings, queue: &str) -> Result<(), Problem> {
    let line = queue_list::one(tidings, queue).await?;
    context.style.result(|| format!("{} is {}", shown(queue), word(&line)), &line)
}

fn word(line: &QueueLine) -> &'static str {
    if line.paused { "paused" } else { "running" }
}

fn text_of(lines: &[QueueLine]) -> String {
    let cell = |text: &Option<String>| text.as_deref().map(shown).unwrap_or_default();
    table::of(
        ["QUEUE", "STATE", "SINCE", "BY", "REASON"],
        lines.iter().map(|line| {
            let state = word(line).to_owned();
            [shown(&line.queue), state, cell(&line.paused_at), cell(&line.paused_by), cell(&line.reason)]
        }),
    )
}
