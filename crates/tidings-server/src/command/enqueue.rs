//! `tidings enqueue`.

use super::Context;
use super::input::Input;
use crate::accepted::Accepted;
use crate::cli::{Enqueue, HttpCallFlags};
use crate::exit::Exit;
use crate::instant;
use crate::print::shown;
use crate::problem::{Problem, Sort};
use serde::Serialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::time::Duration;
use tidings::core::job::{Priority, State, StateName};
use tidings::kind::http_call::{HttpCall, Method};
use tidings::{EnqueueOptions, Receipt, Tidings, Waited};

/// Enqueues, and waits if it is told to.
pub(crate) async fn run(context: &Context, tidings: &Tidings, enqueue: Enqueue) -> Result<Exit, Problem> {
    let wait = enqueue.wait.map(Duration::from_secs);
    let args = arguments(&enqueue)?;
    let options = options(&enqueue)?;
    let receipt = tidings.enqueue_json(&enqueue.kind, args, &options).await?;
    let accepted = Accepted::of(tidings, receipt).await?;
    match wait {
        None => {
            context.style.result(|| text(&accepted), &accepted)?;
            Ok(Exit::Done)
        }
        Some(at_most) => wait_for(context, tidings, receipt, at_most).await,
    }
}

fn text(accepted: &Accepted) -> String {
    let what = if accepted.existing { "is there already" } else { "enqueued" };
    let state = accepted.state.map_or("past its retention", StateName::as_str);
    format!("{} {what} ({state})\nFollow it: tidings trace {}", accepted.id, accepted.id)
}

/// What became of a job that was waited for.
#[derive(Serialize)]
struct Outcome {
    #[serde(flatten)]
    accepted: Accepted,
    settled: bool,
    held: bool,
}

async fn wait_for(
    context: &Context,
    tidings: &Tidings,
    receipt: Receipt,
    at_most: Duration,
) -> Result<Exit, Problem> {
    let waited = tidings.wait(receipt.id, at_most).await?;
    let (state, held, exit) = match &waited {
        Waited::Settled(job) => {
            let completed = matches!(job.state, State::Completed { .. });
            let exit = if completed { Exit::Done } else { Exit::NotAccepted };
            (Some(job.state.name()), job.state == State::Held, exit)
        }
        Waited::Receipt(_) => {
            let state = tidings.job(receipt.id).await?.map(|view| view.job.state.name());
            (state, false, Exit::StillInFlight)
        }
    };
    let settled = exit != Exit::StillInFlight;
    let accepted = Accepted { id: receipt.id.to_string(), state, existing: receipt.existing };
    let outcome = Outcome { accepted, settled, held };
    context.style.result(
        || {
            let state = state.map_or("gone", StateName::as_str);
            let held = if held { ", held for a person's decision" } else { "" };
            let more = if settled { String::new() } else { " still, after the wait".to_owned() };
            format!("{} is {state}{more}{held}\nFollow it: tidings trace {}", receipt.id, receipt.id)
        },
        &outcome,
    )?;
    Ok(exit)
}

fn usage(detail: impl Into<String>, field: &str) -> Problem {
    Problem::new(Sort::InvalidField, detail).field(field)
}

fn options(enqueue: &Enqueue) -> Result<EnqueueOptions, Problem> {
    let priority = enqueue
        .priority
        .map(|number| {
            Priority::try_from(number).map_err(|bad| usage(format!("--priority: {bad}"), "priority"))
        })
        .transpose()?;
    let run_at = enqueue
        .run_at
        .as_deref()
        .map(|written| instant::parse(written).map_err(|bad| usage(format!("--run-at: {bad}"), "run_at")))
        .transpose()?;
    Ok(EnqueueOptions {
        queue: enqueue.queue.clone(),
        priority,
        run_at,
        unique_key: enqueue.unique_key.clone(),
        tenant: enqueue.tenant.clone(),
        idempotency_key: enqueue.idempotency_key.clone(),
    })
}

/// The arguments as JSON text, with the bytes that were given.
fn arguments(enqueue: &Enqueue) -> Result<String, Problem> {
    if let Some(url) = &enqueue.http.url {
        if enqueue.kind != "http.call" {
            let detail =
                format!("--url belongs to the kind http.call, not to `{}`; use --args", shown(&enqueue.kind));
            return Err(usage(detail, "url"));
        }
        return http_call(url, &enqueue.http);
    }
    let given = Input { flag: "args", given: enqueue.args.as_deref(), file: enqueue.args_file.as_deref() };
    given.read()?.ok_or_else(|| {
        usage(
            "a job needs arguments: --args JSON, --args-file FILE, --args - for stdin, or --url for http.call",
            "args",
        )
    })
}

fn http_call(url: &str, flags: &HttpCallFlags) -> Result<String, Problem> {
    let call = HttpCall {
        url: url.to_owned(),
        method: flags.method.as_deref().map(method).transpose()?,
        headers: headers(&flags.headers)?,
        body: flags.body.as_deref().map(body).transpose()?,
        secret: flags.secret.clone(),
        idempotent: flags.idempotent,
    };
    serde_json::to_string(&call)
        .map_err(|error| Problem::new(Sort::Internal, format!("the call does not become JSON: {error}")))
}

fn method(written: &str) -> Result<Method, Problem> {
    serde_json::from_value(written.to_uppercase().into()).map_err(|_| {
        let detail = format!(
            "--method: `{}` cannot be; write GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS",
            shown(written)
        );
        usage(detail, "args.method")
    })
}

fn headers(written: &[String]) -> Result<BTreeMap<String, String>, Problem> {
    let mut headers = BTreeMap::new();
    for header in written {
        let (name, value) = header.split_once(':').ok_or_else(|| {
            // It may be a secret that somebody pasted: it is not repeated.
            usage("--header: write `name: value`, with a colon between", "args.headers")
        })?;
        if headers.insert(name.trim().to_owned(), value.trim().to_owned()).is_some() {
            let detail = format!("--header: `{}` is there twice; give it once", shown(name.trim()));
            return Err(usage(detail, "args.headers"));
        }
    }
    Ok(headers)
}

fn body(written: &str) -> Result<Box<RawValue>, Problem> {
    RawValue::from_string(written.to_owned())
        .map_err(|error| usage(format!("--body is not JSON ({error}); quote text: '\"text\"'"), "args.body"))
}
