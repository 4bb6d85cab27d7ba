//! `tidings listen`: a local receiver that prints what it gets.

use super::Context;
use crate::cli::Listen;
use crate::exit::Exit;
use crate::listener::{Failure, Heard, Plan, Reply, Request};
use crate::print::Style;
use crate::problem::{Problem, Sort};
use crate::{http_server, instant, print, stop};
use http_body_util::{BodyExt, Full, Limited};
use hyper::Response;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tidings::Time;
use tidings::core::sign::Secret;
use tokio::net::TcpListener;

/// Longest body that is read; the sender of longer ones is cut off.
const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The receiver, shared by its connections.
struct Receiver {
    style: Style,
    plan: Plan,
    secret: Option<Secret>,
    tally: Mutex<Tally>,
}

/// What was heard so far.
#[derive(Default)]
struct Tally {
    requests: u64,
    accepted: u64,
    times_by_id: BTreeMap<String, u64>,
}

/// Why a connection ends without an answer.
#[derive(Debug)]
struct BrokenOff;

impl std::fmt::Display for BrokenOff {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the connection is broken off on purpose, or its body was too long")
    }
}

impl std::error::Error for BrokenOff {}

/// Listens until it is stopped, then prints what it counted.
pub(crate) async fn run(context: &Context, listen: Listen) -> Result<Exit, Problem> {
    let secret = listen
        .secret
        .as_deref()
        .map(str::parse::<Secret>)
        .transpose()
        .map_err(|bad| Problem::new(Sort::InvalidField, format!("--secret: {bad}")).field("secret"))?;
    let plan = plan(&listen)?;
    let listener = TcpListener::bind(listen.addr).await.map_err(|error| cannot_listen(&listen, &error))?;
    let address = listener.local_addr().map_err(|error| cannot_listen(&listen, &error))?;
    let url = format!("http://{address}/");
    context.style.result(|| format!("Listening on {url} (Ctrl-C ends it)"), &json!({ "listening": url }))?;

    let receiver = Arc::new(Receiver { style: context.style, plan, secret, tally: Mutex::default() });
    let resets = receiver.plan.failure == Failure::Reset;
    let stopping = stop::requested()?;
    let hanging = stopping.clone();
    let serving = http_server::serve(
        listener,
        |stream, _| {
            if resets && let Err(problem) = stream.set_zero_linger() {
                tracing::warn!(%problem, "the connection will be closed instead of reset");
            }
            let (receiver, hanging) = (Arc::clone(&receiver), hanging.clone());
            service_fn(move |request| answer(Arc::clone(&receiver), request, hanging.clone()))
        },
        stop::wait(stopping),
    );
    serving.await;
    receiver.print_tally()?;
    Ok(Exit::Done)
}

fn cannot_listen(listen: &Listen, error: &std::io::Error) -> Problem {
    let detail = format!("cannot listen on {}: {error}; choose another with --addr", listen.addr);
    Problem::new(Sort::BadConfiguration, detail)
}

fn plan(listen: &Listen) -> Result<Plan, Problem> {
    if let Some(value) = &listen.retry_after
        && hyper::header::HeaderValue::from_str(value).is_err()
    {
        let detail = "--retry-after: this cannot stand in a header; write seconds or an HTTP date";
        return Err(Problem::new(Sort::InvalidField, detail).field("retry_after"));
    }
    let fails_all = listen.hang || listen.reset || listen.retry_after.is_some() || listen.status.is_some();
    let failure = if listen.hang {
        Failure::Hang
    } else if listen.reset {
        Failure::Reset
    } else {
        let usual = if listen.retry_after.is_some() { 429 } else { 503 };
        Failure::Status(listen.status.unwrap_or(usual), listen.retry_after.clone())
    };
    Ok(Plan { fail: listen.fail.or((!fails_all).then_some(0)), failure })
}

async fn answer(
    receiver: Arc<Receiver>,
    request: hyper::Request<Incoming>,
    stopping: tokio::sync::watch::Receiver<bool>,
) -> Result<Response<Full<Bytes>>, BrokenOff> {
    let request = read(request).await?;
    let reply = receiver.hear(&request);
    let failure = match reply {
        Reply::Accept => return Ok(Response::new(Full::from("accepted\n"))),
        Reply::Fail(failure) => failure,
    };
    match failure {
        Failure::Reset => Err(BrokenOff),
        Failure::Hang => {
            stop::wait(stopping).await;
            Err(BrokenOff)
        }
        Failure::Status(status, retry_after) => {
            let mut builder = Response::builder().status(status);
            if let Some(value) = retry_after {
                builder = builder.header("retry-after", value);
            }
            builder.body(Full::from("failed on purpose\n")).map_err(|_| BrokenOff)
        }
    }
}

/// Reads the whole request, so that what is printed is what was sent.
async fn read(request: hyper::Request<Incoming>) -> Result<Request, BrokenOff> {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, BODY_BYTES_MAX).collect().await.map_err(|_| BrokenOff)?;
    let text = |value: &hyper::header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    Ok(Request {
        method: head.method.to_string(),
        path: head.uri.to_string(),
        headers: head.headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect(),
        body: body.to_bytes().to_vec(),
    })
}

impl Receiver {
    /// Counts and prints a request; what is to be done with it.
    fn hear(&self, request: &Request) -> Reply {
        let now = jiff::Timestamp::now().as_millisecond();
        let signature = request.signature(self.secret.as_ref(), Time(now));
        let webhook_id = request.header("webhook-id").map(str::to_owned);
        // Printed while it is held, so that blocks stand in the order of their numbers.
        let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        tally.requests += 1;
        let number = tally.requests;
        let reply = self.plan.reply(number);
        tally.accepted += u64::from(reply == Reply::Accept);
        let times_heard = webhook_id.as_ref().map_or(1, |id| {
            let times = tally.times_by_id.entry(id.clone()).or_default();
            *times += 1;
            *times
        });
        let heard = Heard {
            number,
            at: instant::text(Time(now)),
            method: request.method.clone(),
            path: request.path.clone(),
            headers: request.headers.iter().cloned().collect(),
            body: String::from_utf8_lossy(&request.body).into_owned(),
            body_bytes: request.body.len(),
            signature,
            webhook_id,
            times_heard,
            reply: reply.words(),
        };
        if let Err(problem) = self.style.result(|| heard.text(), &heard) {
            tracing::warn!(%problem, "a request could not be printed");
        }
        reply
    }

    fn print_tally(&self) -> Result<(), Problem> {
        let tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        let (requests, accepted, ids) = (tally.requests, tally.accepted, tally.times_by_id.len());
        let repeated = tally.times_by_id.values().filter(|times| **times > 1).count();
        let document = json!({
            "requests": requests,
            "accepted": accepted,
            "failed": requests - accepted,
            "webhook_ids": ids,
            "webhook_ids_repeated": repeated,
        });
        match self.style {
            Style::Text => print::line(&format!(
                "{requests} requests, {accepted} accepted, {} failed on purpose; {ids} webhook-ids, {repeated} of them more than once",
                requests - accepted
            )),
            Style::Json => self.style.result(String::new, &document),
        }
    }
}
