//! Keys: one call, one row, whoever calls it and however often at once; the same keys
//! as those of the library and the API.

use crate::fixture::{Note, Place, place, refusal, text};
use std::collections::BTreeSet;
use tidings::core::job::Priority;
use tidings::{Enqueue, EnqueueOptions, Record, RecordRefused, Tidings};
use tokio::task::JoinSet;

const CALLERS: usize = 8;

/// What the query gives to each of eight connections that ask at once, five times each.
async fn raced(place: &Place, query: &'static str) -> BTreeSet<String> {
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let client = place.client().await;
        callers.spawn(async move {
            let mut answers = BTreeSet::new();
            for _ in 0..5 {
                answers.insert(text(&client, query).await);
            }
            answers
        });
    }
    callers.join_all().await.into_iter().flatten().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_taken_once_by_eight_connections_that_race_for_it() {
    let place = place().await;
    let queries = [
        ("SELECT tidings.record('note.changed', 'n', '{}', key => 'k')", "event"),
        ("SELECT tidings.enqueue('note', '{}', idempotency_key => 'k')", "job"),
        ("SELECT tidings.enqueue('note', '{}', unique_key => 'u')", "job"),
        ("SELECT tidings.enqueue('letter', '{}', unique_key => 'u', idempotency_key => 'both')", "job"),
    ];
    let mut jobs = 0;
    for (query, table) in queries {
        assert_eq!(raced(&place, query).await.len(), 1, "{query}");
        jobs += i64::from(table == "job");
    }
    assert_eq!(place.number("SELECT count(*) FROM tidings.event").await, 1);
    assert_eq!(place.number("SELECT count(*) FROM tidings.job").await, jobs);
}

/// Whoever waits for a transaction that has the key gets it when that one is rolled back.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_a_transaction_that_is_rolled_back_is_free_again() {
    let place = place().await;
    let (mut first, second) = (place.client().await, place.client().await);
    let query = "SELECT tidings.enqueue('note', '{}', unique_key => 'u')";
    let tx = first.transaction().await.unwrap();
    let vanished = text(tx.client(), query).await;
    let waiting = tokio::spawn(async move { text(&second, query).await });
    let blocked = "SELECT count(*) FROM pg_stat_activity
                   WHERE datname = current_database() AND wait_event_type = 'Lock'";
    while place.number(blocked).await == 0 {
        tokio::task::yield_now().await;
    }
    tx.rollback().await.unwrap();
    assert_ne!(waiting.await.unwrap(), vanished);
    assert_eq!(place.number("SELECT count(*) FROM tidings.job").await, 1);
}

#[tokio::test]
async fn the_same_call_through_the_library_and_through_sql_is_one() {
    let place = place().await;
    let client = place.client().await;
    let options = EnqueueOptions {
        priority: Some(Priority::FIRST),
        run_at: Some(tidings::Time(1_900_000_000_123)),
        unique_key: Some("unique é".into()),
        tenant: Some("acme".into()),
        idempotency_key: Some("call é".into()),
        ..EnqueueOptions::default()
    };
    let receipt = place.tidings.enqueue_json("note", r#"{"text": "ä"}"#, &options).await.unwrap();
    let same = "SELECT tidings.enqueue('note', '{\"text\": \"ä\"}', 'default', 1,
        to_timestamp(1900000000.123), 'unique é', 'acme', 'call é')";
    assert_eq!(text(&client, same).await, receipt.id.to_string());
    let all =
        ["'note'", "'{\"text\": \"ä\"}'", "'default'", "1", "to_timestamp(1900000000.123)", "'unique é'"];
    for (place, other) in [
        (1, "'{\"text\":\"ä\"}'"),
        (2, "'mail'"),
        (3, "2"),
        (4, "to_timestamp(1900000000.124)"),
        (5, "NULL"),
        (0, "'letter'"),
    ] {
        let mut call = all;
        call[place] = other;
        let query = format!("SELECT tidings.enqueue({}, 'acme', 'call é')", call.join(", "));
        let (code, message, field) = refusal(&client, &query).await;
        assert_eq!((&*code, &*field), ("TD004", "idempotency_key"), "{other}: {message}");
        assert!(
            message.contains(&receipt.id.to_string()) && message.contains("use a fresh key"),
            "{message}"
        );
    }
    let by_unique_key =
        "SELECT tidings.enqueue('note', '{\"text\":\"other\"}', unique_key => 'unique é', tenant => 'acme')";
    assert_eq!(text(&client, by_unique_key).await, receipt.id.to_string());

    // The other way round.
    let id = text(&client, "SELECT tidings.enqueue('note', '{\"text\":\"x\"}', idempotency_key => 'second')")
        .await;
    let again = Enqueue::new(Note { text: "x".into() }).idempotency_key("second");
    let again = place.tidings.enqueue(again).await.unwrap();
    assert_eq!((again.id.to_string(), again.existing), (id, true));
    assert_eq!(place.number("SELECT count(*) FROM tidings.job").await, 2);
}

#[tokio::test]
async fn the_same_event_through_the_library_and_through_sql_is_one() {
    let place = place().await;
    let client = place.client().await;
    let event = |data: &str| Record::json("note.changed", data).subject("note/1").tenant("acme").key("ä");
    let receipt = place.tidings.record(event("{\"a\": 1}")).await.unwrap();
    let same = "SELECT tidings.record('note.changed', 'note/1', '{\"a\": 1}', 'acme', 'ä')";
    assert_eq!(text(&client, same).await, receipt.id.to_string());
    for other in [
        "'note.created', 'note/1', '{\"a\": 1}', 'acme', 'ä'",
        "'note.changed', 'note/2', '{\"a\": 1}', 'acme', 'ä'",
        "'note.changed', 'note/1', '{\"a\":1}', 'acme', 'ä'",
    ] {
        let (code, message, field) = refusal(&client, &format!("SELECT tidings.record({other})")).await;
        assert_eq!((&*code, &*field), ("TD004", "key"), "{other}: {message}");
        assert!(message.contains(&receipt.id.to_string()), "{message}");
    }
    // A key belongs to its tenant, and to events alone.
    for free in ["record('note.changed', '', '{}', '', 'ä')", "enqueue('note', '{}', idempotency_key => 'ä')"]
    {
        let id = text(&client, &format!("SELECT tidings.{free}")).await;
        assert_ne!(id, receipt.id.to_string());
    }
    text(&client, "SELECT tidings.record('note.changed', '', '{}', key => 'second')").await;
    let other = place.tidings.record(Record::json("note.changed", "1").key("second")).await;
    assert!(matches!(other, Err(RecordRefused::KeyReused(_))), "{other:?}");
}

/// A repeated call gets the job that had the unique key, also when that one is done by then.
#[tokio::test]
async fn a_call_that_met_a_unique_job_is_answered_with_that_job_ever_after() {
    let place = place().await;
    let client = place.client().await;
    let first = text(&client, "SELECT tidings.enqueue('note', '{\"text\":\"1\"}', unique_key => 'u')").await;
    let call =
        "SELECT tidings.enqueue('note', '{\"text\":\"2\"}', unique_key => 'u', idempotency_key => 'k')";
    assert_eq!(text(&client, call).await, first);
    assert_eq!(tidings::testing::drain(&place.tidings).await.unwrap(), 1);
    assert_eq!(text(&client, call).await, first, "the same call");
    let fresh = "SELECT tidings.enqueue('note', '{\"text\":\"3\"}', unique_key => 'u')";
    assert_ne!(text(&client, fresh).await, first, "the key is free again");
}

/// Keys are taken in the same order on both ways in, so nobody waits in a circle.
#[tokio::test(flavor = "multi_thread")]
async fn callers_of_sql_and_batches_of_the_library_do_not_wait_in_a_circle() {
    let place = place().await;
    let mut callers = JoinSet::new();
    for caller in 0..4_usize {
        let client = place.client().await;
        callers.spawn(async move {
            for round in 0..40 {
                let (unique, key) = ((round + caller) % 5, (round * 7 + caller) % 11);
                let query = format!(
                    "SELECT tidings.enqueue('note', '{{\"text\":\"{unique}\"}}', unique_key => 'u{unique}',
                        idempotency_key => 'k{unique}-{key}')"
                );
                text(&client, &query).await;
            }
        });
        let tidings: Tidings = place.tidings.clone();
        callers.spawn(async move {
            for round in 0..40 {
                let job = |unique: usize| {
                    let text = unique.to_string();
                    let key = format!("k{unique}-{}", (round * 7 + caller) % 11);
                    Enqueue::new(Note { text }).unique_key(format!("u{unique}")).idempotency_key(key)
                };
                tidings.enqueue_all::<Note>((0..5).rev().map(job)).await.unwrap();
            }
        });
    }
    callers.join_all().await;
    assert_eq!(place.number("SELECT count(*) FROM tidings.job").await, 5);
}
