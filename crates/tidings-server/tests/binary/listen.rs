//! The local receiver, misbehaving on command.

use crate::fixture::{Listener, Place, SECRET, post, request};
use serde_json::json;

fn address(listener: &Listener) -> String {
    listener.url.trim_start_matches("http://").trim_end_matches('/').to_owned()
}

#[tokio::test]
async fn it_says_whether_a_signature_is_valid_invalid_or_missing() {
    let place = Place::sqlite();
    let mut listener = Listener::start(&place, &["--secret", SECRET]).await;
    let address = address(&listener);
    assert_eq!(post(&address, "/", "{}").await.status, 200);
    assert_eq!(listener.next().await["signature"], "missing");
    let headers = [
        ("webhook-id", "msg_1".to_owned()),
        ("webhook-timestamp", "1764494100".to_owned()),
        ("webhook-signature", "v1,AAAA".to_owned()),
    ];
    request(&address, "POST", "/", &headers, "{}").await;
    let heard = listener.next().await;
    assert_eq!(heard["signature"], "invalid");
    assert!(heard["signature_problem"].as_str().unwrap().contains("too old"), "{heard}");
}

#[tokio::test]
async fn it_fails_the_first_ones_with_the_status_or_the_retry_after_that_it_is_told() {
    let place = Place::sqlite();
    let listener = Listener::start(&place, &["--fail", "1", "--retry-after", "120"]).await;
    let first = post(&address(&listener), "/", "1").await;
    assert_eq!((first.status, first.header("retry-after")), (429, "120"));
    assert_eq!(post(&address(&listener), "/", "1").await.status, 200);
    let counted = listener.stop().await;
    assert_eq!((&counted["requests"], &counted["accepted"]), (&json!(2), &json!(1)));

    let always = Listener::start(&place, &["--status", "410"]).await;
    for _ in 0..2 {
        assert_eq!(post(&address(&always), "/", "1").await.status, 410);
    }
}

#[tokio::test]
async fn a_retry_after_puts_the_job_off_and_spends_nothing() {
    let place = Place::sqlite();
    let server = place.serve(&["--allow-private"]).await;
    let listener = Listener::start(&place, &["--fail", "1", "--retry-after", "3600"]).await;
    let body = format!(r#"{{"kind":"http.call","args":{{"url":"{}"}}}}"#, listener.url);
    let id = server.enqueue(&body).await;
    let job = server.until(&id, "it is put off", |job| job["state"] == "snoozed").await;
    let attempt = &job["attempts"][0];
    assert_eq!(attempt["outcome"], "snoozed");
    assert_eq!(attempt["http"]["retry_after"]["raw"], "3600");
    assert_eq!(attempt["next"]["source"], "retry_after");
    assert_eq!(job["counters"]["attempts"], 0);
    let trace = place.tidings(&["trace", &id]).await.done();
    assert!(trace.contains("Retry-After `3600`: asks 1 h 0 min, used 1 h 0 min"), "{trace}");
    // Somebody who does not want to wait.
    place.tidings(&["jobs", "retry", &id]).await.done();
    assert_eq!(server.settled(&id).await["state"], "completed");
}

#[tokio::test]
async fn it_can_hang_until_the_sender_gives_up() {
    let place = Place::sqlite();
    let config = place.file("tidings.toml", "[http.limits]\nfirst_byte_ms = 300\n");
    let server = place.serve(&["--allow-private", "--config", &config]).await;
    let mut listener = Listener::start(&place, &["--hang"]).await;
    let id = server.enqueue(&format!(r#"{{"kind":"http.call","args":{{"url":"{}"}}}}"#, listener.url)).await;
    assert_eq!(listener.next().await["reply"], "left without an answer");
    let job = server.settled(&id).await;
    assert_eq!((&job["state"], &job["held"]), (&json!("unknown"), &json!(true)));
    assert_eq!(job["attempts"][0]["failure_kind"], "response_timeout");
    assert_eq!(listener.stop().await["failed"], 1);
}

#[tokio::test]
async fn it_can_reset_and_a_signed_request_is_sent_again_with_the_same_id() {
    let place = Place::sqlite();
    let config = "[policies.slow]\nunknown_delay_ms = 3600000\n[kinds.\"http.call\"]\npolicy = \"slow\"\n";
    let config = place.file("tidings.toml", config);
    let server = place.serve(&["--allow-private", "--config", &config]).await;
    let mut listener = Listener::start(&place, &["--fail", "1", "--reset", "--secret", SECRET]).await;
    let args = format!(r#"{{"url":"{}","secret":"{SECRET}"}}"#, listener.url);
    let id = server.enqueue(&format!(r#"{{"kind":"http.call","args":{args}}}"#)).await;
    let job = server.until(&id, "its outcome is unknown", |job| job["state"] == "unknown").await;
    assert_eq!((&job["held"], &job["due_at"]), (&json!(false), &job["attempts"][0]["next_at"]));
    assert_eq!(job["attempts"][0]["policy_version"], "slow@1");
    assert_eq!(job["verdict"]["sending_again"], "deduplicated");
    server.post(&format!("/v1/jobs/{id}/retry"), "").await;
    assert_eq!(server.settled(&id).await["state"], "completed");
    for (signature, times_heard) in [("valid", 1), ("valid", 2)] {
        let heard = listener.next().await;
        assert_eq!((&heard["signature"], &heard["webhook_id"]), (&json!(signature), &json!(id)));
        assert_eq!(heard["times_heard"], times_heard);
    }
}
