//! What people do: cancel, retry, resolve, pause, resume, by API and command line.

use crate::fixture::{Listener, Place};
use crate::on_both_databases;
use serde_json::{Value, json};
use testkit::receiver::{Receiver, Step};

on_both_databases! {
    a_waiting_job_is_cancelled_and_brought_back,
    a_running_job_is_asked_to_stop_and_is_cancelled,
    a_held_job_is_resolved_by_a_person,
    a_paused_queue_takes_nothing_until_it_is_resumed,
}

const LATER: &str =
    r#"{"kind":"http.call","args":{"url":"https://example.com/"},"run_at":"2099-01-01T00:00:00Z"}"#;

async fn a_waiting_job_is_cancelled_and_brought_back(place: &Place) {
    let server = place.serve(&[]).await;
    let id = server.enqueue(LATER).await;
    let path = |act: &str| format!("/v1/jobs/{id}/{act}");
    let cancelled = server.post(&path("cancel"), r#"{"reason":"by mistake","actor":"ann"}"#).await;
    assert_eq!((cancelled.status, &cancelled.json()["state"]), (200, &json!("cancelled")));
    let resolved = server.post(&path("resolve"), r#"{"resolution":"accepted"}"#).await;
    assert_eq!(resolved.problem(409, "state-conflict")["refusal"], "not_unknown");

    let back = place.tidings(&["jobs", "retry", &id, "--reason", "after all", "--json"]).await.json();
    assert_eq!(back["state"], "pending");
    let events = server.get(&format!("/v1/jobs/{id}")).await.json()["events"].clone();
    assert_eq!(events[0]["event"], "cancelled");
    assert_eq!(events[0]["actor"], "ann (api:first-admin)");
    assert_eq!(events[0]["reason"], "by mistake");
    assert_eq!(events[1]["event"], "revived");
    assert_eq!(events[1]["actor"], "cli:tester");
    let trace = place.tidings(&["trace", &id]).await.done();
    assert!(trace.contains("cancelled by ann (api:first-admin)") && trace.contains("after all"), "{trace}");
}

async fn a_running_job_is_asked_to_stop_and_is_cancelled(place: &Place) {
    let server = place.serve(&["--allow-private"]).await;
    let receiver = Receiver::start([Step::hang()]).await;
    let id =
        server.enqueue(&format!(r#"{{"kind":"http.call","args":{{"url":"{}"}}}}"#, receiver.url("/"))).await;
    receiver.wait_for(1).await;
    let running = server.get(&format!("/v1/jobs/{id}")).await.json();
    assert_eq!(running["state"], "running");
    let attempt = &running["attempts"][0];
    assert_eq!((&attempt["in_flight"], &attempt["outcome"]), (&json!(true), &Value::Null));
    assert!(place.tidings(&["trace", &id]).await.done().contains("in flight"));
    let retry = server.post(&format!("/v1/jobs/{id}/retry"), "").await;
    assert_eq!(retry.problem(409, "state-conflict")["refusal"], "in_flight");

    let asked = place.tidings(&["jobs", "cancel", &id, "--json"]).await.json();
    assert_eq!((&asked["state"], &asked["cancel_requested"]), (&json!("running"), &json!(true)));
    let job = server.settled(&id).await;
    assert_eq!((&job["state"], &job["attempts"][0]["outcome"]), (&json!("cancelled"), &json!("cancelled")));
    assert_eq!(job["verdict"]["sending_again"], "may_repeat");
}

async fn a_held_job_is_resolved_by_a_person(place: &Place) {
    let server = place.serve(&["--allow-private"]).await;
    let mut listener = Listener::start(place, &["--reset"]).await;
    let body = format!(r#"{{"kind":"http.call","args":{{"url":"{}"}}}}"#, listener.url);
    let mut ids = Vec::new();
    for _ in 0..3 {
        let id = server.enqueue(&body).await;
        let held = server.settled(&id).await;
        assert_eq!((&held["state"], &held["held"]), (&json!("unknown"), &json!(true)), "{held:#}");
        assert_eq!(held["due_at"], Value::Null);
        assert_eq!(held["attempts"][0]["outcome"], "unknown");
        assert_eq!(held["attempts"][0]["effect"], "possible");
        assert_eq!(held["attempts"][0]["next"]["state"], "held");
        assert_eq!(listener.next().await["reply"], "reset the connection");
        ids.push(id);
    }
    let accepted = server
        .post(
            &format!("/v1/jobs/{}/resolve", ids[0]),
            r#"{"resolution":"accepted","reason":"seen in their log"}"#,
        )
        .await;
    assert_eq!((accepted.status, &accepted.json()["state"]), (200, &json!("completed")), "{}", accepted.text);
    let given_up = place.tidings(&["jobs", "resolve", &ids[1], "--give-up", "--json"]).await.json();
    assert_eq!(given_up["state"], "discarded");
    place.tidings(&["jobs", "resolve", &ids[2], "--retry"]).await.done();
    assert_eq!(listener.next().await["number"], 4, "it is sent again");
    let again = place.tidings(&["jobs", "retry", &ids[0], "--json"]).await;
    assert_eq!(again.code, 4);
    assert_eq!(again.problem()["refusal"], "accepted");
    let trace = place.tidings(&["trace", &ids[0]]).await.done();
    assert!(trace.contains("resolved as accepted by api:first-admin"), "{trace}");
    assert!(trace.contains("marked it as accepted"), "{trace}");
}

async fn a_paused_queue_takes_nothing_until_it_is_resumed(place: &Place) {
    let server = place.serve(&["--allow-private"]).await;
    let receiver = Receiver::start([Step::status(204)]).await;
    let paused = server.post("/v1/queues/default/pause", r#"{"reason":"the receiver moves"}"#).await;
    assert_eq!((paused.status, &paused.json()["paused"]), (200, &json!(true)), "{}", paused.text);
    let id =
        server.enqueue(&format!(r#"{{"kind":"http.call","args":{{"url":"{}"}}}}"#, receiver.url("/"))).await;
    let listed = place.tidings(&["queues", "list", "--json"]).await.json();
    assert_eq!(listed, server.get("/v1/queues").await.json());
    assert_eq!(listed["queues"][0]["reason"], "the receiver moves");
    assert_eq!(listed["queues"][0]["paused_by"], "api:first-admin");
    let waited = server.get(&format!("/v1/jobs/{id}?wait=2")).await.json();
    assert_eq!(waited["state"], "pending");
    assert_eq!(receiver.requests().len(), 0);
    place.tidings(&["queues", "resume", "default"]).await.done();
    assert_eq!(server.settled(&id).await["state"], "completed");
    server.post("/v1/queues/fast/pause", "").await.problem(404, "no-such-queue");
    assert_eq!(place.tidings(&["queues", "pause", "fast"]).await.code, 3);
}
