//! The kind `http.call`: requests on the wire against attempts recorded, signatures that
//! others verify, Retry-After, unknown outcomes, and what is kept of secrets: nothing.

use crate::fixture::*;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use testkit::receiver::{Received, Receiver, Step, unused_port};
use tidings::core::guard::GuardRules;
use tidings::core::outcome::{AttemptOutcome, Effect, FailureKind, SnoozeSource};
use tidings::core::policy::{JitterData, PolicyData};
use tidings::core::sign::{self, Secret, SignedHeaders};
use tidings::sink::http::{HttpSink, HttpSinkConfig};
use tidings::{Builder, EnqueueOptions, JobId, Millis, Tidings, Time};

on_both_stores![
    an_attempt_is_one_request_on_the_wire,
    a_signed_request_has_the_same_id_and_a_fresh_timestamp_at_every_attempt,
    the_body_is_sent_as_the_bytes_that_were_given,
    the_later_of_retry_after_and_the_policy_is_waited_under_the_cap,
    a_retry_after_that_asks_for_nothing_leaves_the_backoff_growing,
    a_retry_after_that_is_not_valid_leaves_the_policys_delay,
    an_unknown_outcome_is_retried_only_where_the_receiver_can_tell_a_repeat,
    a_target_that_the_guard_refuses_is_discarded_without_a_connection,
    a_policy_may_retry_further_statuses,
];

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// Everything is reachable, and may take its time.
fn sink() -> HttpSink {
    let guard = GuardRules { allow_private: true, allow_http: true, ..GuardRules::default() };
    HttpSink::new(HttpSinkConfig { guard, ..HttpSinkConfig::default() }).unwrap()
}

fn calls() -> Builder {
    Tidings::builder().http_calls(sink())
}

/// A policy whose first delay is 5 s, and then doubles, without jitter.
fn five_seconds() -> PolicyData {
    let backoff =
        tidings::core::policy::BackoffData::Exponential { first_ms: 5_000, factor: 2.0, cap_ms: 900_000 };
    PolicyData {
        backoff: Some(backoff),
        attempts: Some(25),
        jitter: Some(JitterData::None),
        ..PolicyData::default()
    }
}

async fn enqueue(tidings: &Tidings, args: String) -> JobId {
    tidings.enqueue_json("http.call", args, &EnqueueOptions::default()).await.unwrap().id
}

async fn an_attempt_is_one_request_on_the_wire(db: Database) {
    let receiver = Receiver::start([Step::status(503), Step::status(503), Step::status(200)]).await;
    let tidings = db.held(calls()).await;
    let id =
        enqueue(&tidings, format!(r#"{{"url": "{}", "body": {{"a": 1}}}}"#, receiver.url("/hook"))).await;
    while job(&tidings, id).await.state.due_at().is_some() {
        tidings.drain_when_due(id).await;
    }
    let attempts = view(&tidings, id).await.attempts;
    assert_eq!((receiver.requests().len(), receiver.connections(), attempts.len()), (3, 3, 3));
    let ends: Vec<_> = attempts
        .iter()
        .map(|attempt| {
            let end = attempt.end.as_ref().unwrap();
            (end.outcome, end.evidence.http.as_ref().unwrap().status.unwrap())
        })
        .collect();
    use AttemptOutcome::{Accepted, RetryableFailure};
    assert_eq!(ends, [(RetryableFailure, 503), (RetryableFailure, 503), (Accepted, 200)]);
    let first = &receiver.requests()[0];
    assert_eq!((&*first.method, &*first.path, &*first.body), ("POST", "/hook", &br#"{"a": 1}"#[..]));
    assert_eq!(first.header("content-type"), Some("application/json"));
}

fn signed_headers(request: &Received) -> SignedHeaders {
    let header = |name| request.header(name).unwrap().to_owned();
    SignedHeaders {
        id: header("webhook-id"),
        timestamp: header("webhook-timestamp"),
        signature: header("webhook-signature"),
    }
}

fn verify(request: &Received, now: Time) -> Result<(), sign::VerifyError> {
    let secret: Secret = SECRET.parse().unwrap();
    sign::verify(&[secret], &signed_headers(request), &request.body, now, Millis::from_minutes(5))
}

/// SG2: after 6 minutes, after 3 hours, and by hand after 5 days.
async fn a_signed_request_has_the_same_id_and_a_fresh_timestamp_at_every_attempt(db: Database) {
    let receiver =
        Receiver::start([Step::status(503), Step::status(503), Step::status(410), Step::status(200)]).await;
    let tidings = db.held(calls()).await;
    let args = format!(r#"{{"url": "{}", "body": "hi", "secret": "{SECRET}"}}"#, receiver.url("/"));
    let id = enqueue(&tidings, args).await;
    let mut sent_at = Vec::new();
    for after in [Millis(0), Millis::from_minutes(6), Millis::from_hours(3), Millis::from_days(5)] {
        tidings.clock.advance(after);
        if job(&tidings, id).await.state.due_at().is_none() {
            tidings.retry(id, &act("the address is right now")).await.unwrap();
        }
        assert_eq!(tidings.drain().await, 1);
        sent_at.push(tidings.now());
    }
    let requests = receiver.requests();
    assert_eq!((requests.len(), state(&tidings, id).await), (4, "completed"));
    for (request, at) in requests.iter().zip(&sent_at) {
        assert_eq!(request.header("webhook-id"), Some(&*id.to_string()));
        assert_eq!(request.header("webhook-timestamp"), Some(&*(at.0 / 1_000).to_string()));
        assert_eq!(verify(request, *at), Ok(()));
        assert_eq!(request.body, requests[0].body);
    }
    assert_eq!(
        verify(&requests[0], sent_at[1]),
        Err(sign::VerifyError::TooOld),
        "the first one would be stale"
    );
    let forged = Received { body: b"\"ho\"".to_vec(), ..requests[3].clone() };
    assert_eq!(verify(&forged, sent_at[3]), Err(sign::VerifyError::Mismatch));
}

/// PE5, SG1: numbers, spaces, escapes and repeated keys stay as they are.
async fn the_body_is_sent_as_the_bytes_that_were_given(db: Database) {
    let receiver = Receiver::start([Step::status(200)]).await;
    let tidings = db.held(calls()).await;
    let bodies = [
        r#"{"id":9223372036854775807,"other":1152921506151679042,"e":0.1e1,"f":1.0}"#,
        r#"{ "b" : 1,"a":"\u00e9 é \ud83d\ude00 \u0000","c":[1 ,2],"b":2 }"#,
        "[]",
        "null",
        r#""text""#,
        "1E+2",
    ];
    for (sent, body) in bodies.iter().enumerate() {
        let url = receiver.url("/");
        enqueue(&tidings, format!(r#"{{"url": "{url}", "secret": "{SECRET}", "body": {body} }}"#)).await;
        tidings.drain().await;
        let request = &receiver.requests()[sent];
        assert_eq!(String::from_utf8_lossy(&request.body), *body);
        assert_eq!(verify(request, tidings.now()), Ok(()));
    }
}

/// RT1, RT2: counted from the answer, the later of the two, cut at ten hours; and the
/// evidence says what was asked for and what was done.
async fn the_later_of_retry_after_and_the_policy_is_waited_under_the_cap(db: Database) {
    let in_two_minutes = "Mon, 30 Nov 2026 12:08:10 GMT";
    let table = [
        (429, "120", 120_000, Some(120_000), false),
        (503, "120", 120_000, Some(120_000), false),
        (503, "86400", 36_000_000, Some(86_400_000), true),
        (429, "2", 5_000, Some(2_000), false),
    ];
    let steps = table.map(|(status, field, ..)| Step::status(status).header("Retry-After", field));
    let receiver = Receiver::start(steps.into_iter().chain([Step::status(200)])).await;
    let tidings = db.held(calls().policy("http.call", five_seconds().check("five").unwrap())).await;
    let id = enqueue(&tidings, format!(r#"{{"url": "{}"}}"#, receiver.url("/"))).await;
    for (attempts, (_, field, waited, asked, capped)) in (1..).zip(table) {
        tidings.drain_when_due(id).await;
        let end = last_end(&tidings, id).await;
        assert!(matches!(
            end.next,
            tidings::core::fact::Next::Snoozed { source: SnoozeSource::RetryAfter, .. }
        ));
        let delay = end.delay_ms.unwrap();
        // The hand-held clock stood still while the exchange took its milliseconds.
        assert!((waited..waited + 5_000).contains(&delay), "{field}: {delay}");
        let due_at = job(&tidings, id).await.state.due_at().unwrap();
        assert_eq!(due_at, tidings.now() + Millis(delay), "not before, counted from the answer");
        let kept = end.evidence.http.unwrap().retry_after.unwrap();
        assert_eq!((&*kept.raw, kept.asked_ms, kept.used_ms), (field, asked, Some(delay)));
        assert_eq!((kept.capped, receiver.requests().len()), (capped, attempts));
        tidings.clock.set(due_at - Millis(1));
        assert_eq!(tidings.drain().await, 0, "no request in the cooldown");
    }
    tidings.drain_when_due(id).await;
    let job = job(&tidings, id).await;
    assert_eq!((job.state.name().as_str(), job.counters.attempts, job.counters.snoozes), ("completed", 1, 4));

    let step = Step::status(503).header("Retry-After", in_two_minutes);
    let receiver = Receiver::start([step]).await;
    let tidings = db.held(calls()).await;
    tidings.clock.set(NOW + Millis::from_seconds(370));
    let id = enqueue(&tidings, format!(r#"{{"url": "{}"}}"#, receiver.url("/"))).await;
    tidings.drain().await;
    let delay = last_end(&tidings, id).await.delay_ms.unwrap();
    assert!((115_000..125_000).contains(&delay), "a date two minutes ahead: {delay}");
}

/// RT4: twenty times zero, and a date that has passed.
async fn a_retry_after_that_asks_for_nothing_leaves_the_backoff_growing(db: Database) {
    for field in ["0", "Mon, 30 Nov 2026 11:59:50 GMT"] {
        let receiver = Receiver::start([Step::status(429).header("Retry-After", field)]).await;
        let tidings = db.held(calls().policy("http.call", five_seconds().check("five").unwrap())).await;
        let id = enqueue(&tidings, format!(r#"{{"url": "{}"}}"#, receiver.url("/"))).await;
        let mut waits = Vec::new();
        for _ in 0..20 {
            tidings.drain_when_due(id).await;
            let end = last_end(&tidings, id).await;
            waits.push(end.delay_ms.unwrap() / 1_000);
            let kept = end.evidence.http.unwrap().retry_after.unwrap();
            assert_eq!((kept.asked_ms, kept.used_ms), (Some(0), None));
            assert!(!kept.note.is_empty());
        }
        let doubling = [5, 10, 20, 40, 80, 160, 320, 640, 900];
        assert_eq!((&waits[..9], &waits[9..]), (&doubling[..], &[900; 11][..]), "{field}");
        assert_eq!((receiver.requests().len(), job(&tidings, id).await.counters.attempts), (20, 20));
        tidings.cancel(id, &act("")).await.unwrap();
    }
}

/// RT2, RT5.
async fn a_retry_after_that_is_not_valid_leaves_the_policys_delay(db: Database) {
    let fields = ["-43", "+5", "5.5", "5, 10", "soon", ""];
    let mut steps: Vec<_> =
        fields.iter().map(|field| Step::status(429).header("Retry-After", field)).collect();
    steps.push(Step::status(503).header("Retry-After", "5").header("Retry-After", "500"));
    let receiver = Receiver::start(steps).await;
    let tidings = db.held(calls().policy("http.call", five_seconds().check("five").unwrap())).await;
    let id = enqueue(&tidings, format!(r#"{{"url": "{}"}}"#, receiver.url("/"))).await;
    for attempt in 0..=fields.len() {
        tidings.drain_when_due(id).await;
        let end = last_end(&tidings, id).await;
        assert_eq!(end.outcome, AttemptOutcome::RetryableFailure, "{:?}", fields.get(attempt));
        assert_eq!(end.delay_ms, Some(5_000 << attempt));
        let kept = end.evidence.http.unwrap().retry_after.unwrap();
        assert!(kept.used_ms.is_none() && !kept.note.is_empty(), "{kept:?}");
    }
}

/// DU17: the receiver read all of it and closed. One request an attempt, no hidden second one.
async fn an_unknown_outcome_is_retried_only_where_the_receiver_can_tell_a_repeat(db: Database) {
    let marks =
        [("", false), (r#", "idempotent": true"#, true), (&*format!(r#", "secret": "{SECRET}""#), true)];
    for (mark, retried) in marks {
        let receiver = Receiver::start([Step::close_without_answer(), Step::status(200)]).await;
        let tidings = db.held(calls()).await;
        let id = enqueue(&tidings, format!(r#"{{"url": "{}", "body": 1{mark}}}"#, receiver.url("/"))).await;
        tidings.drain().await;
        let end = last_end(&tidings, id).await;
        assert_eq!((end.outcome, end.evidence.effect), (AttemptOutcome::Unknown, Effect::Possible));
        assert_eq!(end.evidence.failure_kind, Some(FailureKind::ConnectionLost));
        assert_eq!((state(&tidings, id).await, receiver.requests().len()), ("unknown", 1));
        assert_eq!(job(&tidings, id).await.state.due_at().is_some(), retried, "{mark}");
        if retried {
            tidings.drain_when_due(id).await;
            let requests = receiver.requests();
            assert_eq!((state(&tidings, id).await, requests.len()), ("completed", 2));
            assert_eq!(requests[0].header("webhook-id"), requests[1].header("webhook-id"));
        }
    }
}

async fn a_target_that_the_guard_refuses_is_discarded_without_a_connection(db: Database) {
    let receiver = Receiver::start([Step::status(200)]).await;
    let careful = HttpSink::new(HttpSinkConfig::default()).unwrap();
    let tidings = db.held(Tidings::builder().http_calls(careful)).await;
    let addresses =
        [receiver.url("/"), receiver.url("/").replace("http", "https"), "https://10.0.0.1/".into()];
    for url in addresses {
        let id = enqueue(&tidings, format!(r#"{{"url": "{url}", "idempotent": true}}"#)).await;
        assert_eq!(tidings.drain().await, 1);
        let end = last_end(&tidings, id).await;
        assert_eq!(
            (end.outcome, end.evidence.effect),
            (AttemptOutcome::PermanentFailure, Effect::None),
            "{url}"
        );
        assert_eq!(end.evidence.failure_kind, Some(FailureKind::DestinationBlocked));
        assert_eq!(state(&tidings, id).await, "discarded");
    }
    assert_eq!(receiver.connections(), 0);
}

async fn a_policy_may_retry_further_statuses(db: Database) {
    let receiver = Receiver::start([Step::status(404), Step::status(200)]).await;
    let data = PolicyData { retryable_statuses: Some(vec![404]), ..PolicyData::default() };
    for (builder, expected) in
        [(calls().policy("http.call", data.check("forgiving").unwrap()), "retryable"), (calls(), "completed")]
    {
        let tidings = db.held(builder).await;
        let id = enqueue(&tidings, format!(r#"{{"url": "{}"}}"#, receiver.url("/"))).await;
        tidings.drain().await;
        assert_eq!(state(&tidings, id).await, expected);
        tidings.cancel(id, &act("")).await.ok();
    }
    let receiver = Receiver::start([Step::status(404)]).await;
    let tidings = db.held(calls()).await;
    let id = enqueue(&tidings, format!(r#"{{"url": "{}"}}"#, receiver.url("/"))).await;
    tidings.drain().await;
    assert_eq!(state(&tidings, id).await, "discarded", "404 is final where no policy says otherwise");
}

/// Other people's libraries accept what was on the wire, and refuse it when a byte is changed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn independent_verifiers_accept_the_signature() {
    let receiver = Receiver::start([Step::status(200)]).await;
    let tidings = Database::sqlite();
    let opened = tidings.open(calls()).await;
    let body = r#"{"b": 1.0, "a": "é \u0000", "id": 9223372036854775807}"#;
    let args = format!(r#"{{"url": "{}", "secret": "{SECRET}", "body": {body}}}"#, receiver.url("/"));
    enqueue(&opened, args).await;
    assert_eq!(tidings::testing::drain(&opened).await.unwrap(), 1);
    let request = receiver.requests().remove(0);
    let found = testkit::foreign::Foreign::from_environment(testkit::foreign::VERIFIERS_VARIABLE);
    let python = found.python.map(|interpreter| {
        let script = "import sys, json; from standardwebhooks.webhooks import Webhook; \
                      r = json.load(sys.stdin); Webhook(r['secret']).verify(r['body'], r['headers'])";
        let mut command = tokio::process::Command::new(interpreter);
        command.args(["-c", script]);
        command
    });
    let node = found.node.map(|folder| {
        let script = "const { Webhook } = require('standardwebhooks'); \
                      const r = JSON.parse(require('fs').readFileSync(0, 'utf8')); \
                      new Webhook(r.secret).verify(r.body, r.headers);";
        let mut command = tokio::process::Command::new("node");
        command.args(["-e", script]).current_dir(folder);
        command
    });
    for (name, command) in [("Python", python), ("Node", node)] {
        match command {
            Ok(mut command) => {
                assert!(judged(&mut command, &request, body).await, "{name}: it is the body that was given");
                let changed = body.replace("1.0", "1.1");
                assert!(!judged(&mut command, &request, &changed).await, "{name}: another body");
            }
            Err(reason) => eprintln!("skipped: the verifier of {name} is not there: {reason}"),
        }
    }
}

/// Whether a verifier accepts this body with the headers of the request.
async fn judged(command: &mut tokio::process::Command, request: &Received, body: &str) -> bool {
    use tokio::io::AsyncWriteExt;
    let signed = signed_headers(request);
    let input = serde_json::json!({
        "secret": SECRET,
        "body": body,
        "headers": {
            "webhook-id": signed.id,
            "webhook-timestamp": signed.timestamp,
            "webhook-signature": signed.signature,
        },
    });
    let piped = std::process::Stdio::piped;
    let mut child = command.stdin(piped()).stdout(piped()).stderr(piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.to_string().as_bytes()).await.unwrap();
    let output = soon("the verifier answers", child.wait_with_output()).await.unwrap();
    output.status.success()
}

/// Collects every word of every trace.
#[derive(Clone, Default)]
struct Traces(Arc<Mutex<String>>);

impl tracing::field::Visit for Traces {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        use std::fmt::Write;
        writeln!(self.0.lock().unwrap(), "{field}: {value:?}").unwrap();
    }
}

impl tracing::Subscriber for Traces {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, span: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        span.record(&mut self.clone());
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, values: &tracing::span::Record<'_>) {
        values.record(&mut self.clone());
    }
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut self.clone());
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

/// OB1, as far as the job layer goes. One thread, so that its traces are all seen.
#[tokio::test]
async fn secrets_and_queries_are_in_no_fact_and_no_trace_and_not_in_shown_arguments() {
    let traces = Traces::default();
    let _guard = tracing::subscriber::set_default(traces.clone());
    let echo = Step::answer_with(|request| {
        let headers = request
            .headers
            .iter()
            .map(|(name, value)| format!("{name}: {}\n", String::from_utf8_lossy(value)));
        Step::status(503).body(headers.collect::<String>())
    });
    let receiver = Receiver::start([echo]).await;
    let refused = format!("http://127.0.0.1:{}", unused_port());
    let nobody_listens = format!("http://[::1]:{}", unused_port());
    let targets = [receiver.url(""), refused, "http://nobody.invalid".into(), nobody_listens];
    let db = Database::sqlite();
    let tidings = db.held(calls()).await;
    for target in targets {
        let args = format!(
            r#"{{"url": "{target}/hook?token=QUERY-s3cr3t", "secret": "{SECRET}",
                "headers": {{"authorization": "Bearer HEADER-s3cr3t"}}}}"#
        );
        let id = enqueue(&tidings, args.clone()).await;
        tidings.drain().await;
        let facts = tidings.store().history(&[id]).await.unwrap();
        let kept = format!("{facts:?} {:?}", view(&tidings, id).await.attempts);
        let shown = tidings.registry().shown_args("http.call", &args).unwrap();
        for text in [&kept, &shown, &*traces.0.lock().unwrap()] {
            for secret in ["s3cr3t", "MfKQ9r8G"] {
                assert!(!text.contains(secret), "{secret} of {target} in {text}");
            }
        }
        assert!(
            shown.contains("/hook?[REDACTED]") && shown.contains("\"authorization\":\"[REDACTED]\""),
            "{shown}"
        );
    }
    // What an older program may have stored, and does not decode: not shown at all.
    assert_eq!(tidings.registry().shown_args("http.call", r#"{"secret": "whsec_s3cr3t"}"#), None);
}

/// A call whose body is another program's text goes through the typed door as well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_may_be_enqueued_as_a_value() {
    let receiver = Receiver::start([Step::status(200)]).await;
    let tidings = Database::sqlite();
    let held = tidings.held(calls()).await;
    let call: tidings::kind::http_call::HttpCall = serde_json::from_str(&format!(
        r#"{{"url": "{}", "method": "PUT", "body": [1.0]}}"#,
        receiver.url("/")
    ))
    .unwrap();
    let id = held.enqueue(call).await.unwrap().id;
    held.drain().await;
    let request = receiver.wait_for(1).await.remove(0);
    assert_eq!((&*request.method, &*request.body), ("PUT", &b"[1.0]"[..]));
    assert!(matches!(held.wait(id, Duration::ZERO).await.unwrap(), tidings::Waited::Settled(_)));
}
