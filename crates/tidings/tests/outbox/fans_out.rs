//! From a recorded event to its jobs.

use super::open;
use crate::fixture::{
    Index, Place, Seen, became, declare, drain, index_of_notes, jobs, keep, note, record, relay, seen,
    waiting,
};
use serde_json::json;
use tidings::core::route::{Subscription, Test};
use tidings::store::outbox::EventFilter;
use tidings::{Record, Tidings, testing};

async fn started(place: &Place, seen: &Seen<Index>) -> Tidings {
    let tidings = place.tidings(Tidings::builder().kind(Seen::clone(seen), keep));
    declare(&tidings, &[index_of_notes()]).await;
    tidings
}

#[tokio::test]
async fn an_event_becomes_the_job_of_its_subscription_and_says_which() {
    let (place, got) = (open().await, Seen::default());
    let tidings = started(&place, &got).await;
    let note = record(&tidings, Record::json("note.changed", r#"{"n": 0.1e1}"#).subject("note/1")).await;
    let other = record(&tidings, Record::json("other.thing", "null")).await;
    assert_eq!(relay(&tidings).await, 2);
    assert_eq!(relay(&tidings).await, 0, "once");
    assert_eq!(drain(&tidings).await, 1);
    let got = seen(&got);
    assert_eq!((got.len(), &*got[0].subject, &*got[0].id), (1, "note/1", &*note.to_string()));
    let job = tidings.job(jobs(&tidings, note).await[0]).await.unwrap().unwrap();
    assert!(job.args.contains(r#""data":{"n": 0.1e1}"#), "the data keeps its bytes: {}", job.args);
    assert_eq!(became(&tidings, other).await, json!([]));
}

/// B5.
#[tokio::test]
async fn two_thousand_changes_coalesce_by_subject_within_each_batch_of_two_hundred() {
    let (place, got) = (open().await, Seen::default());
    let tidings = started(&place, &got).await;
    for _ in 0..2 {
        let change =
            |n: usize| Record::json("note.changed", n.to_string()).subject(format!("note/{}", n % 50));
        tidings.record_all((0..1_000).map(change).collect()).await.unwrap();
    }
    testing::watch_backlog(&tidings).await.unwrap();
    assert_eq!(tidings.incidents(false, 10).await.unwrap().len(), 1, "the alert is up");
    assert_eq!(relay(&tidings).await, 2_000);
    testing::watch_backlog(&tidings).await.unwrap();
    assert_eq!(tidings.incidents(false, 10).await.unwrap().len(), 0, "and down again by itself");
    // Ten batches, fifty subjects each.
    assert_eq!(drain(&tidings).await, 500);
    let filter = EventFilter { state: "fanned_out".into(), limit: 5_000, ..EventFilter::default() };
    assert_eq!(tidings.events(&filter).await.unwrap().len(), 2_000);
}

/// OR2: the latest is told by the order in which events were written, not by when they are due.
#[tokio::test]
async fn a_change_that_had_to_wait_never_stands_for_a_newer_one() {
    let (place, got) = (open().await, Seen::default());
    let tidings = started(&place, &got).await;
    let broken = Subscription::to_job("index", "note.*", "not.yet").unwrap().coalescing();
    tidings.declare(&[], &[broken]).await.unwrap();
    let old = record(&tidings, note(1)).await;
    assert_eq!(relay(&tidings).await, 0);
    let (due_at, ..) = waiting(&tidings, old).await.unwrap();
    tidings.declare(&[], &[index_of_notes()]).await.unwrap();
    place.clock.set(due_at - tidings::Millis(1));
    let new = record(&tidings, note(1)).await;
    place.clock.set(due_at);
    assert_eq!(relay(&tidings).await, 2);
    let coalesced = json!([{"subscription": "index", "became": "coalesced", "into": new.to_string()}]);
    assert_eq!(became(&tidings, old).await, coalesced);
    assert_eq!(became(&tidings, new).await, json!([{"subscription": "index", "became": "matched"}]));
    assert_eq!((drain(&tidings).await, &*seen(&got)[0].id), (1, &*new.to_string()));
}

#[tokio::test]
async fn a_filter_keeps_events_out_and_the_event_says_which_condition_did() {
    let (place, got) = (open().await, Seen::default());
    let tidings = started(&place, &got).await;
    let only =
        index_of_notes().only("state", Test::Equals(json!("public"))).only("n", Test::Equals(json!(1)));
    tidings.declare(&[], &[only]).await.unwrap();
    let event = |data: serde_json::Value| Record::new("note.changed", &data).subject("note/1");
    let kept = record(&tidings, event(json!({"state": "public", "n": 1}))).await;
    let other = record(&tidings, event(json!({"state": "draft", "n": 1}))).await;
    let second = record(&tidings, event(json!({"state": "public"}))).await;
    assert_eq!(relay(&tidings).await, 3);
    assert_eq!(became(&tidings, kept).await, json!([{"subscription": "index", "became": "matched"}]));
    let filtered = |field| json!([{"subscription": "index", "became": "filtered", "field": field}]);
    assert_eq!(became(&tidings, other).await, filtered("state"));
    assert_eq!(became(&tidings, second).await, filtered("n"), "what is filtered stands for nothing");
    assert_eq!(drain(&tidings).await, 1);
}

#[tokio::test]
async fn each_subscription_gets_its_own_job_and_one_that_is_forgotten_gets_none() {
    let (place, got) = (open().await, Seen::default());
    let tidings = started(&place, &got).await;
    let all = Subscription::to_job("all", "*", "search.index").unwrap();
    tidings.declare(&[], &[all]).await.unwrap();
    let both = record(&tidings, note(1)).await;
    let one = record(&tidings, Record::json("other.thing", "{}")).await;
    assert_eq!(relay(&tidings).await, 2);
    let own = jobs(&tidings, both).await;
    assert_eq!((own.len(), jobs(&tidings, one).await.len()), (2, 1));
    assert_ne!(own[0], own[1]);
    tidings.unsubscribe("all").await.unwrap();
    let after = record(&tidings, note(2)).await;
    relay(&tidings).await;
    assert_eq!(jobs(&tidings, after).await.len(), 1);
    assert_eq!(drain(&tidings).await, 4);
}

#[tokio::test]
async fn a_job_has_the_tenant_of_its_event_and_the_queue_and_priority_of_its_kind() {
    let (place, got) = (open().await, Seen::default());
    let builder = Tidings::builder().kind(Seen::<Index>::clone(&got), keep);
    let tidings = place.tidings(builder.configure("search.index", Some("slow".into()), None));
    declare(&tidings, &[index_of_notes()]).await;
    let id = record(&tidings, note(1).tenant("acme")).await;
    relay(&tidings).await;
    let view = tidings.job(jobs(&tidings, id).await[0]).await.unwrap().unwrap();
    assert_eq!((&*view.job.tenant, &*view.job.queue), ("acme", "slow"));
    // Two tenants' notes of one name are two notes.
    record(&tidings, note(1).tenant("acme")).await;
    record(&tidings, note(1).tenant("other")).await;
    relay(&tidings).await;
    assert_eq!(drain(&tidings).await, 3);
}
