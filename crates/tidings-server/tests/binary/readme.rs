//! The first thing that a newcomer sees.

use crate::fixture::{Listener, Place, SECRET};
use crate::on_both_databases;
use serde_json::{Value, json};

on_both_databases! {
    a_job_fails_twice_with_503_and_is_accepted_with_its_evidence,
}

async fn a_job_fails_twice_with_503_and_is_accepted_with_its_evidence(place: &Place) {
    let server = place.serve(&["--allow-private"]).await;
    let mut listener = Listener::start(place, &["--fail", "2", "--secret", SECRET]).await;
    let (url, body) = (format!("{}hook", listener.url), r#"{"order": 7}"#);
    let words = ["enqueue", "http.call", "--url", &url, "--body", body, "--secret", SECRET, "--wait", "20"];
    let told = place.tidings(&words).await.done();
    let id = told.split_whitespace().next().unwrap();
    assert!(told.contains(&format!("{id} is completed")), "{told}");

    for (number, reply) in [(1, "answered 503"), (2, "answered 503"), (3, "answered 200")] {
        let heard = listener.next().await;
        assert_eq!(heard["number"], number);
        assert_eq!(heard["reply"], reply);
        assert_eq!(heard["signature"], "valid", "{heard}");
        assert_eq!(heard["webhook_id"], id, "the id is the same on every attempt");
        assert_eq!(heard["body"], body);
    }
    let counted = listener.stop().await;
    assert_eq!(
        counted,
        json!({"requests": 3, "accepted": 1, "failed": 2, "webhook_ids": 1, "webhook_ids_repeated": 1})
    );

    let trace = place.tidings(&["trace", id]).await.done();
    for part in [
        "Attempt 1",
        "Attempt 2",
        "Attempt 3",
        "retryable_failure (503)",
        "accepted (200)",
        "chosen by policy default@1, jitter included",
        "effect     done",
        "Accepted by attempt 3",
    ] {
        assert!(trace.contains(part), "{part} is missing in\n{trace}");
    }
    assert!(!trace.contains(SECRET), "{trace}");

    // The API and the command line show the same document.
    let by_tool = place.tidings(&["trace", id, "--json"]).await.json();
    let by_api = server.get(&format!("/v1/jobs/{id}")).await.json();
    assert_eq!(by_tool, by_api);
    assert_contract(&by_api, id);
    server.stop().await;
}

fn assert_contract(job: &Value, id: &str) {
    assert_eq!(job["id"], id);
    assert_eq!(job["kind"], "http.call");
    assert_eq!(job["state"], "completed");
    assert_eq!(job["held"], false);
    assert_eq!(job["due_at"], Value::Null);
    assert_eq!(job["args"]["secret"], "[REDACTED]");
    assert_eq!(job["verdict"]["sending_again"], "never");
    let attempts = job["attempts"].as_array().unwrap();
    assert_eq!(attempts.len(), 3);
    for (index, attempt) in attempts.iter().enumerate() {
        assert_eq!(attempt["attempt"], index + 1);
        assert_eq!(attempt["policy_version"], "default@1");
        let started = attempt["started_at"].as_str().unwrap();
        assert!(started.len() == 24 && started.ends_with('Z'), "{started} has milliseconds");
    }
    let (first, last) = (&attempts[0], &attempts[2]);
    assert_eq!(first["outcome"], "retryable_failure");
    assert_eq!(first["effect"], "possible");
    assert_eq!(first["http_status"], 503);
    assert_eq!(first["failure_kind"], "http_5xx");
    assert_eq!(first["next"]["at"], first["next_at"]);
    assert!((900..=1_100).contains(&first["delay_ms"].as_i64().unwrap()), "1 s ± 10 %: {first}");
    assert!((1_800..=2_200).contains(&attempts[1]["delay_ms"].as_i64().unwrap()), "2 s ± 10 %");
    assert_eq!(last["outcome"], "accepted");
    assert_eq!(last["effect"], "done");
    assert_eq!(last["http_status"], 200);
    assert_eq!(last["next_at"], Value::Null);
    assert_eq!(last["reason"], Value::Null);
}
