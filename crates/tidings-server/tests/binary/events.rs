//! Events over the API: recorded once, listed, and what each became.

use crate::fixture::{Application, PATIENCE, Place};
use crate::on_both_databases;
use serde_json::{Value, json};

on_both_databases! {
    an_event_becomes_the_job_of_an_application_and_says_which,
    the_same_call_twice_records_once,
    of_a_batch_all_are_recorded_or_none,
    events_are_listed_in_pages_newest_first,
    types_and_subscriptions_are_declared_changed_and_removed,
}

const DATA: &str = r#"{ "n":0.1e1, "id":9223372036854775807,"a":1,"a":2,"t":"x\u0000\u00e9é" }"#;

async fn an_event_becomes_the_job_of_an_application_and_says_which(place: &Place) {
    let server = place.serve(&[]).await;
    let application = Application::start(place).await;
    server.declare("note.changed").await;
    server.subscribe("search", "note.*", "search.index").await;
    let german =
        r#"{"pattern":"note.*","becomes":{"job":"search.index"},"filter":[{"field":"lang","equals":"de"}]}"#;
    assert_eq!(server.send("PUT", "/v1/subscriptions/german", german).await.status, 201);
    server.declare("order.paid").await;
    server.subscribe("billing", "order.*", "search.index").await;

    let body = format!(r#"{{"type":"note.changed","subject":"note/42","tenant":"ann","data":{DATA}}}"#);
    let answer = server.post("/v1/events?wait=20", &body).await;
    assert_eq!(answer.status, 202, "{}", answer.text);
    let recorded = answer.json();
    let (id, job) = (recorded["id"].as_str().unwrap(), recorded["jobs"][0]["id"].as_str().unwrap());
    assert_eq!(answer.header("location"), format!("/v1/events/{id}"));
    assert_eq!((&recorded["state"], &recorded["existing"]), (&json!("fanned_out"), &json!(false)));
    assert_eq!(recorded["jobs"].as_array().unwrap().len(), 1, "{recorded}");

    server.until(job, "it is carried out", |job| job["state"] == "completed").await;
    let seen = application.seen();
    assert_eq!((seen.len(), &*seen[0].id, &*seen[0].subject), (1, id, "note/42"));
    assert_eq!(seen[0].data.get(), DATA, "the data keeps its bytes");

    let answer = server.get(&format!("/v1/events/{id}")).await;
    assert!(answer.text.contains(DATA), "{}", answer.text);
    let event = answer.json();
    assert_eq!(
        (&event["type"], &event["subject"], &event["tenant"]),
        (&json!("note.changed"), &json!("note/42"), &json!("ann"))
    );
    let decisions = event["subscriptions"].as_array().unwrap();
    let made = json!([{"id": job, "kind": "search.index", "state": "completed", "held": false}]);
    assert!(decisions.contains(&json!({"subscription": "search", "decision": "became", "jobs": made})));
    assert!(decisions.contains(&json!({"subscription": "german", "decision": "filtered", "field": "lang"})));
    assert!(
        decisions
            .contains(&json!({"subscription": "billing", "decision": "not_matched", "pattern": "order.*"}))
    );
    let shown = server.get(&format!("/v1/jobs/{job}")).await.json();
    assert_eq!((&shown["from_event"], &shown["tenant"]), (&json!(id), &json!("ann")));
    assert_eq!(shown["args"], Value::Null, "the server does not know the kind");

    let trace = place.tidings(&["trace", id]).await.done();
    for expected in
        ["search: became", job, "Attempt 1", "accepted", "`lang` does not hold", "`order.*` does not"]
    {
        assert!(trace.contains(expected), "{expected} is not in\n{trace}");
    }
    let trace = place.tidings(&["trace", id, "--json"]).await.json();
    assert_eq!((&trace["id"], &trace["jobs"][0]["id"]), (&json!(id), &json!(job)));
    assert_eq!(trace["jobs"][0]["attempts"][0]["outcome"], "accepted");
    server.stop().await;
}

async fn the_same_call_twice_records_once(place: &Place) {
    let server = place.serve(&[]).await;
    server.declare("note.changed").await;
    let body = r#"{"type":"note.changed","data":1,"key":"k"}"#;
    let first = server.record(body).await;
    let event = server.get(&format!("/v1/events/{first}?wait=20")).await.json();
    assert_eq!(
        (&event["state"], &event["verdict"]["text"]),
        (&json!("fanned_out"), &json!("Fanned out; it became no job of its own. Nothing to do."))
    );
    let again = server.post("/v1/events", body).await.json();
    assert_eq!(again, json!({"id": first, "state": "fanned_out", "existing": true, "jobs": []}));
    let unkeyed = r#"{"type":"note.changed","data":1}"#;
    let header = [("idempotency-key", "\"k\"")];
    assert_eq!(server.post_with("/v1/events", &header, unkeyed).await.json()["id"], *first);
    let other = r#"{"type":"note.changed","data":2}"#;
    let reused = server.post_with("/v1/events", &header, other).await.problem(422, "idempotency-key-reused");
    assert_eq!((&reused["id"], &reused["field"]), (&json!(first), &json!("key")));
    let both = [("idempotency-key", "l")];
    let two = server.post_with("/v1/events", &both, body).await.problem(422, "invalid-field");
    assert_eq!(two["field"], "key");
    // A key belongs to its tenant.
    let of_ann = server.record(r#"{"type":"note.changed","data":2,"key":"k","tenant":"ann"}"#).await;
    assert_ne!(of_ann, first);
    assert_eq!(server.get("/v1/events").await.json()["events"].as_array().unwrap().len(), 2);
}

async fn of_a_batch_all_are_recorded_or_none(place: &Place) {
    let server = place.serve(&[]).await;
    server.declare("note.changed").await;
    let event = |number: usize| format!(r#"{{"type":"note.changed","data":{number},"key":"k{number}"}}"#);
    let array = |events: Vec<String>| format!(" [{}]", events.join(","));
    let answer = server.post("/v1/events", &array((0..1_000).map(event).collect())).await;
    assert_eq!(answer.status, 202, "{}", answer.text);
    let recorded = answer.json()["events"].as_array().unwrap().clone();
    assert_eq!(recorded.len(), 1_000);
    for number in [0, 999] {
        let id = recorded[number]["id"].as_str().unwrap();
        let shown = server.get(&format!("/v1/events/{id}")).await.json();
        assert_eq!(shown["data"], number, "in the order that was given");
    }
    let again = server.post("/v1/events", &array(vec![event(7)])).await.json();
    assert_eq!(again["events"], json!([{"id": recorded[7]["id"], "existing": true}]));

    let (good, data) = (event(1_000), "x".repeat(262_145));
    for (bad, status, word, field) in [
        (
            r#"{"type":"note.changed","data":"other","key":"k1"}"#.to_owned(),
            422,
            "idempotency-key-reused",
            "[1].key",
        ),
        (r#"{"type":"note.lost","data":1}"#.to_owned(), 422, "undeclared-event-type", "[1].type"),
        (
            r#"{"type":"note.changed","data":1,"tenant":"a\u0007"}"#.to_owned(),
            422,
            "invalid-field",
            "[1].tenant",
        ),
        (r#"{"type":"note.changed","data":"\ud800"}"#.to_owned(), 422, "invalid-field", "[1].data"),
        (format!(r#"{{"type":"note.changed","data":"{data}"}}"#), 422, "invalid-field", "[1].data"),
        (
            r#"{"type":"note.changed","data":1,"occurred_at":"soon"}"#.to_owned(),
            400,
            "malformed-body",
            "[1].occurred_at",
        ),
        (r#"{"type":7,"data":1}"#.to_owned(), 400, "malformed-body", "[1].type"),
    ] {
        let answer = server.post("/v1/events", &array(vec![good.clone(), bad.clone()])).await;
        assert_eq!(answer.problem(status, word)["field"], field, "{}", answer.text);
        // Not even its neighbour's key was taken.
    }
    let fresh = server.post("/v1/events", &array(vec![good])).await.json();
    assert_eq!(fresh["events"][0]["existing"], false, "nothing of the refused batches is there");
    let many = server.post("/v1/events", &array((0..1_001).map(event).collect())).await;
    let detail = many.problem(422, "invalid-field")["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("at most 1000"), "{detail}");
    server.post("/v1/events", "[]").await.problem(422, "invalid-field");
    let wait = server.post("/v1/events?wait=1", &array(vec![event(0)])).await;
    assert_eq!(wait.problem(400, "invalid-parameter")["field"], "wait");
    let key = server.post_with("/v1/events", &[("idempotency-key", "k")], &array(vec![event(0)])).await;
    assert_eq!(key.problem(400, "invalid-parameter")["field"], "Idempotency-Key");
}

async fn events_are_listed_in_pages_newest_first(place: &Place) {
    let server = place.serve(&[]).await;
    server.declare("note.changed").await;
    server.declare("note.removed").await;
    let mut ids = Vec::new();
    for (type_name, subject, tenant) in [
        ("note.changed", "note/1", "a"),
        ("note.removed", "note/1", "b"),
        ("note.changed", "note/2 ü", "a"),
        ("note.changed", "note/1", "b"),
    ] {
        let body =
            format!(r#"{{"type":"{type_name}","subject":"{subject}","tenant":"{tenant}","data":null}}"#);
        ids.insert(0, server.record(&body).await);
    }
    let mut seen = Vec::new();
    let mut path = "/v1/events?limit=3".to_owned();
    loop {
        let page = server.get(&path).await;
        let document = page.json();
        seen.extend(document["events"].as_array().unwrap().iter().map(|event| event["id"].clone()));
        if document["next_cursor"].is_null() {
            break;
        }
        path = page.header("link").trim_start_matches('<').split('>').next().unwrap().to_owned();
    }
    assert_eq!(seen, ids);
    for (query, count) in [
        ("type=note.changed", 3),
        ("subject=note/1&tenant=b", 2),
        ("subject=note%2F2%20%C3%BC", 1),
        ("tenant=c", 0),
        ("state=poisoned", 0),
    ] {
        let found = server.get(&format!("/v1/events?{query}")).await.json();
        assert_eq!(found["events"].as_array().unwrap().len(), count, "{query}");
    }
    let settled = |backlog: &Value| backlog["waiting"] == 0;
    let backlog = server.until_at("/v1/backlog", "all are fanned out", PATIENCE, settled).await;
    assert_eq!(
        (&backlog["oldest_at"], &backlog["poisoned"], &backlog["alert"]),
        (&Value::Null, &json!(0), &Value::Null)
    );
    let fanned_out = server.get("/v1/events?state=fanned_out").await.json();
    assert_eq!(fanned_out["events"].as_array().unwrap().len(), 4);
}

async fn types_and_subscriptions_are_declared_changed_and_removed(place: &Place) {
    let server = place.serve(&[]).await;
    let _application = Application::start(place).await;
    let declared = server
        .post("/v1/event-types", r#"{"name":"order.paid","description":"Paid.","exposure":"external"}"#)
        .await;
    assert_eq!(
        (declared.status, declared.json()),
        (200, json!({"name": "order.paid", "description": "Paid.", "exposure": "external"}))
    );
    server.declare("note.changed").await;
    server.declare("order.paid").await;
    let types = server.get("/v1/event-types").await.json();
    assert_eq!(
        types["event_types"],
        json!([
            {"name": "note.changed", "description": "", "exposure": "internal"},
            {"name": "order.paid", "description": "", "exposure": "internal"},
        ])
    );

    let path = "/v1/subscriptions/search";
    server.get(path).await.problem(404, "no-such-subscription");
    let body = r#"{"pattern":"note.*","becomes":{"job":"search.index"}}"#;
    let made = server.send("PUT", path, body).await;
    let document = json!({
        "name": "search", "pattern": "note.*", "filter": [], "becomes": {"job": "search.index"}, "coalesce": false,
    });
    assert_eq!((made.status, made.json()), (201, document.clone()));
    assert_eq!(server.send("PUT", path, &made.text).await.status, 200, "what is shown can be sent back");
    assert_eq!(server.get(path).await.json(), document);
    let more = r#""coalesce":true,"filter":[{"field":"a.b","prefix":"D"}],"pattern""#;
    let changed = body.replace(r#""pattern""#, more);
    let answer = server.send("PUT", path, &changed).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let all = server.get("/v1/subscriptions").await.json();
    assert_eq!(all["subscriptions"][0]["filter"], json!([{"field": "a.b", "prefix": "D"}]));
    assert_eq!(all["subscriptions"][0]["coalesce"], true);
    assert_eq!(server.send("DELETE", path, "").await.status, 204);
    server.send("DELETE", path, "").await.problem(404, "no-such-subscription");
    assert_eq!(server.get("/v1/subscriptions").await.json(), json!({"subscriptions": []}));
}

#[tokio::test]
async fn what_cannot_be_subscribed_says_what_there_is() {
    let place = Place::sqlite();
    let server = place.serve(&[]).await;
    server.declare("note.changed").await;
    let call = r#"{"pattern":"*","becomes":{"job":"http.call"}}"#;
    let refused = server.send("PUT", "/v1/subscriptions/s", call).await.problem(422, "invalid-field");
    assert!(refused["detail"].as_str().unwrap().contains("a request and not an event"), "{refused}");
    for (name, body, status, word, field, part) in [
        (
            "s",
            r#"{"pattern":"notes.*","becomes":{"job":"search.index"}}"#,
            422,
            "invalid-field",
            "pattern",
            "declared are: note.changed",
        ),
        (
            "s",
            r#"{"pattern":"*","becomes":{"job":"mail.sned"}}"#,
            422,
            "invalid-field",
            "becomes",
            "known kinds are: http.call",
        ),
        (
            "s",
            r#"{"pattern":"*","becomes":{"expanded":"all"}}"#,
            422,
            "invalid-field",
            "becomes",
            "the expander `all`",
        ),
        (
            "s",
            r#"{"pattern":"*","becomes":{"mail":"x"}}"#,
            400,
            "malformed-body",
            "becomes",
            "expected `job` or `expanded`",
        ),
        (
            "s",
            r#"{"pattern":"a**","becomes":{"job":"search.index"}}"#,
            400,
            "malformed-body",
            "pattern",
            "`*` stands for a word",
        ),
        ("s", r#"{"pattern":"*"}"#, 400, "malformed-body", "becomes", "missing field"),
        (
            "s",
            r#"{"pattern":"*","becomes":{"job":"search.index"},"filter":[{"field":"a"}]}"#,
            422,
            "invalid-field",
            "filter[0]",
            "`equals` and `prefix`",
        ),
        (
            "s",
            r#"{"name":"t","pattern":"*","becomes":{"job":"search.index"}}"#,
            422,
            "invalid-field",
            "name",
            "differs",
        ),
        ("S%20", r#"{"pattern":"*","becomes":{"job":"search.index"}}"#, 422, "invalid-field", "", "1 to 128"),
    ] {
        let answer = server.send("PUT", &format!("/v1/subscriptions/{name}"), body).await;
        assert_eq!(answer.status, status, "{body}: {}", answer.text);
        let problem = answer.problem(status, word);
        assert_eq!(problem["field"].as_str().unwrap_or_default(), field, "{body}: {problem}");
        assert!(problem["detail"].as_str().unwrap().contains(part), "{body}: {problem}");
    }
    assert_eq!(server.get("/v1/subscriptions").await.json(), json!({"subscriptions": []}));
}

#[tokio::test]
async fn an_event_that_cannot_be_taken_names_its_field() {
    let place = Place::sqlite();
    let server = place.serve(&[]).await;
    server.declare("note.changed").await;
    server.declare("note.removed").await;
    let undeclared = server.post("/v1/events", r#"{"type":"note.lost","data":1}"#).await;
    let problem = undeclared.problem(422, "undeclared-event-type");
    assert_eq!(
        (&problem["field"], &problem["known"]),
        (&json!("type"), &json!(["note.changed", "note.removed"]))
    );
    let event = |more: &str| format!(r#"{{"type":"note.changed","data":1{more}}}"#);
    let long = "x".repeat(262_145);
    let deep = format!("{}{}", "[".repeat(65), "]".repeat(65));
    for (body, status, word, field, part) in [
        (r#"{"data":1}"#.to_owned(), 400, "malformed-body", json!("type"), "missing"),
        (r#"{"type":"note.changed"}"#.to_owned(), 400, "malformed-body", json!("data"), "missing"),
        (event(r#","colour":"red""#), 400, "malformed-body", json!("colour"), "unknown field"),
        (event(r#","occurred_at":"soon""#), 400, "malformed-body", json!("occurred_at"), "RFC 3339"),
        ("{".to_owned(), 400, "malformed-body", Value::Null, "not JSON"),
        (
            r#"{"type":"Note Changed","data":1}"#.to_owned(),
            422,
            "invalid-field",
            json!("type"),
            "dotted words",
        ),
        (
            format!(r#"{{"type":"note.changed","data":"{long}"}}"#),
            422,
            "invalid-field",
            json!("data"),
            "at most 262144",
        ),
        (
            format!(r#"{{"type":"note.changed","data":{deep}}}"#),
            422,
            "invalid-field",
            json!("data"),
            "64 levels",
        ),
        (
            event(&format!(r#","subject":"{}""#, "x".repeat(513))),
            422,
            "invalid-field",
            json!("subject"),
            "at most 512",
        ),
        (event(&format!(r#","key":"{}""#, "x".repeat(1_025))), 422, "invalid-field", json!("key"), "1024"),
        (event(r#","key":"""#), 422, "invalid-field", json!("key"), "is empty"),
    ] {
        let answer = server.post("/v1/events", &body).await;
        assert_eq!(answer.status, status, "{}", answer.text);
        let problem = answer.problem(status, word);
        assert_eq!(problem["field"], field, "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains(part), "{part}: {problem}");
    }
    let huge = server.post("/v1/events", &event(&format!(r#","subject":"{}""#, "x".repeat(4_200_000)))).await;
    assert!(huge.problem(413, "body-too-large")["detail"].as_str().unwrap().contains("4194304"));
    assert_eq!(server.get("/v1/events").await.json()["events"], json!([]), "nothing was recorded");

    let id = "evt_0198c0de000070008000000000000001";
    for path in [format!("/v1/events/{id}"), format!("/v1/events/{id}?wait=1"), "/v1/events/7".to_owned()] {
        server.get(&path).await.problem(404, "no-such-event");
    }
    server.post(&format!("/v1/events/{id}/requeue"), "").await.problem(404, "no-such-event");
    for (path, field) in [
        ("/v1/events?state=done", "state"),
        ("/v1/events?limit=201", "limit"),
        ("/v1/events?cursor=a0198c0de000070008000000000000001", "cursor"),
        ("/v1/incidents?state=closed", "state"),
    ] {
        assert_eq!(server.get(path).await.problem(400, "invalid-parameter")["field"], field);
    }
    server.post("/v1/events?wait=31", &event("")).await.problem(400, "invalid-parameter");
}
