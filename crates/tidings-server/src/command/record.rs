//! `tidings record`.

use super::Context;
use super::input::Input;
use crate::cli;
use crate::exit::Exit;
use crate::instant;
use crate::problem::{Problem, Sort};
use crate::recording::RecordedReceipt;
use std::time::Duration;
use tidings::{Record, Tidings};

/// Records, and waits if it is told to.
pub(crate) async fn run(context: &Context, tidings: &Tidings, asked: cli::Record) -> Result<Exit, Problem> {
    let wait = asked.wait.map(Duration::from_secs);
    let receipt = tidings.record(record(asked)?).await?;
    let recorded = match wait {
        None => RecordedReceipt::of(tidings, receipt).await?,
        Some(at_most) => {
            tidings.await_fanout(receipt.id, at_most).await?;
            RecordedReceipt::read(tidings, receipt).await?
        }
    };
    context.style.result(|| text(&recorded), &recorded)?;
    Ok(match recorded.state {
        Some("poisoned") if wait.is_some() => Exit::NotAccepted,
        Some("waiting") if wait.is_some() => Exit::StillInFlight,
        _ => Exit::Done,
    })
}

fn record(asked: cli::Record) -> Result<Record, Problem> {
    let input =
        Input { flag: "data", given: asked.data.as_deref(), file: asked.data_file.as_deref() }.read()?;
    let data = input.ok_or_else(|| {
        let detail = "an event needs data: --data JSON, --data-file FILE, or --data - for stdin; \
                      `--data null` says that there is none";
        Problem::new(Sort::InvalidField, detail).field("data")
    })?;
    let occurred_at = asked.occurred_at.as_deref().map(instant::parse).transpose().map_err(|bad| {
        Problem::new(Sort::InvalidField, format!("--occurred-at: {bad}")).field("occurred_at")
    })?;
    let record = Record::json(asked.type_name, data)
        .subject(asked.subject.unwrap_or_default())
        .tenant(asked.tenant.unwrap_or_default());
    let record = asked.key.into_iter().fold(record, Record::key);
    Ok(occurred_at.into_iter().fold(record, Record::occurred_at))
}

fn text(recorded: &RecordedReceipt) -> String {
    let what = if recorded.existing { "is there already" } else { "recorded" };
    let state = recorded.state.map_or_else(|| "past its retention".to_owned(), |word| word.replace('_', " "));
    let mut text = format!("{} {what} ({state})", recorded.id);
    for job in recorded.jobs.iter().flatten() {
        text.push_str(&format!("\n  became {}", super::events::job_words(job)));
    }
    text.push_str(&format!("\nFollow it: tidings trace {}", recorded.id));
    text
}
