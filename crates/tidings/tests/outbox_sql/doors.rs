//! What the functions take, what they refuse and in which words, and that they share the
//! fate of the transaction that calls them.

use crate::fixture::{Place, place, refusal, text};
use tidings::core::event::EventId;
use tidings::core::limits;
use tidings::core::payload;
use tidings::store::outbox::EventFilter;
use tidings::{IDEMPOTENCY_KEPT, JobId};

#[tokio::test]
async fn the_limits_in_sql_are_those_of_the_core() {
    let place = place().await;
    let expected: [(&str, i64); 8] = [
        ("args_bytes_max", limits::ARGS_BYTES_MAX.try_into().unwrap()),
        ("args_depth_max", limits::ARGS_DEPTH_MAX.try_into().unwrap()),
        ("type_bytes_max", limits::TYPE_BYTES_MAX.try_into().unwrap()),
        ("subject_bytes_max", limits::SUBJECT_BYTES_MAX.try_into().unwrap()),
        ("tenant_bytes_max", limits::TENANT_BYTES_MAX.try_into().unwrap()),
        ("key_bytes_max", limits::KEY_BYTES_MAX.try_into().unwrap()),
        ("run_at_ahead_max_ms", limits::RUN_AT_AHEAD_MAX.0),
        ("idempotency_kept_ms", IDEMPOTENCY_KEPT.0),
    ];
    for (what, number) in expected {
        assert_eq!(place.number(&format!("SELECT tidings.limit_of('{what}')")).await, number, "{what}");
    }
}

#[tokio::test]
async fn what_is_recorded_reads_as_it_was_given() {
    let place = place().await;
    let client = place.client().await;
    let id = text(
        &client,
        r#"SELECT tidings.record('note.created', 'note/é', '{"n": 0.1e1,  "s":"\u0000\ud83d\ude00"}', 'acme',
               occurred_at => '2026-01-02 03:04:05.678+00')"#,
    )
    .await;
    let id: EventId = id.parse().unwrap();
    let stored = place.tidings.event(id).await.unwrap().unwrap();
    assert_eq!(stored.event.data, r#"{"n": 0.1e1,  "s":"\u0000\ud83d\ude00"}"#, "byte for byte");
    assert_eq!((&*stored.event.subject, &*stored.event.tenant), ("note/é", "acme"));
    assert_eq!(stored.event.occurred_at.0, 1_767_323_045_678);
    assert!(place.tidings.now().since(stored.recorded_at).0 < 60_000);

    let id = text(
        &client,
        r#"SELECT tidings.enqueue('letter', '{"to": "ann" }', priority => 1, tenant => 'acme',
               run_at => now() + interval '1 hour')"#,
    )
    .await;
    let view = place.tidings.job(id.parse().unwrap()).await.unwrap().unwrap();
    assert_eq!(&*view.args, r#"{"to": "ann" }"#);
    let job = view.job;
    assert_eq!((&*job.kind, &*job.queue, job.priority.get(), &*job.tenant), ("letter", "mail", 1, "acme"));
    assert_eq!(job.state.due_at(), Some(job.run_at));
    assert!((3_590_000..3_610_000).contains(&job.run_at.since(place.tidings.now()).0));
    let past = "SELECT tidings.enqueue('note', '{}', queue => 'mail', run_at => now() - interval '1 hour')";
    let job = place.tidings.job(text(&client, past).await.parse().unwrap()).await.unwrap().unwrap().job;
    assert_eq!((&*job.queue, job.run_at), ("mail", job.enqueued_at), "what is past is now");
}

#[tokio::test]
async fn what_is_called_in_a_transaction_commits_and_vanishes_with_it() {
    let place = place().await;
    let mut client = place.client().await;
    client.batch_execute("CREATE TABLE thing (id int)").await.unwrap();
    for (commits, expected) in [(false, 0), (true, 1)] {
        let tx = client.transaction().await.unwrap();
        let all = "INSERT INTO thing VALUES (1);
                   SELECT tidings.record('note.changed', 'note/1', '{}', key => 'k');
                   SELECT tidings.enqueue('note', '{}', unique_key => 'u', idempotency_key => 'i')";
        tx.batch_execute(all).await.unwrap();
        if commits {
            tx.commit().await.unwrap();
        } else {
            tx.rollback().await.unwrap();
        }
        for (table, rows) in [("thing", 1), ("tidings.event", 1), ("tidings.job", 1), ("tidings.job_key", 3)]
        {
            let found = place.number(&format!("SELECT count(*) FROM {table}")).await;
            assert_eq!(found, rows * expected, "{table}");
        }
    }
}

/// Part of a query, the code, what the message says, the field.
type Refused = (&'static str, &'static str, &'static str, &'static str);

async fn all_refused(place: &Place, table: &[Refused]) {
    let client = place.client().await;
    for (query, code, message, field) in table {
        let found = refusal(&client, &format!("SELECT tidings.{query}")).await;
        assert_eq!((&*found.0, &*found.2), (*code, *field), "{query}: {found:?}");
        assert!(found.1.contains(message), "{query}: {found:?}");
    }
    assert_eq!(place.number("SELECT count(*) FROM tidings.event").await, 0);
    assert_eq!(place.number("SELECT count(*) FROM tidings.job").await, 0);
    assert_eq!(place.number("SELECT count(*) FROM tidings.job_key").await, 0);
}

#[tokio::test]
async fn an_event_that_the_api_would_refuse_is_refused_with_what_to_do() {
    let table: &[Refused] = &[
        (
            "record('note.gone', '', '{}')",
            "TD001",
            "is not declared; declare it first. Declared types are: note.changed, note.created",
            "type",
        ),
        ("record('Note', '', '{}')", "22023", "write dotted words of a-z", "type"),
        (r"record(E'x\nERROR', '', '{}')", "22023", "`x?ERROR` is not an event type", "type"),
        ("record(NULL, '', '{}')", "22023", "`NULL` is not an event type", "type"),
        ("record('note.changed', NULL, '{}')", "22023", "subject is null", "subject"),
        (r"record('note.changed', E'a\x7f', '{}')", "22023", "subject has control characters", "subject"),
        ("record('note.changed', U&'a\\0085', '{}')", "22023", "subject has control characters", "subject"),
        (
            "record('note.changed', repeat('é', 257), '{}')",
            "22023",
            "subject is 514 bytes long; at most 512",
            "subject",
        ),
        (
            "record('note.changed', '', '{}', repeat('x', 129))",
            "22023",
            "tenant is 129 bytes long; at most 128",
            "tenant",
        ),
        (r"record('note.changed', '', '{}', E'a\tb')", "22023", "tenant has control characters", "tenant"),
        ("record('note.changed', '', '{}', key => '')", "22023", "key is empty; leave it out instead", "key"),
        (
            "record('note.changed', '', '{}', key => repeat('x', 1025))",
            "22023",
            "key is 1025 bytes long",
            "key",
        ),
        (r"record('note.changed', '', '{}', key => E'a\nb')", "22023", "key has control characters", "key"),
        ("record('note.changed', '', NULL)", "22023", "data is null; give JSON", "data"),
        ("record('note.changed', '', '{')", "22P02", "json", ""),
        (
            r#"record('note.changed', '', '{"a":"\ud800"}')"#,
            "22023",
            "data is not taken as JSON: lone surrogate",
            "data",
        ),
        (
            "record('note.changed', '', to_json(repeat('x', 262143)))",
            "22023",
            "data is 262145 bytes long; at most 262144 are taken. Store large data elsewhere",
            "data",
        ),
        (
            "record('note.changed', '', (repeat('[', 65) || repeat(']', 65))::json)",
            "22023",
            "nested deeper than 64 levels",
            "data",
        ),
        (
            "record('note.changed', '', '{}', occurred_at => 'infinity')",
            "22023",
            "occurred_at is infinity",
            "occurred_at",
        ),
    ];
    all_refused(&place().await, table).await;
}

#[tokio::test]
async fn a_job_that_the_api_would_refuse_is_refused_with_what_to_do() {
    let table: &[Refused] = &[
        ("enqueue('gone', '{}')", "TD002", "there is no kind `gone`; known kinds are: letter, note", "kind"),
        ("enqueue(NULL, '{}')", "TD002", "there is no kind `NULL`", "kind"),
        (
            "enqueue('note', '{}', 'gone')",
            "TD003",
            "there is no queue `gone`; known queues are: default, mail",
            "queue",
        ),
        (
            "enqueue('note', '{}', priority => 0)",
            "22023",
            "priority 0 does not exist: write 1 (most urgent), 2, 3 or 4",
            "priority",
        ),
        ("enqueue('note', '{}', priority => 5)", "22023", "priority 5 does not exist", "priority"),
        (
            "enqueue('note', '{}', run_at => now() + interval '101 years')",
            "22023",
            "more than 100 years ahead",
            "run_at",
        ),
        ("enqueue('note', '{}', run_at => '-infinity')", "22023", "run_at is -infinity", "run_at"),
        (
            "enqueue('note', '{}', unique_key => '')",
            "22023",
            "unique_key is empty; leave it out instead",
            "unique_key",
        ),
        (
            "enqueue('note', '{}', unique_key => repeat('x', 1025))",
            "22023",
            "unique_key is 1025 bytes long",
            "unique_key",
        ),
        (
            "enqueue('note', '{}', idempotency_key => '')",
            "22023",
            "idempotency_key is empty",
            "idempotency_key",
        ),
        (
            r"enqueue('note', '{}', idempotency_key => E'\x01')",
            "22023",
            "idempotency_key has control",
            "idempotency_key",
        ),
        ("enqueue('note', '{}', tenant => repeat('x', 129))", "22023", "tenant is 129 bytes long", "tenant"),
        ("enqueue('note', NULL)", "22023", "args is null", "args"),
        (r#"enqueue('note', '["\udc00"]')"#, "22023", "args is not taken as JSON: lone surrogate", "args"),
        ("enqueue('note', to_json(repeat('x', 262143)))", "22023", "args is 262145 bytes long", "args"),
    ];
    all_refused(&place().await, table).await;
}

/// PE1, PE2, PE5, PE8.
#[tokio::test]
async fn sql_takes_the_json_that_the_library_takes_and_no_other() {
    let place = place().await;
    let client = place.client().await;
    let deep =
        |levels: usize, open: &str, close: &str| format!("{}1{}", open.repeat(levels), close.repeat(levels));
    let table = [
        "null".to_owned(),
        r#"{"a":1,"a":2}"#.into(),
        r#"{"a":"\\ud800"}"#.into(),
        r#"{"a":"\\\ud83d\ude00"}"#.into(),
        r#"{"a":"\ud83d\\\ude00"}"#.into(),
        r#"{"\uD800":1}"#.into(),
        r#"["\udc00\ud800"]"#.into(),
        r#"["\ud83d\ud83d\ude00"]"#.into(),
        "1e308".into(),
        "-1e309".into(),
        "1e-400".into(),
        "1E+999".into(),
        "[1e99999999]".into(),
        format!("[{}]", "9".repeat(308)),
        format!("[{}]", "9".repeat(310)),
        format!("[{}e99]", "9".repeat(250)),
        r#"{"hash":"12e345 1e999","b":"[[[[{{{{"}"#.into(),
        deep(64, "[", "]"),
        deep(65, "[", "]"),
        deep(64, r#"{"[":"#, "}"),
        deep(65, r#"{"[":"#, "}"),
        deep(33, r#"[{"a":"#, "}]"),
        format!("[{}0]", "[[]],{},".repeat(1_000)),
        format!("[{}0]", r#""\"[[{{\\","#.repeat(1_000)),
        format!("\"{}\"", "x".repeat(limits::ARGS_BYTES_MAX - 2)),
        format!("\"{}\"", "x".repeat(limits::ARGS_BYTES_MAX - 1)),
        format!("\"{}\"", "é".repeat(limits::ARGS_BYTES_MAX / 2)),
    ];
    for given in table {
        let taken = client
            .query_one("SELECT tidings.record('note.changed', '', $1::text::json)", &[&given])
            .await
            .map(|_| ())
            .map_err(|error| error.as_db_error().unwrap().message().to_owned());
        let expected = payload::check(&given);
        let shown: String = given.chars().take(80).collect();
        assert_eq!(taken.is_ok(), expected.is_ok(), "{shown}: {taken:?}, {expected:?}");
    }
}

#[tokio::test]
async fn ids_parse_and_sort_by_the_order_in_which_they_were_made() {
    let place = place().await;
    let client = place.client().await;
    let before = place.tidings.now();
    let rows = client
        .query("SELECT tidings.record('note.changed', '', '{}') FROM generate_series(1, 2000)", &[])
        .await
        .unwrap();
    let ids: Vec<EventId> = rows.iter().map(|row| row.get::<_, &str>(0).parse().unwrap()).collect();
    assert!(ids.is_sorted());
    let ids: std::collections::BTreeSet<EventId> = ids.into_iter().collect();
    assert_eq!(ids.len(), 2_000);
    for id in &ids {
        assert_eq!((id.0.get_version_num(), id.0.get_variant()), (7, uuid::Variant::RFC4122));
        let ms = i64::try_from(id.0.as_u128() >> 80).unwrap();
        assert!((ms - before.0).abs() < 60_000, "{ms}");
    }
    let filter = EventFilter { limit: 3, ..EventFilter::default() };
    let newest: Vec<EventId> =
        place.tidings.events(&filter).await.unwrap().iter().map(|stored| stored.event.id).collect();
    assert_eq!(newest, ids.iter().rev().take(3).copied().collect::<Vec<_>>());
    let job: JobId = text(&client, "SELECT tidings.enqueue('note', '{}')").await.parse().unwrap();
    assert_eq!(job.0.get_version_num(), 7);
}
