//! The HTTP API: who may call, what is refused and how, lists, receipts.

use crate::fixture::{Place, get, post, request};
use crate::on_both_databases;
use serde_json::{Value, json};

on_both_databases! {
    an_idempotency_key_makes_the_same_call_once,
    a_unique_key_answers_with_the_job_that_has_it,
    a_list_is_given_in_pages_newest_first,
    a_job_runs_no_earlier_than_it_is_told,
}

const CALL: &str =
    r#"{"kind":"http.call","args":{"url":"https://example.com/"},"run_at":"2099-01-01T00:00:00Z"}"#;

async fn an_idempotency_key_makes_the_same_call_once(place: &Place) {
    let server = place.serve(&[]).await;
    let first = server.post_with("/v1/jobs", &[("idempotency-key", "\"order-7\"")], CALL).await;
    assert_eq!(first.status, 202, "{}", first.text);
    assert_eq!(first.json()["existing"], false);
    assert_eq!(first.json()["state"], "pending");
    let id = first.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(first.header("location"), format!("/v1/jobs/{id}"));
    let again = server.post_with("/v1/jobs", &[("idempotency-key", "order-7")], CALL).await;
    assert_eq!(again.status, 202);
    assert_eq!(again.json(), json!({"id": id, "state": "pending", "existing": true}));
    let other = CALL.replace("example.com", "example.org");
    let reused = server.post_with("/v1/jobs", &[("idempotency-key", "order-7")], &other).await;
    assert_eq!(reused.problem(422, "idempotency-key-reused")["id"], id);
    let tenant = CALL.replace(r#""kind""#, r#""tenant":"acme","kind""#);
    let of_another = server.post_with("/v1/jobs", &[("idempotency-key", "order-7")], &tenant).await;
    assert_eq!(of_another.json()["existing"], false, "a key belongs to its tenant");
}

async fn a_unique_key_answers_with_the_job_that_has_it(place: &Place) {
    let server = place.serve(&[]).await;
    let body = CALL.replace(r#""kind""#, r#""unique_key":"invoice-9","kind""#);
    let id = server.enqueue(&body).await;
    let again = server.post("/v1/jobs", &body).await;
    assert_eq!(again.status, 202);
    assert_eq!(again.json(), json!({"id": id, "state": "pending", "existing": true}));
}

async fn a_list_is_given_in_pages_newest_first(place: &Place) {
    let server = place.serve(&[]).await;
    let mut ids = Vec::new();
    for tenant in ["a", "b", "a", "b", "a"] {
        ids.insert(
            0,
            server.enqueue(&CALL.replace(r#""kind""#, &format!(r#""tenant":"{tenant}","kind""#))).await,
        );
    }
    let mut seen = Vec::new();
    let mut path = "/v1/jobs?state=pending&limit=2".to_owned();
    let mut pages = 0;
    loop {
        let page = server.get(&path).await;
        assert_eq!(page.status, 200, "{}", page.text);
        let document = page.json();
        seen.extend(
            document["jobs"].as_array().unwrap().iter().map(|job| job["id"].as_str().unwrap().to_owned()),
        );
        pages += 1;
        let Some(cursor) = document["next_cursor"].as_str() else {
            assert_eq!(page.header("link"), "");
            break;
        };
        let link = page.header("link");
        assert!(link.ends_with(r#"; rel="next""#) && link.contains(cursor), "{link}");
        path = link.trim_start_matches('<').split('>').next().unwrap().to_owned();
    }
    assert_eq!((seen, pages), (ids, 3));
    let of_b = server.get("/v1/jobs?tenant=b").await.json();
    assert_eq!(of_b["jobs"].as_array().unwrap().len(), 2);
    assert_eq!(server.get("/v1/jobs?kind=other").await.json()["jobs"], json!([]));
}

async fn a_job_runs_no_earlier_than_it_is_told(place: &Place) {
    let server = place.serve(&[]).await;
    let body = CALL.replace("2099-01-01T00:00:00Z", "2099-01-01T01:30:00.1239+01:30");
    let id = server.enqueue(&body).await;
    let job = server.get(&format!("/v1/jobs/{id}?wait=0")).await.json();
    assert_eq!(job["due_at"], "2099-01-01T00:00:00.123Z");
    assert_eq!(job["run_at"], job["due_at"]);
    assert_eq!(job["attempts"], json!([]));
    assert_eq!(job["verdict"]["sending_again"], "safe");
}

#[tokio::test]
async fn everything_under_v1_needs_a_good_key() {
    let place = Place::sqlite();
    let server = place.serve(&[]).await;
    for path in ["/v1/jobs", "/v1/queues", "/v1/nothing", "/v1"] {
        let answer = get(server.address(), path).await;
        answer.problem(401, "unauthorized");
        assert_eq!(answer.header("www-authenticate"), "Bearer");
    }
    post(server.address(), "/v1/jobs", CALL).await.problem(401, "unauthorized");
    let cut = &server.key[..server.key.len() - 1];
    for bad in
        ["Bearer".to_owned(), "Bearer ".to_owned(), format!("Basic {}", server.key), format!("Bearer {cut}")]
    {
        let headers = [("authorization", bad)];
        request(server.address(), "GET", "/v1/jobs", &headers, "").await.problem(401, "unauthorized");
    }
    let headers = [("authorization", format!("bearer {}", server.key))];
    assert_eq!(request(server.address(), "GET", "/v1/jobs", &headers, "").await.status, 200);
}

#[tokio::test]
async fn the_log_holds_no_key_no_secret_no_query_and_no_body() {
    let place = Place::sqlite();
    let server = place.serve(&["--allow-private", "--log", "debug,hyper=info"]).await;
    let receiver = testkit::receiver::Receiver::start([testkit::receiver::Step::status(400)]).await;
    let (url, secret) = (receiver.url("/path-s3cret?q=s3cret"), crate::fixture::SECRET);
    let args = format!(
        r#"{{"url":"{url}","headers":{{"authorization":"s3cret"}},"body":"s3cret","secret":"{secret}"}}"#
    );
    let id = server.enqueue(&format!(r#"{{"kind":"http.call","args":{args}}}"#)).await;
    assert_eq!(server.settled(&id).await["state"], "discarded");
    server.get("/v1/jobs?tenant=s3cret").await;
    let log = server.log();
    assert!(log.contains("route=\"/v1/jobs\"") && log.contains("status=202"), "{log}");
    for hidden in ["s3cret", secret, &server.key] {
        assert!(!log.contains(hidden), "{hidden} is in the log\n{log}");
    }
}

#[tokio::test]
async fn an_unknown_kind_or_queue_lists_the_known_ones() {
    let place = Place::sqlite();
    let server = place.serve(&[]).await;
    let kind =
        server.post("/v1/jobs", r#"{"kind":"mail.sned","args":{}}"#).await.problem(422, "unknown-kind");
    assert_eq!((&kind["field"], &kind["known"]), (&json!("kind"), &json!(["http.call"])));
    assert!(kind["detail"].as_str().unwrap().contains("known kinds are: http.call"), "{kind}");
    let body = CALL.replace(r#""kind""#, r#""queue":"fast","kind""#);
    let queue = server.post("/v1/jobs", &body).await.problem(422, "unknown-queue");
    assert_eq!((&queue["field"], &queue["known"]), (&json!("queue"), &json!(["default"])));
}

#[tokio::test]
async fn a_body_that_cannot_be_taken_names_its_field() {
    let place = Place::sqlite();
    let server = place.serve(&[]).await;
    for (body, status, word, field) in [
        ("", 400, "malformed-body", Value::Null),
        ("{", 400, "malformed-body", Value::Null),
        ("[]", 400, "malformed-body", Value::Null),
        (r#"{"args":{}}"#, 400, "malformed-body", json!("kind")),
        (r#"{"kind":"http.call"}"#, 400, "malformed-body", json!("args")),
        (r#"{"kind":7,"args":{}}"#, 400, "malformed-body", json!("kind")),
        (r#"{"kind":"http.call","args":{},"colour":"red"}"#, 400, "malformed-body", json!("colour")),
        (r#"{"kind":"http.call","args":{},"priority":9}"#, 400, "malformed-body", json!("priority")),
        (r#"{"kind":"http.call","args":{},"run_at":"soon"}"#, 400, "malformed-body", json!("run_at")),
        (r#"{"kind":"http.call","args":{}}"#, 422, "invalid-field", json!("args")),
        (r#"{"kind":"http.call","args":{"url":"ftp://x"}}"#, 422, "invalid-field", json!("args.url")),
        (
            r#"{"kind":"http.call","args":{"url":"https://x/","method":"BREW"}}"#,
            422,
            "invalid-field",
            json!("args.method"),
        ),
        (
            r#"{"kind":"http.call","args":{"url":"https://x/","secret":"s3cret"}}"#,
            422,
            "invalid-field",
            json!("args.secret"),
        ),
        (
            r#"{"kind":"http.call","args":{"url":"https://x/"},"tenant":"a\u0007"}"#,
            422,
            "invalid-field",
            json!("tenant"),
        ),
        (
            r#"{"kind":"http.call","args":{"url":"https://x/","body":"\ud800"}}"#,
            422,
            "invalid-field",
            json!("args"),
        ),
    ] {
        let answer = server.post("/v1/jobs", body).await;
        assert_eq!(answer.status, status, "{body}: {}", answer.text);
        let problem = answer.problem(status, word);
        assert_eq!(problem["field"], field, "{body}: {problem}");
        assert!(!problem.to_string().contains("s3cret"), "{problem}");
    }
    assert_eq!(server.get("/v1/jobs").await.json()["jobs"], json!([]), "nothing was enqueued");
}

#[tokio::test]
async fn what_is_no_json_is_refused_by_its_type_and_what_is_too_large_by_its_size() {
    let place = Place::sqlite();
    let server = place.serve(&[]).await;
    let key = ("authorization", format!("Bearer {}", server.key));
    for given in ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", ""] {
        let headers = [key.clone(), ("content-type", given.to_owned())];
        request(server.address(), "POST", "/v1/jobs", &headers, CALL)
            .await
            .problem(415, "unsupported-media-type");
    }
    let headers = [key, ("content-type", "Application/JSON; charset=utf-8".to_owned())];
    assert_eq!(request(server.address(), "POST", "/v1/jobs", &headers, CALL).await.status, 202);
    let large = |bytes: usize| {
        CALL.replace("https://example.com/", &format!("https://x/\",\"body\":\"{}", "x".repeat(bytes)))
    };
    assert_eq!(server.post("/v1/jobs", &large(200_000)).await.status, 202);
    server.post("/v1/jobs", &large(262_200)).await.problem(422, "invalid-field");
    server.post("/v1/jobs", &large(300_000)).await.problem(413, "body-too-large");
}

#[tokio::test]
async fn what_is_not_there_is_a_problem_document_too() {
    let place = Place::sqlite();
    let server = place.serve(&[]).await;
    let id = "job_0198c0de000070008000000000000001";
    for (path, word) in [
        (format!("/v1/jobs/{id}"), "no-such-job"),
        (format!("/v1/jobs/{id}?wait=1"), "no-such-job"),
        ("/v1/jobs/7".to_owned(), "no-such-job"),
        ("/v1/jobs/%ff".to_owned(), "no-such-job"),
        ("/v1/nothing".to_owned(), "no-such-route"),
        ("/".to_owned(), "no-such-route"),
    ] {
        server.get(&path).await.problem(404, word);
    }
    for act in ["retry", "cancel"] {
        server.post(&format!("/v1/jobs/{id}/{act}"), "").await.problem(404, "no-such-job");
        let by_get = server.get(&format!("/v1/jobs/{id}/{act}")).await;
        by_get.problem(405, "method-not-allowed");
        assert_eq!(by_get.header("allow"), "POST");
    }
    for (query, field) in
        [("state=done", "state"), ("limit=0", "limit"), ("limit=201", "limit"), ("cursor=7", "cursor")]
    {
        let problem = server.get(&format!("/v1/jobs?{query}")).await.problem(400, "invalid-parameter");
        assert_eq!(problem["field"], field);
    }
    server.get("/v1/jobs?colour=red").await.problem(400, "invalid-parameter");
    server.get(&format!("/v1/jobs/{id}?wait=31")).await.problem(400, "invalid-parameter");
}
