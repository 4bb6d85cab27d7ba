//! From SQL to a worker.

use crate::fixture::{events, place, text};
use std::time::Duration;
use tidings::core::job::StateName;
use tidings::core::outcome::AttemptOutcome;
use tidings::core::route::Subscription;
use tidings::events::jobs_of;
use tidings::store::Wake;
use tidings::store::outbox::EventFilter;
use tidings::{JobId, Waited};

#[tokio::test(flavor = "multi_thread")]
async fn a_job_enqueued_by_sql_is_carried_out_by_a_worker_and_its_history_is_right() {
    let place = place().await;
    let workers = place.tidings.work().await.unwrap();
    let client = place.client().await;
    let id: JobId =
        text(&client, r#"SELECT tidings.enqueue('note', '{"text": "hello"}', unique_key => 'u')"#)
            .await
            .parse()
            .unwrap();
    client.query("SELECT tidings.wake()", &[]).await.unwrap();
    let Waited::Settled(job) = place.tidings.wait(id, Duration::from_secs(20)).await.unwrap() else {
        panic!("nobody took it")
    };
    assert_eq!(job.state.name(), StateName::Completed);
    assert_eq!(*place.seen.lock().unwrap(), [(id, "hello".to_owned())]);
    let view = place.tidings.job(id).await.unwrap().unwrap();
    let outcomes: Vec<_> = view
        .attempts
        .iter()
        .map(|attempt| (attempt.attempt, attempt.end.as_ref().unwrap().outcome))
        .collect();
    assert_eq!(outcomes, [(1, AttemptOutcome::Accepted)]);
    assert_eq!(place.number("SELECT count(*) FROM tidings.job_key").await, 0, "its key is free again");
    workers.stop().await;
}

#[tokio::test]
async fn an_event_recorded_by_sql_and_one_of_a_trigger_become_jobs() {
    let place = place().await;
    let client = place.client().await;
    client
        .batch_execute(
            "CREATE TABLE page (id int);
             SELECT tidings.emit_on_change('page', '{id}', 'note.created', '''page/'' || id');
             INSERT INTO page VALUES (1);
             SELECT tidings.record('note.created', 'note/2', '{\"a\": 1}')",
        )
        .await
        .unwrap();
    // Due by the server's clock, of which the process's reading may be a moment behind.
    let mut fanned_out = 0;
    while fanned_out < 2 {
        fanned_out += tidings::testing::relay(&place.tidings).await.unwrap();
        tokio::task::yield_now().await;
    }
    assert_eq!(fanned_out, 2);
    let filter = EventFilter { limit: 9, ..EventFilter::default() };
    for event in place.tidings.events(&filter).await.unwrap() {
        let job = place.tidings.job(jobs_of(&event)[0]).await.unwrap().unwrap();
        assert!(
            job.args.contains(&event.event.subject) && job.args.contains(&event.event.data),
            "{}",
            job.args
        );
    }
    assert_eq!(events(&client).await.len(), 2);
}

#[tokio::test]
async fn a_wake_reaches_whoever_listens_and_nothing_else_announces() {
    let place = place().await;
    let mut heard = place.tidings.store().listen().unwrap();
    assert_eq!(heard.recv().await, Some(Wake::Queue(String::new())), "it listens");
    let client = place.client().await;
    // What it says to itself when it begins to listen comes before this.
    client.batch_execute("SELECT pg_notify('tidings', 'q:the-start')").await.unwrap();
    while heard.recv().await.expect("the channel is open") != Wake::Queue("the-start".into()) {}
    // A notification would come before the one that ends this test.
    client
        .batch_execute(
            "SELECT tidings.record('note.created', '', '{}'); SELECT tidings.enqueue('note', '{}')",
        )
        .await
        .unwrap();
    client.batch_execute("SELECT pg_notify('tidings', 'q:the-end')").await.unwrap();
    assert_eq!(heard.recv().await, Some(Wake::Queue("the-end".into())));
    client.query("SELECT tidings.wake()", &[]).await.unwrap();
    assert_eq!(heard.recv().await, Some(Wake::Queue(String::new())), "every queue");
    assert_eq!(heard.recv().await, Some(Wake::Events));
}

/// B3 to B6: one statement, from the trigger to the jobs, with the alert up and down again.
#[tokio::test]
async fn two_thousand_changes_in_one_statement_are_fanned_out_in_batches_and_the_alert_clears() {
    let place = place().await;
    let latest = Subscription::to_job("latest", "note.changed", "note").unwrap().coalescing();
    let every = Subscription::to_job("every", "note.changed", "note").unwrap();
    place.tidings.declare(&[], &[latest, every]).await.unwrap();
    let client = place.client().await;
    client
        .batch_execute(
            "CREATE TABLE page (id int PRIMARY KEY, title text);
             INSERT INTO page SELECT n, '' FROM generate_series(1, 2000) AS n;
             SELECT tidings.emit_on_change('page', '{title}', 'note.changed', $$'page/' || (id % 50)$$)",
        )
        .await
        .unwrap();
    assert_eq!(client.execute("UPDATE page SET title = 'new'", &[]).await.unwrap(), 2_000);
    // Due by the server's clock, of which the process's reading may be a moment behind.
    let last_due = place.number("SELECT max(due_at_ms) FROM tidings.event").await;
    while place.tidings.now().0 < last_due {
        tokio::task::yield_now().await;
    }
    tidings::testing::watch_backlog(&place.tidings).await.unwrap();
    assert_eq!(place.tidings.incidents(false, 9).await.unwrap().len(), 1, "the alert is up");
    assert_eq!(tidings::testing::relay(&place.tidings).await.unwrap(), 2_000);
    tidings::testing::watch_backlog(&place.tidings).await.unwrap();
    assert_eq!(place.tidings.incidents(false, 9).await.unwrap().len(), 0, "and down again by itself");
    // Ten batches of fifty subjects for the one, each event for the other.
    assert_eq!(place.number("SELECT count(*) FROM tidings.job").await, 500 + 2_000);
}
