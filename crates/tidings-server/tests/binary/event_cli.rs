//! Events on the command line: each command once, as text and as JSON, and how it ends.

use crate::fixture::{Application, Place, Tool};
use crate::on_both_databases;
use serde_json::{Value, json};

on_both_databases! {
    events_make_the_round_by_the_command_line_alone,
}

async fn events_make_the_round_by_the_command_line_alone(place: &Place) {
    let run = async |words: &[&str]| {
        let tool = place.tidings(&[words, &["--json"]].concat()).await;
        assert_eq!(tool.code, 0, "{words:?}: {tool:?}");
        assert_eq!(tool.out.lines().count(), 1, "{tool:?}");
        tool.json()
    };
    run(&["migrate"]).await;
    let declare =
        ["event-types", "declare", "note.changed", "--description", "Changed.", "--exposure", "external"];
    let declared = json!({"name": "note.changed", "description": "Changed.", "exposure": "external"});
    assert_eq!(run(&declare).await, declared);
    assert_eq!(run(&["event-types", "list"]).await, json!({"event_types": [declared]}));
    let filter = r#"{"field": "lang", "equals": "de"}"#;
    let set = ["subscriptions", "set", "search", "--pattern", "note.*", "--job", "search.index"];
    let refused = place.tidings(&set).await;
    assert_eq!(refused.code, 2);
    assert!(refused.err.contains("start one that does"), "{refused:?}");
    let application = Application::start(place).await;
    let kept = run(&[&set[..], &["--filter", filter, "--coalesce"]].concat()).await;
    assert_eq!(kept["filter"], json!([{"field": "lang", "equals": "de"}]));
    assert_eq!(run(&["subscriptions", "show", "search"]).await, kept);
    assert_eq!(run(&["subscriptions", "list"]).await, json!({"subscriptions": [kept]}));

    let data = r#"{"lang":"de", "n":0.1e1}"#;
    let record = ["record", "note.changed", "--subject", "note/1", "--tenant", "ann", "--key", "k"];
    let when = ["--occurred-at", "2026-01-02T03:04:05+01:00", "--wait", "20"];
    let recorded = run(&[&record[..], &["--data", data], &when].concat()).await;
    assert_eq!((&recorded["state"], &recorded["existing"]), (&json!("fanned_out"), &json!(false)));
    let id = recorded["id"].as_str().unwrap();
    let by_stdin = [&record[..], &["--json", "--data", "-"]].concat();
    let again = Tool::run(place, &by_stdin, Some(&format!("{data}\n"))).await.json();
    assert_eq!(
        (&again["id"], &again["existing"], &again["jobs"][0]["id"]),
        (&json!(id), &json!(true), &recorded["jobs"][0]["id"])
    );
    let file = place.file("data.json", data);
    let by_file = run(&[&record[..], &["--data-file", &file]].concat()).await;
    assert_eq!(by_file["id"], id);

    let event = run(&["events", "show", id]).await;
    assert_eq!(
        (&event["occurred_at"], &event["tenant"]),
        (&json!("2026-01-02T02:04:05.000Z"), &json!("ann"))
    );
    let listed = run(&["events", "list", "--state", "fanned_out", "--type", "note.changed"]).await;
    assert_eq!((&listed["events"][0]["id"], &listed["next_cursor"]), (&json!(id), &Value::Null));
    let backlog = run(&["events", "backlog"]).await;
    assert_eq!((&backlog["waiting"], &backlog["poisoned"]), (&json!(0), &json!(0)));
    assert_eq!(run(&["incidents", "list"]).await, json!({"incidents": []}));
    assert_eq!(application.seen()[0].data.get(), data);

    let text = place.tidings(&["events", "show", id]).await.done();
    assert!(text.contains("search: became") && text.contains("search.index  completed"), "{text}");
    let listed = place.tidings(&["events", "list", "--tenant", "ann"]).await.done();
    assert!(listed.starts_with("ID") && listed.contains("note/1"), "{listed}");
    let subscriptions = place.tidings(&["subscriptions", "list"]).await.done();
    assert!(subscriptions.contains(r#"lang = "de""#) && subscriptions.contains("yes"), "{subscriptions}");
    assert_eq!(run(&["subscriptions", "remove", "search"]).await["removed"], true);
    assert_eq!(place.tidings(&["subscriptions", "remove", "search"]).await.code, 3);
}

#[tokio::test]
async fn what_cannot_be_asked_about_events_ends_with_its_code() {
    let place = Place::sqlite();
    place.tidings(&["migrate"]).await.done();
    place.tidings(&["event-types", "declare", "note.changed"]).await.done();
    place.tidings(&["record", "note.changed", "--data", "1", "--key", "k"]).await.done();
    let set = |more: &'static [&'static str]| [&["subscriptions", "set", "s"][..], more].concat();
    for (words, code, word) in [
        (vec!["record", "note.changed"], 2, "invalid-field"),
        (vec!["record", "note.lost", "--data", "1"], 2, "undeclared-event-type"),
        (vec!["record", "note.changed", "--data", "{"], 2, "invalid-field"),
        (vec!["record", "note.changed", "--data-file", "none.json"], 2, "invalid-field"),
        (vec!["record", "note.changed", "--data", "1", "--occurred-at", "soon"], 2, "invalid-field"),
        (vec!["record", "note.changed", "--data", "2", "--key", "k"], 4, "idempotency-key-reused"),
        (vec!["events", "show", "evt_0198c0de000070008000000000000001"], 3, "no-such-event"),
        (vec!["events", "show", "job_0198c0de000070008000000000000001"], 3, "no-such-event"),
        (vec!["trace", "evt_7"], 3, "no-such-event"),
        (vec!["events", "list", "--state", "done"], 2, "invalid-parameter"),
        (vec!["event-types", "declare", "Note"], 2, "invalid-field"),
        (vec!["event-types", "declare", "note", "--exposure", "public"], 2, "invalid-parameter"),
        (vec!["subscriptions", "show", "s"], 3, "no-such-subscription"),
        (set(&["--pattern", "*"]), 2, "invalid-parameter"),
        (set(&["--pattern", "*", "--job", "http.call", "--expanded", "x"]), 2, "invalid-parameter"),
        (set(&["--pattern", "a**", "--job", "http.call"]), 2, "invalid-field"),
        (set(&["--pattern", "*", "--job", "http.call", "--filter", "{}"]), 2, "invalid-field"),
        (vec!["incidents", "list", "--limit", "0"], 2, "invalid-parameter"),
    ] {
        let tool = place.tidings(&[&words[..], &["--json"]].concat()).await;
        assert_eq!(tool.code, code, "{words:?}: {tool:?}");
        assert!(tool.out.is_empty(), "{words:?}: {tool:?}");
        let problem = tool.problem();
        assert_eq!(problem["type"], format!("urn:tidings:problem:{word}"), "{words:?}: {problem}");
    }
}

#[tokio::test]
async fn a_terminal_is_told_nothing_by_what_an_event_says() {
    let place = Place::sqlite();
    place.tidings(&["migrate"]).await.done();
    let evil = "a\u{202e}b";
    place.tidings(&["event-types", "declare", "note.changed", "--description", "\u{1b}[31m"]).await.done();
    let record =
        ["record", "note.changed", "--subject", evil, "--tenant", evil, "--data", "\"\u{202e}\"", "--json"];
    let id = place.tidings(&record).await.json()["id"].as_str().unwrap().to_owned();
    for words in
        [&["events", "show", &id][..], &["trace", &id], &["events", "list"], &["event-types", "list"]]
    {
        let out = place.tidings(words).await.done();
        assert!(!out.contains(['\u{1b}', '\u{202e}']), "{words:?}: {out:?}");
    }
}
