//! How a server starts: its key, its port, what it says.

use crate::fixture::{Place, Server, Tool, get, request};
use crate::on_both_databases;
use serde_json::Value;

on_both_databases! {
    the_first_key_is_shown_once_and_opens_the_api_ever_after,
    of_servers_that_start_at_once_one_makes_the_key_and_all_take_it,
    a_key_from_the_environment_is_taken_and_never_shown,
}

async fn the_first_key_is_shown_once_and_opens_the_api_ever_after(place: &Place) {
    let first = place.serve(&[]).await;
    let key = first.key.clone();
    assert!(key.starts_with("tdk_") && key.len() >= 47, "{key}");
    assert_eq!(first.get("/v1/jobs").await.status, 200);
    first.stop().await;

    let second = place.serve(&[]).await;
    assert_eq!(second.started["admin_key"], Value::Null);
    assert!(!second.started.to_string().contains(&key));
    let bearer = [("authorization", format!("Bearer {key}"))];
    assert_eq!(request(second.address(), "GET", "/v1/jobs", &bearer, "").await.status, 200);
}

async fn of_servers_that_start_at_once_one_makes_the_key_and_all_take_it(place: &Place) {
    let servers: Vec<Server> = futures(4, || async { place.serve(&[]).await }).await;
    let keys: Vec<&str> = servers.iter().filter_map(|server| server.started["admin_key"].as_str()).collect();
    assert_eq!(keys.len(), 1, "one key is shown");
    let bearer = [("authorization", format!("Bearer {}", keys[0]))];
    for server in &servers {
        assert_eq!(request(server.address(), "GET", "/v1/queues", &bearer, "").await.status, 200);
    }
}

/// Runs them at once and waits for all.
async fn futures<F: Future>(count: usize, make: impl Fn() -> F) -> Vec<F::Output> {
    let mut all: Vec<_> = (0..count).map(|_| Box::pin(make())).collect();
    let mut done: Vec<Option<F::Output>> = all.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (future, output) in all.iter_mut().zip(&mut done) {
            if output.is_none()
                && let std::task::Poll::Ready(ready) = future.as_mut().poll(context)
            {
                *output = Some(ready);
            }
        }
        if done.iter().all(Option::is_some) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}

async fn a_key_from_the_environment_is_taken_and_never_shown(place: &Place) {
    let key = "an-admin-key-of-somebody";
    let server = Server::start(place, &[], &[("TIDINGS_ADMIN_KEY", key)]).await;
    assert_eq!(server.started["admin_key"], Value::Null);
    assert!(!server.started.to_string().contains(key));
    assert!(server.started["notes"].to_string().contains("TIDINGS_ADMIN_KEY is accepted"));
    assert_eq!(server.get("/v1/jobs").await.status, 200);
    server.stop().await;
    // It was stored nowhere: without it the first start makes a key.
    let next = place.serve(&[]).await;
    assert!(next.started["admin_key"].is_string());
    let bearer = [("authorization", format!("Bearer {key}"))];
    request(next.address(), "GET", "/v1/jobs", &bearer, "").await.problem(401, "unauthorized");
}

/// The key is shown by the first start that succeeds: a start that fails makes none.
#[tokio::test]
async fn a_start_that_fails_makes_no_key_on_postgres() {
    let place = Place::postgres().await;
    let words = ["serve", "--listen", "127.0.0.1:0"];
    let refused = Tool::run_with(&place, &words, None, &[("TIDINGS_POOL_SIZE", "2")]).await;
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("raise `pool_size`"), "{refused:?}");
    assert!(place.serve(&[]).await.started["admin_key"].is_string());
}

#[tokio::test]
async fn a_server_says_where_it_listens_and_that_private_addresses_may_be_called() {
    let place = Place::sqlite();
    let server = place.serve(&["--allow-private", "--workers", "3"]).await;
    assert!(server.started["database"].as_str().unwrap().starts_with("sqlite:"));
    assert_eq!(server.started["queues"][0]["queue"], "default");
    assert_eq!(server.started["queues"][0]["workers"], 3);
    assert!(server.started["notes"].to_string().contains("WARNING: private and loopback addresses"));
    let health = get(server.address(), "/healthz").await;
    assert_eq!((health.status, health.json()["status"].as_str()), (200, Some("ok")));
    let ready = get(server.address(), "/readyz").await;
    assert_eq!((ready.status, ready.json()["ready"].as_bool()), (200, Some(true)), "{}", ready.text);
}

#[tokio::test]
async fn a_second_server_on_the_port_says_so_and_leaves_the_database_alone() {
    let place = Place::sqlite();
    let server = place.serve(&[]).await;
    let other = Place::sqlite();
    let refused = other.tidings(&["serve", "--listen", server.address()]).await;
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("choose another with --listen"), "{refused:?}");
    assert!(!other.home().join("tidings.db").exists());
}

#[tokio::test]
async fn a_private_address_is_refused_unless_it_is_allowed() {
    let place = Place::sqlite();
    let server = place.serve(&[]).await;
    let id = server.enqueue(r#"{"kind":"http.call","args":{"url":"http://127.0.0.1:9/"}}"#).await;
    let job = server.settled(&id).await;
    assert_eq!(job["state"], "discarded");
    assert_eq!(job["attempts"][0]["failure_kind"], "destination_blocked");
    assert_eq!(job["attempts"][0]["effect"], "none");
    assert_eq!(job["verdict"]["sending_again"], "safe");
}

#[tokio::test]
async fn a_password_of_the_database_is_never_printed() {
    let place = Place::sqlite();
    let address = "postgres://ann:s3cret@127.0.0.1:1/none?connect_timeout=1";
    for words in [&["serve", "--listen", "127.0.0.1:0"][..], &["migrate"], &["jobs", "list"]] {
        let tool = Tool::run_with(&place, words, None, &[("TIDINGS_DATABASE", address)]).await;
        assert_eq!(tool.code, 5, "{tool:?}");
        assert!(!tool.out.contains("s3cret") && !tool.err.contains("s3cret"), "{tool:?}");
    }
}
