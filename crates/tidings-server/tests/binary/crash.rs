//! A server that is killed in the middle of requests.

use crate::fixture::Place;
use crate::on_both_databases;
use serde_json::json;
use std::time::Duration;
use testkit::receiver::{Receiver, Step};

on_both_databases! {
    attempts_of_a_killed_server_are_unknown_and_then_retried_with_the_same_id_or_held,
}

/// The lease outlives the time limit by 15 s, and the sweep comes every 5 s.
const LEASE_OVER: Duration = Duration::from_secs(40);
const CONFIG: &str = "[kinds.\"http.call\"]\ntime_limit_ms = 1000\n";

async fn attempts_of_a_killed_server_are_unknown_and_then_retried_with_the_same_id_or_held(place: &Place) {
    let config = place.file("tidings.toml", CONFIG);
    let flags = ["--allow-private", "--config", &config];
    let mut server = place.serve(&flags).await;
    let key = server.key.clone();
    let receiver = Receiver::start([Step::hang(), Step::hang(), Step::status(200)]).await;
    let url = receiver.url("/");
    let secret = crate::fixture::SECRET;
    let signed = server
        .enqueue(&format!(r#"{{"kind":"http.call","args":{{"url":"{url}","secret":"{secret}"}}}}"#))
        .await;
    let plain = server.enqueue(&format!(r#"{{"kind":"http.call","args":{{"url":"{url}"}}}}"#)).await;
    receiver.wait_for(2).await;
    server.signal("-KILL").await;
    server.ended().await;

    let mut server = place.serve(&flags).await;
    server.key = key;
    let first = server.get(&format!("/v1/jobs/{signed}")).await.json();
    assert_eq!((&first["state"], &first["attempts"][0]["in_flight"]), (&json!("running"), &json!(true)));
    let done =
        server.until_within(&signed, "it is completed", LEASE_OVER, |job| job["state"] == "completed").await;
    let [lost, accepted] = &done["attempts"].as_array().unwrap()[..] else {
        panic!("two attempts: {done:#}")
    };
    assert_eq!((&lost["outcome"], &lost["effect"]), (&json!("unknown"), &json!("possible")));
    assert_eq!((&lost["ended_by"], &lost["failure_kind"]), (&json!("sweep"), &json!("worker_lost")));
    assert_eq!(accepted["outcome"], "accepted");
    let held = server.until(&plain, "it is held", |job| job["held"] == true).await;
    assert_eq!(held["attempts"].as_array().unwrap().len(), 1);
    assert_eq!(held["attempts"][0]["outcome"], "unknown");
    assert_eq!(held["counters"]["crashes"], 1);
    assert_eq!(held["verdict"]["sending_again"], "may_repeat");

    // Each request on the receiver's log is matched by an attempt.
    let requests = receiver.requests();
    assert_eq!(requests.len(), 3);
    let ids: Vec<&str> = requests.iter().filter_map(|request| request.header("webhook-id")).collect();
    assert_eq!(ids, [&signed, &signed]);
    server.stop().await;
}
