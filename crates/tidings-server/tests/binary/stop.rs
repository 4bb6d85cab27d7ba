//! How a server stops.

use crate::fixture::Place;
use crate::on_both_databases;
use serde_json::json;
use std::time::Duration;
use testkit::receiver::{Receiver, Step};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

on_both_databases! {
    a_stop_lets_attempts_end_and_leaves_what_was_not_started_untouched,
    a_stop_answers_those_who_wait,
}

async fn a_stop_lets_attempts_end_and_leaves_what_was_not_started_untouched(place: &Place) {
    let mut server = place.serve(&["--allow-private", "--workers", "1"]).await;
    let slow = Step::informational(102, 4).every_ms(250);
    let receiver = Receiver::start([slow, Step::status(200)]).await;
    let body = format!(r#"{{"kind":"http.call","args":{{"url":"{}"}}}}"#, receiver.url("/"));
    let running = server.enqueue(&body).await;
    receiver.wait_for(1).await;
    let waiting = server.enqueue(&body).await;
    server.signal("-TERM").await;
    assert_eq!(server.ended().await.code(), Some(0));

    let show = async |id: &str| place.tidings(&["jobs", "show", id, "--json"]).await.json();
    let ended = show(&running).await;
    assert_eq!((&ended["state"], &ended["counters"]["attempts"]), (&json!("completed"), &json!(1)));
    let untouched = show(&waiting).await;
    assert_eq!((&untouched["state"], &untouched["counters"]["attempts"]), (&json!("pending"), &json!(0)));
    assert_eq!(receiver.requests().len(), 1);
}

async fn a_stop_answers_those_who_wait(place: &Place) {
    let mut server = place.serve(&[]).await;
    let later =
        r#"{"kind":"http.call","args":{"url":"https://example.com/"},"run_at":"2099-01-01T00:00:00Z"}"#;
    let id = server.enqueue(later).await;
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    let head = format!(
        "GET /v1/jobs/{id}?wait=30 HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\r\n",
        server.key
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // Another request on its own connection, answered after the first was read.
    server.get("/v1/queues").await;
    server.signal("-INT").await;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains(r#""state":"pending""#), "{answer}");
    assert_eq!(server.ended().await.code(), Some(0));
}

#[tokio::test]
async fn a_second_signal_ends_a_stop_that_takes_too_long() {
    let place = Place::sqlite();
    let mut server = place.serve(&["--allow-private"]).await;
    let receiver = Receiver::start([Step::hang()]).await;
    server.enqueue(&format!(r#"{{"kind":"http.call","args":{{"url":"{}"}}}}"#, receiver.url("/"))).await;
    receiver.wait_for(1).await;
    server.signal("-TERM").await;
    // It no longer accepts connections: it has heard the first one.
    let refused = async { while TcpStream::connect(server.address()).await.is_ok() {} };
    tokio::time::timeout(Duration::from_secs(5), refused).await.expect("it stops accepting");
    server.signal("-TERM").await;
    assert_eq!(server.ended().await.code(), Some(1));
    receiver.wait_for_closed_by_client(1).await;
}
