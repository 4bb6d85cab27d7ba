//! How workers end: gracefully, past the grace, and as in a crash.

use crate::fixture::*;
use std::sync::Arc;
use std::time::Duration;
use tidings::core::outcome::{AttemptOutcome, Effect, FailureKind};
use tidings::sink::http::{HttpRequest, HttpSink, HttpSinkConfig, Resolve};
use tidings::{Attempt, Millis, Outcome, Settings, Tidings};

on_both_stores![
    a_stop_lets_what_runs_come_to_its_end_and_takes_nothing_more,
    what_runs_past_the_grace_is_stopped_and_recorded_for_what_it_is,
    a_stop_at_any_moment_leaves_each_job_done_or_untouched,
    workers_that_are_dropped_end_as_in_a_crash,
];

/// CW10: it drains.
async fn a_stop_lets_what_runs_come_to_its_end_and_takes_nothing_more(db: Database) {
    let gate = Gate::default();
    let builder = Tidings::builder().kind::<Note, _, _, _>(gate.clone(), wait_at_gate).workers("default", 1);
    let tidings = db.open(builder).await;
    let workers = tidings.work().await.unwrap();
    let running = tidings.enqueue(Note::new("a")).await.unwrap().id;
    gate.begun().await;
    let waiting = tidings.enqueue(Note::new("b")).await.unwrap().id;
    let opens = async { gate.open() };
    soon("the workers stop", futures_util::future::join(workers.stop(), opens)).await;
    assert_eq!(state(&tidings, running).await, "completed");
    let left = job(&tidings, waiting).await;
    assert_eq!((left.state.name().as_str(), left.counters.claims), ("pending", 0));
}

/// Waits for a name that never resolves: not a byte of the request has left.
struct NeverResolves(Gate);

#[async_trait::async_trait]
impl Resolve for NeverResolves {
    async fn resolve(&self, _host: &str, _port: u16) -> std::io::Result<Vec<std::net::SocketAddr>> {
        self.0.begin();
        std::future::pending().await
    }
}

async fn send(sink: HttpSink, attempt: Attempt<Letter>) -> Outcome {
    let request = HttpRequest {
        method: http::Method::POST,
        url: "https://hooks.acme.com/".into(),
        headers: Vec::new(),
        body: bytes::Bytes::new(),
    };
    let sent = sink.send(request, attempt.started_at, &attempt.trail).await;
    Outcome::discard(format!("{:?}", sent.ending))
}

/// CW10: what may have happened is unknown; what provably never left is a plain failure.
async fn what_runs_past_the_grace_is_stopped_and_recorded_for_what_it_is(db: Database) {
    let (gate, resolving) = (Gate::default(), Gate::default());
    let resolver = Arc::new(NeverResolves(resolving.clone()));
    let sink = HttpSink::new(HttpSinkConfig { resolver, ..HttpSinkConfig::default() }).unwrap();
    let builder = Tidings::builder()
        .settings(Settings { stop_grace: Duration::ZERO, ..Settings::default() })
        .kind::<Note, _, _, _>(gate.clone(), wait_at_gate)
        .kind(sink, send);
    let tidings = db.open(builder).await;
    let workers = tidings.work().await.unwrap();
    let unknown = tidings.enqueue(Note::new("a")).await.unwrap().id;
    let unsent = tidings.enqueue(Letter::new("a")).await.unwrap().id;
    gate.begun().await;
    resolving.begun().await;
    soon("the workers stop", workers.stop()).await;
    gate.dropped().await;
    for (id, outcome, effect) in [
        (unknown, AttemptOutcome::Unknown, Effect::Possible),
        (unsent, AttemptOutcome::RetryableFailure, Effect::None),
    ] {
        let end = last_end(&tidings, id).await;
        assert_eq!((end.outcome, end.evidence.effect), (outcome, effect));
        assert_eq!(end.evidence.failure_kind, Some(FailureKind::Stopped));
        assert_eq!(end.reason, "the process was stopped before the handler had finished");
        assert!(job(&tidings, id).await.state.due_at().is_some(), "it goes on in the next process");
    }
    assert!(last_end(&tidings, unsent).await.evidence.http.is_some(), "how far it got");
}

async fn a_stop_at_any_moment_leaves_each_job_done_or_untouched(db: Database) {
    let script = Script::accepting();
    let tidings = db.open(Tidings::builder().kind::<Note, _, _, _>(script.clone(), play)).await;
    let mut ids = Vec::new();
    for n in 0..15 {
        let receipts = tidings.enqueue_all((0..20).map(|m| Note::new(&format!("{n}.{m}")))).await.unwrap();
        ids.extend(receipts.iter().map(|receipt| receipt.id));
        let workers = tidings.work().await.unwrap();
        for _ in 0..n {
            tokio::task::yield_now().await;
        }
        soon("the workers stop", workers.stop()).await;
        for id in &ids {
            let view = view(&tidings, *id).await;
            let (state, attempts) = (view.job.state.name().as_str(), view.job.counters.attempts);
            assert!(matches!((state, attempts), ("completed", 1) | ("pending", 0)), "{view:?}");
        }
    }
    let workers = tidings.work().await.unwrap();
    for id in &ids {
        settled(&tidings, *id).await;
    }
    workers.stop().await;
    let mut came = script.jobs();
    came.sort();
    assert_eq!(came, ids, "each once");
}

async fn workers_that_are_dropped_end_as_in_a_crash(db: Database) {
    let gate = Gate::default();
    let tidings = db.held(Tidings::builder().kind::<Note, _, _, _>(gate.clone(), wait_at_gate)).await;
    let workers = tidings.work().await.unwrap();
    let id = tidings.enqueue(Note::new("a")).await.unwrap().id;
    gate.begun().await;
    drop(workers);
    gate.dropped().await;
    assert_eq!(state(&tidings, id).await, "running", "nobody is left to say what became of it");
    tidings.clock.advance(Millis::from_seconds(45));
    assert_eq!(tidings::testing::sweep(&tidings).await.unwrap(), 1);
    assert_eq!(state(&tidings, id).await, "unknown");
}
