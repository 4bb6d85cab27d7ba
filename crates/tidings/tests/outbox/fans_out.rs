//! From a recorded event to its jobs.

use super::open;
use crate::fixture::internal;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex};
use tidings::core::route::Subscription;
use tidings::events::jobs_of;
use tidings::store::outbox::EventFilter;
use tidings::{Attempt, Declaration, Kind, Outcome, Record, Tidings, testing};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Index {
    id: String,
    subject: String,
    data: serde_json::Value,
}

impl Kind for Index {
    const DECLARATION: Declaration = Declaration::new("search.index");
}

type Seen = Arc<Mutex<Vec<Index>>>;

async fn index(seen: Seen, attempt: Attempt<Index>) -> Outcome {
    seen.lock().unwrap().push(attempt.args);
    Outcome::Accepted
}

async fn started(place: &crate::fixture::Place, seen: &Seen) -> Tidings {
    let tidings = place.tidings(Tidings::builder().kind(Arc::clone(seen), index));
    // Starting workers tells the database which kinds there are; these tests then drain by hand.
    tidings.work().await.unwrap().stop().await;
    let subscription = Subscription::to_job("index", "note.*", "search.index").unwrap().coalescing();
    tidings.declare(&[internal("note.changed"), internal("other.thing")], &[subscription]).await.unwrap();
    tidings
}

#[tokio::test]
async fn an_event_becomes_the_job_of_its_subscription_and_says_which() {
    let (place, seen) = (open().await, Seen::default());
    let tidings = started(&place, &seen).await;
    let note = tidings.record(Record::json("note.changed", r#"{"n": 0.1e1}"#).subject("note/1")).await.unwrap();
    let other = tidings.record(Record::json("other.thing", "null")).await.unwrap();
    assert_eq!(testing::relay(&tidings).await.unwrap(), 2);
    assert_eq!(testing::relay(&tidings).await.unwrap(), 0, "once");
    assert_eq!(testing::drain(&tidings).await.unwrap(), 1);
    let got = seen.lock().unwrap().clone();
    assert_eq!((got.len(), &*got[0].subject, &*got[0].id), (1, "note/1", &*note.id.to_string()));
    let event = tidings.event(note.id).await.unwrap().unwrap();
    let job = tidings.job(jobs_of(&event)[0]).await.unwrap().unwrap();
    assert!(job.args.contains(r#""data":{"n": 0.1e1}"#), "the data keeps its bytes: {}", job.args);
    let other = tidings.event(other.id).await.unwrap().unwrap();
    assert_eq!(other.became.as_deref(), Some("[]"));
}

#[tokio::test]
async fn two_thousand_changes_coalesce_by_subject_within_each_batch_of_two_hundred() {
    let (place, seen) = (open().await, Seen::default());
    let tidings = started(&place, &seen).await;
    for _ in 0..2 {
        let records = (0..1_000).map(|n| Record::json("note.changed", n.to_string()).subject(format!("note/{}", n % 50)));
        tidings.record_all(records.collect()).await.unwrap();
    }
    testing::watch_backlog(&tidings).await.unwrap();
    assert_eq!(tidings.incidents(false, 10).await.unwrap().len(), 1, "the alert is up");
    assert_eq!(testing::relay(&tidings).await.unwrap(), 2_000);
    testing::watch_backlog(&tidings).await.unwrap();
    assert_eq!(tidings.incidents(false, 10).await.unwrap().len(), 0, "and down again by itself");
    // Ten batches, fifty subjects each.
    assert_eq!(testing::drain(&tidings).await.unwrap(), 500);
    let filter = EventFilter { state: "fanned_out".into(), limit: 5_000, ..EventFilter::default() };
    assert_eq!(tidings.events(&filter).await.unwrap().len(), 2_000);
}

#[tokio::test]
async fn an_undeclared_type_is_refused_with_the_declared_ones() {
    let (place, seen) = (open().await, Seen::default());
    let tidings = started(&place, &seen).await;
    let refusal = tidings.record(Record::json("note.chnaged", "{}")).await.unwrap_err().to_string();
    assert!(refusal.contains("`note.chnaged` is not declared") && refusal.contains("note.changed"), "{refusal}");
}
