//! The command line: exit codes, JSON, and what it prints of foreign text.

use crate::fixture::{Place, Tool};
use crate::on_both_databases;
use serde_json::{Value, json};
use testkit::receiver::{Receiver, Step};

on_both_databases! {
    every_result_is_a_json_document_where_it_is_asked_for,
    a_wait_ends_with_what_became_of_the_job,
}

const URL: [&str; 2] = ["--url", "https://example.com/"];
const LATER: [&str; 2] = ["--run-at", "2099-01-01T00:00:00+02:00"];

async fn every_result_is_a_json_document_where_it_is_asked_for(place: &Place) {
    let json = async |words: &[&str]| {
        let tool = place.tidings(&[words, &["--json"]].concat()).await;
        assert_eq!(tool.code, 0, "{tool:?}");
        assert_eq!(tool.out.lines().count(), 1, "{tool:?}");
        tool.json()
    };
    assert_eq!(json(&["migrate"]).await["up_to_date"], true);
    assert_eq!(json(&["migrate"]).await["up_to_date"], true, "again it does nothing");
    let enqueued = json(&[&["enqueue", "http.call"][..], &URL, &LATER].concat()).await;
    assert_eq!((&enqueued["state"], &enqueued["existing"]), (&json!("pending"), &json!(false)));
    let id = enqueued["id"].as_str().unwrap();
    for words in [&["jobs", "show", id][..], &["trace", id]] {
        let job = json(words).await;
        assert_eq!((&job["id"], &job["due_at"]), (&json!(id), &json!("2098-12-31T22:00:00.000Z")));
    }
    let list = json(&["jobs", "list", "--state", "pending", "--limit", "1"]).await;
    assert_eq!((&list["jobs"][0]["id"], &list["next_cursor"]), (&json!(id), &Value::Null));
    assert_eq!(json(&["jobs", "cancel", id]).await["state"], "cancelled");
    assert_eq!(json(&["jobs", "retry", id]).await["state"], "pending");
    assert_eq!(json(&["queues", "pause", "default", "--reason", "x"]).await["paused"], true);
    assert_eq!(json(&["queues", "list"]).await["queues"][0]["paused_by"], "cli:tester");
    assert_eq!(json(&["queues", "resume", "default"]).await["paused"], false);
}

async fn a_wait_ends_with_what_became_of_the_job(place: &Place) {
    let server = place.serve(&["--allow-private"]).await;
    let receiver = Receiver::start([Step::status(200), Step::status(404)]).await;
    let url = receiver.url("/");
    let enqueue =
        async |more: &[&str]| place.tidings(&[&["enqueue", "http.call", "--json"][..], more].concat()).await;
    let accepted = enqueue(&["--url", &url, "--wait", "20"]).await;
    assert_eq!(accepted.code, 0, "{accepted:?}");
    assert_eq!(accepted.json()["state"], "completed");
    let refused = enqueue(&["--url", &url, "--wait", "20"]).await;
    assert_eq!(refused.code, 7, "{refused:?}");
    assert_eq!(refused.json()["state"], "discarded");
    let later = enqueue(&[&URL[..], &LATER, &["--wait", "1"]].concat()).await;
    assert_eq!(later.code, 6, "{later:?}");
    let later = later.json();
    assert_eq!((&later["state"], &later["settled"]), (&json!("pending"), &json!(false)));
    server.stop().await;
}

#[tokio::test]
async fn exit_codes_and_problems_say_what_sort_of_failure_it_is() {
    let place = Place::sqlite();
    let nothing_there = place.tidings(&["jobs", "list", "--json"]).await;
    assert_eq!(nothing_there.code, 5);
    assert!(nothing_there.problem()["detail"].as_str().unwrap().contains("tidings migrate"));
    assert!(!place.home().join("tidings.db").exists(), "a command that looks makes no database");
    place.tidings(&["migrate"]).await.done();
    let id = place.tidings(&[&["enqueue", "http.call", "--json"][..], &URL, &LATER].concat()).await.json();
    let id = id["id"].as_str().unwrap();
    let other = "job_0198c0de000070008000000000000001";
    for (words, code, word) in [
        (vec!["jobs", "lsit"], 2, "invalid-parameter"),
        (vec!["enqueue", "http.call"], 2, "invalid-field"),
        (vec!["enqueue", "mail.sned", "--args", "{}"], 2, "unknown-kind"),
        (vec!["enqueue", "http.call", "--args", "{}"], 2, "invalid-field"),
        (vec!["enqueue", "http.call", "--args", "{", "--queue", "default"], 2, "invalid-field"),
        (vec!["enqueue", "http.call", "--url", "https://x/", "--priority", "5"], 2, "invalid-field"),
        (vec!["enqueue", "http.call", "--url", "https://x/", "--run-at", "soon"], 2, "invalid-field"),
        (vec!["enqueue", "http.call", "--url", "https://x/", "--header", "s3cret"], 2, "invalid-field"),
        (vec!["enqueue", "http.call", "--url", "https://x/", "--body", "{s3cret"], 2, "invalid-field"),
        (vec!["enqueue", "http.call", "--url", "https://x/", "--queue", "fast"], 2, "unknown-queue"),
        (vec!["jobs", "list", "--state", "done"], 2, "invalid-parameter"),
        (vec!["jobs", "show", other], 3, "no-such-job"),
        (vec!["trace", "7"], 3, "no-such-job"),
        (vec!["jobs", "resolve", id, "--accepted"], 4, "state-conflict"),
        (vec!["jobs", "list", "--config", "none.toml"], 2, "bad-configuration"),
        (vec!["jobs", "list", "--database", "mysql://x"], 2, "bad-configuration"),
    ] {
        let tool = place.tidings(&[&words[..], &["--json"]].concat()).await;
        assert_eq!(tool.code, code, "{words:?}: {tool:?}");
        assert!(tool.out.is_empty(), "{words:?}: {tool:?}");
        assert!(!tool.err.contains("s3cret"), "{tool:?}");
        let problem = tool.problem();
        assert_eq!(problem["type"], format!("urn:tidings:problem:{word}"), "{words:?}: {problem}");
        assert_eq!(problem["exit_code"], code);
    }
    let plain = place.tidings(&["jobs", "show", other]).await;
    assert!(plain.err.starts_with("error: there is no job job_"), "{plain:?}");
}

#[tokio::test]
async fn an_idempotency_key_and_a_unique_key_work_from_the_command_line() {
    let place = Place::sqlite();
    place.tidings(&["migrate"]).await.done();
    let enqueue = async |more: &[&str]| {
        place.tidings(&[&["enqueue", "http.call", "--json"][..], &LATER, more].concat()).await
    };
    let first = enqueue(&[&URL[..], &["--idempotency-key", "k"]].concat()).await.json();
    let again = enqueue(&[&URL[..], &["--idempotency-key", "k"]].concat()).await.json();
    assert_eq!((&again["id"], &again["existing"]), (&first["id"], &json!(true)));
    let reused = enqueue(&["--url", "https://example.org/", "--idempotency-key", "k"]).await;
    assert_eq!(reused.code, 4, "{reused:?}");
    let unique = enqueue(&[&URL[..], &["--unique-key", "u"]].concat()).await.json();
    let same = enqueue(&[&URL[..], &["--unique-key", "u"]].concat()).await.json();
    assert_eq!((&same["id"], &same["existing"]), (&unique["id"], &json!(true)));
}

#[tokio::test]
async fn a_terminal_is_told_nothing_by_what_a_receiver_or_caller_wrote() {
    let place = Place::sqlite();
    let server = place.serve(&["--allow-private"]).await;
    let body = "\u{1b}[31mred\u{1b}]0;title\u{7}\u{202e}";
    let receiver = Receiver::start([Step::status(400).body(body)]).await;
    let args = format!(
        r#"{{"kind":"http.call","tenant":"ac\u202eme","args":{{"url":"{}","body":"\u001b[31m"}}}}"#,
        receiver.url("/")
    );
    let id = server.enqueue(&args).await;
    assert_eq!(server.settled(&id).await["state"], "discarded");
    place.tidings(&["jobs", "retry", &id, "--reason", "\u{1b}[31m", "--actor", "\u{1b}c"]).await.done();
    server.until(&id, "it ran again", |job| job["attempts"].as_array().unwrap().len() == 2).await;
    for words in [&["trace", &id][..], &["jobs", "show", &id], &["jobs", "list"]] {
        let printed = place.tidings(words).await.done();
        let obeyed = printed.chars().find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}');
        assert_eq!(obeyed, None, "{printed:?}");
    }
}

#[tokio::test]
async fn completions_name_the_commands() {
    let place = Place::sqlite();
    for shell in ["bash", "zsh", "fish"] {
        let script = place.tidings(&["completions", shell]).await.done();
        assert!(script.contains("tidings") && script.contains("enqueue"), "{shell}");
    }
}

#[tokio::test]
async fn a_reader_that_stops_early_is_no_failure() {
    let place = Place::sqlite();
    let script = format!("{} completions bash | head -c 1", env!("CARGO_BIN_EXE_tidings"));
    let output = tokio::process::Command::new("bash")
        .args(["-c", &format!("set -o pipefail; {script}")])
        .current_dir(place.home())
        .output()
        .await
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let help = Tool::run(&place, &["--help"], None).await;
    assert!(help.done().contains("trace"));
}
