//! Events whose fan-out fails, and servers that die between a recording and its fan-out.

use crate::fixture::{Application, PATIENCE, Place, Server, Tool, try_request};
use crate::on_both_databases;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tidings::clock::{Clock, HandClock};
use tidings::core::route::Subscription;
use tidings::store::{self, JobFilter, OpenOptions};
use tidings::{Millis, Tidings, testing};

on_both_databases! {
    an_event_whose_jobs_nobody_carries_out_says_so_and_goes_on_when_somebody_does,
    an_event_that_is_set_aside_is_put_back_by_hand,
    every_acknowledged_event_of_a_killed_server_is_fanned_out_exactly_once,
    the_configuration_declares_types_and_subscriptions_at_the_start,
}

/// As a program that carried the kind out once has left it: nobody checks it any more.
async fn subscribe_to_nobody(tidings: &Tidings) {
    let lost = Subscription::to_job("lost", "note.*", "search.index").unwrap();
    tidings.store().keep_subscriptions(&[lost]).await.unwrap();
}

async fn an_event_whose_jobs_nobody_carries_out_says_so_and_goes_on_when_somebody_does(place: &Place) {
    let server = place.serve(&[]).await;
    server.declare("note.changed").await;
    server.declare("other.thing").await;
    subscribe_to_nobody(&Tidings::builder().open(place.database()).await.unwrap()).await;
    let id = server.record(r#"{"type":"note.changed","data":1}"#).await;
    let path = format!("/v1/events/{id}");
    let failed = |event: &Value| event["failures"].as_u64() > Some(0);
    let event = server.until_at(&path, "its fan-out failed", PATIENCE, failed).await;
    assert_eq!((&event["state"], &event["settled_at"]), (&json!("waiting"), &Value::Null));
    assert!(event["reason"].as_str().unwrap().contains("no program carries out"), "{event}");
    let decision = &event["subscriptions"][0];
    assert_eq!(decision["decision"], "to_become");
    assert!(decision["problem"].as_str().unwrap().contains("`search.index`, which no program"), "{decision}");
    assert!(event["verdict"]["text"].as_str().unwrap().contains("It is tried again at"), "{event}");
    let shown = place.tidings(&["events", "show", &id]).await.done();
    assert!(shown.contains("cannot become jobs") && shown.contains("no program carries out"), "{shown}");

    // It blocks no other.
    let other = server.post("/v1/events?wait=20", r#"{"type":"other.thing","data":1}"#).await.json();
    assert_eq!(other["state"], "fanned_out");
    let backlog = server.get("/v1/backlog").await.json();
    assert_eq!((&backlog["waiting"], &backlog["poisoned"]), (&json!(1), &json!(0)));
    assert!(backlog["oldest_age_ms"].is_u64(), "{backlog}");

    let _application = Application::start(place).await;
    let done = |event: &Value| event["subscriptions"][0]["jobs"][0]["state"] == "completed";
    let event = server.until_at(&path, "its job is done", PATIENCE * 2, done).await;
    assert_eq!(event["state"], "fanned_out");
    server.stop().await;
}

async fn an_event_that_is_set_aside_is_put_back_by_hand(place: &Place) {
    place.tidings(&["migrate"]).await.done();
    place.tidings(&["event-types", "declare", "note.changed"]).await.done();
    let recorded = place.tidings(&["record", "note.changed", "--data", "1", "--json"]).await.json();
    let id = recorded["id"].as_str().unwrap();
    // Ten failures of a relay take minutes: this one has a clock that the test turns.
    let store = store::open(place.database(), &OpenOptions::default()).await.unwrap();
    let clock = Arc::new(HandClock::at(store.now().await.unwrap() + Millis::from_seconds(1)));
    let hand_held: Arc<dyn Clock> = Arc::<HandClock>::clone(&clock);
    let tidings = Tidings::builder().on(store, hand_held).unwrap();
    subscribe_to_nobody(&tidings).await;
    for _failure in 0..10 {
        assert_eq!(testing::relay(&tidings).await.unwrap(), 0);
        clock.advance(Millis::from_minutes(2));
    }

    let server = place.serve(&[]).await;
    let listed = server.get("/v1/events?state=poisoned").await.json();
    assert_eq!((&listed["events"][0]["id"], &listed["events"][0]["due_at"]), (&json!(id), &Value::Null));
    let event = server.get(&format!("/v1/events/{id}")).await.json();
    assert!(event["reason"].as_str().unwrap().contains("no program carries out"), "{event}");
    let advice = format!("tidings events requeue {id}");
    assert!(event["verdict"]["text"].as_str().unwrap().contains(&advice), "{event}");
    assert_eq!(server.get("/v1/backlog").await.json()["poisoned"], 1);
    let incidents = server.get("/v1/incidents").await.json();
    assert_eq!(incidents, place.tidings(&["incidents", "list", "--json"]).await.json());
    let incident = &incidents["incidents"][0];
    assert_eq!((&incident["source"], &incident["subject"]), (&json!("event"), &json!(id)));
    assert!(incident["id"].as_str().unwrap().starts_with("inc_") && incident["closed_at"].is_null());
    let waited = place.tidings(&["events", "show", id]).await.done();
    assert!(waited.contains("Set aside: ") && waited.contains(&advice), "{waited}");

    // The cause is mended: somebody carries the kind out.
    let _application = Application::start(place).await;
    let back = place.tidings(&["events", "requeue", id, "--json"]).await.json();
    assert!(back["state"] == "waiting" || back["state"] == "fanned_out", "{back}");
    let event = server.get(&format!("/v1/events/{id}?wait=20")).await.json();
    assert_eq!(event["state"], "fanned_out");
    let job = event["subscriptions"][0]["jobs"][0]["id"].as_str().unwrap();
    assert_eq!(server.settled(job).await["state"], "completed");
    assert_eq!(server.get("/v1/incidents").await.json()["incidents"], json!([]));
    let closed = server.get("/v1/incidents?state=all").await.json();
    assert!(closed["incidents"][0]["closed_at"].is_string(), "{closed}");
    let again = server.post(&format!("/v1/events/{id}/requeue"), "").await.problem(409, "state-conflict");
    assert_eq!(again["refusal"], "not_poisoned");
    assert_eq!(place.tidings(&["events", "requeue", id]).await.code, 4);
    server.stop().await;
}

const SENDERS: usize = 6;
const ANSWERS_BEFORE_THE_KILL: usize = 120;

async fn every_acknowledged_event_of_a_killed_server_is_fanned_out_exactly_once(place: &Place) {
    let mut server = place.serve(&[]).await;
    let key = server.key.clone();
    // Nobody takes the jobs, so that they can be counted.
    let tidings = Application::start(place).await.stop().await;
    server.declare("note.changed").await;
    server.subscribe("search", "note.*", "search.index").await;

    let (acknowledged, count) = (Arc::new(Mutex::new(BTreeSet::new())), Arc::new(AtomicUsize::new(0)));
    let senders: Vec<_> = (0..SENDERS)
        .map(|_| {
            let (address, key) = (server.address().to_owned(), key.clone());
            let (acknowledged, count) = (Arc::clone(&acknowledged), Arc::clone(&count));
            tokio::spawn(async move {
                while let Some(id) = record(&address, &key).await {
                    acknowledged.lock().unwrap().insert(id);
                    count.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    while count.load(Ordering::Relaxed) < ANSWERS_BEFORE_THE_KILL {
        tokio::task::yield_now().await;
    }
    server.signal("-KILL").await;
    server.ended().await;
    for sender in senders {
        sender.await.unwrap();
    }

    // One more while there is no server at all.
    let words = ["record", "note.changed", "--data", "1", "--wait", "0", "--json"];
    let between = place.tidings(&words).await;
    assert_eq!(between.code, 6, "{between:?}");
    let between = between.json();
    assert_eq!((&between["state"], &between["jobs"]), (&json!("waiting"), &Value::Null));
    let mut acknowledged = acknowledged.lock().unwrap().clone();
    acknowledged.insert(between["id"].as_str().unwrap().to_owned());

    let mut server = place.serve(&[]).await;
    server.key = key;
    fanned_out(&server).await;
    let events = events(&tidings).await;
    assert!(acknowledged.is_subset(&events), "no event is lost");
    let jobs = jobs_by_event(&tidings).await;
    assert_eq!(jobs.keys().cloned().collect::<BTreeSet<_>>(), events, "each event has a job");
    assert!(jobs.values().all(|count| *count == 1), "exactly one: {jobs:?}");
    server.stop().await;
}

/// Records over a connection of its own; `None` once the server is gone.
async fn record(address: &str, key: &str) -> Option<String> {
    let headers =
        [("authorization", format!("Bearer {key}")), ("content-type", "application/json".to_owned())];
    let body = r#"{"type":"note.changed","data":1}"#;
    let answer = try_request(address, "POST", "/v1/events", &headers, body).await?;
    assert_eq!(answer.status, 202, "{}", answer.text);
    // An answer that is cut off acknowledges nothing.
    let document: Value = serde_json::from_str(&answer.text).ok()?;
    Some(document["id"].as_str().unwrap().to_owned())
}

async fn fanned_out(server: &Server) {
    let none_waits = |backlog: &Value| backlog["waiting"] == 0;
    server.until_at("/v1/backlog", "all are fanned out", PATIENCE, none_waits).await;
}

async fn events(tidings: &Tidings) -> BTreeSet<String> {
    let filter = store::outbox::EventFilter { limit: 100_000, ..Default::default() };
    let events = tidings.events(&filter).await.unwrap();
    events.into_iter().map(|stored| stored.event.id.to_string()).collect()
}

/// How many jobs were made from each event, as their arguments say.
async fn jobs_by_event(tidings: &Tidings) -> BTreeMap<String, usize> {
    let filter = JobFilter { kind: "search.index".into(), limit: 100_000, ..JobFilter::default() };
    let ids: Vec<_> = tidings.jobs(&filter).await.unwrap().into_iter().map(|job| job.id).collect();
    let mut counts = BTreeMap::new();
    for stored in tidings.store().load(&ids).await.unwrap().into_iter().flatten() {
        let args: Value = serde_json::from_str(&stored.args).unwrap();
        *counts.entry(args["id"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    counts
}

const CONFIG: &str = r#"
[[event_types]]
name = "order.paid"
description = "An order was paid."
exposure = "external"
[[event_types]]
name = "note.changed"
[[subscriptions]]
name = "ship"
pattern = "order.*"
job = "search.index"
filter = [{ field = "total", equals = 7 }]
coalesce = true
"#;

async fn the_configuration_declares_types_and_subscriptions_at_the_start(place: &Place) {
    let application = Application::start(place).await;
    let config = place.file("tidings.toml", CONFIG);
    let server = place.serve(&["--config", &config]).await;
    let types = server.get("/v1/event-types").await.json();
    assert_eq!(
        types["event_types"],
        json!([
            {"name": "note.changed", "description": "", "exposure": "internal"},
            {"name": "order.paid", "description": "An order was paid.", "exposure": "external"},
        ])
    );
    let ship = server.get("/v1/subscriptions/ship").await.json();
    assert_eq!(ship["filter"], json!([{"field": "total", "equals": 7}]));
    assert_eq!((&ship["becomes"], &ship["coalesce"]), (&json!({"job": "search.index"}), &json!(true)));
    let seven = server.post("/v1/events?wait=20", r#"{"type":"order.paid","data":{"total":7}}"#).await.json();
    assert_eq!(seven["jobs"].as_array().unwrap().len(), 1, "{seven}");
    let eight = server.post("/v1/events?wait=20", r#"{"type":"order.paid","data":{"total":8}}"#).await.json();
    assert_eq!((&eight["state"], &eight["jobs"]), (&json!("fanned_out"), &json!([])));
    application.stop().await;
    server.stop().await;

    // A second start says the same; what is not in the file any more stays.
    let config = place.file("tidings.toml", "");
    let server = place.serve(&["--config", &config]).await;
    let kept = place.tidings(&["subscriptions", "list", "--json"]).await.json();
    assert_eq!(kept["subscriptions"][0]["name"], "ship");
    server.stop().await;

    for (text, part) in [
        (
            "[[subscriptions]]\nname = \"s\"\npattern = \"notes.*\"\njob = \"search.index\"",
            "matches no declared event type",
        ),
        (
            "[[subscriptions]]\nname = \"s\"\npattern = \"note.*\"\njob = \"mail.sned\"",
            "no program carries out",
        ),
        (
            "[[subscriptions]]\nname = \"s\"\npattern = \"note.*\"\njob = \"http.call\"",
            "a request and not an event",
        ),
        ("[[subscriptions]]\nname = \"s\"\npattern = \"note.*\"\nexpanded = \"all\"", "does not have"),
    ] {
        let config = place.file("tidings.toml", text);
        let words = ["serve", "--json", "--listen", "127.0.0.1:0", "--config", &config];
        let refused = Tool::run(place, &words, None).await;
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.out.is_empty(), "{refused:?}");
        let problem: Value =
            refused.err.lines().last().map(|line| serde_json::from_str(line).unwrap()).unwrap();
        assert_eq!(problem["type"], "urn:tidings:problem:bad-configuration");
        let detail = problem["detail"].as_str().unwrap();
        assert!(
            detail.contains(part) && detail.contains("tidings.toml") && detail.contains("`s`"),
            "{detail}"
        );
    }
}
