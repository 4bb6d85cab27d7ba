//! Expanders: many jobs of one event, each for its own receiver.

use super::open;
use crate::fixture::{
    Deliver, Index, Place, Seen, all_jobs, declare, index_of_notes, jobs, keep, note, record, relay, to_each,
    waiting,
};
use std::collections::BTreeMap;
use tidings::core::event::Event;
use tidings::core::route::Subscription;
use tidings::expand::Expanded;
use tidings::{Builder, Record, Tidings};

fn hooks() -> Subscription {
    Subscription::to_expander("hooks", "*", "webhooks").unwrap()
}

fn builder() -> Builder {
    Tidings::builder().kind(Seen::<Index>::default(), keep).kind(Seen::<Deliver>::default(), keep)
}

async fn started(place: &Place) -> Tidings {
    let tidings = place.tidings(builder().expand("webhooks", to_each(&["a", "b", "c"])));
    declare(&tidings, &[index_of_notes(), hooks()]).await;
    tidings
}

/// FO1, C3.
#[tokio::test]
async fn an_expanded_event_becomes_one_job_for_each_receiver() {
    let place = open().await;
    let tidings = started(&place).await;
    let id = record(&tidings, Record::json("other.thing", "{}")).await;
    assert_eq!(relay(&tidings).await, 1);
    assert_eq!(jobs(&tidings, id).await.len(), 3);
    let delivered = all_jobs::<Deliver>(&tidings, "deliver").await;
    assert_eq!(delivered.iter().map(|one| &*one.to).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert!(delivered.iter().all(|one| one.event == id.to_string()));
}

/// B5: while the index takes the latest of each note, webhooks get every one.
#[tokio::test]
async fn two_thousand_changes_coalesce_for_the_index_and_reach_each_receiver_all() {
    let place = open().await;
    let tidings = place.tidings(builder().expand("webhooks", to_each(&["a", "b"])));
    declare(&tidings, &[index_of_notes(), hooks()]).await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        let change = |n: usize| note(n % 50);
        let receipts = tidings.record_all((0..1_000).map(change).collect()).await.unwrap();
        ids.extend(receipts.iter().map(|receipt| receipt.id.to_string()));
    }
    assert_eq!(relay(&tidings).await, 2_000);
    assert_eq!(all_jobs::<Index>(&tidings, "search.index").await.len(), 500);
    let mut by_receiver: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for one in all_jobs::<Deliver>(&tidings, "deliver").await {
        by_receiver.entry(one.to).or_default().push(one.event);
    }
    assert_eq!(by_receiver.len(), 2);
    for (to, events) in by_receiver {
        assert!(events == ids, "{to} gets each once, in the order in which they were recorded");
    }
}

#[tokio::test]
async fn an_expander_that_fails_or_panics_or_makes_nonsense_leaves_the_event_waiting_with_the_reason() {
    let place = open().await;
    let one = |kind: &str, args: &str| Ok(vec![Expanded { kind: kind.into(), args: args.into() }]);
    let expand = move |event: &Event| match &*event.subject {
        "fails" => Err("the list of receivers is locked".into()),
        "panics" => panic!("an expander's mistake"),
        "unknown kind" => one("no.such.kind", "{}"),
        "no JSON" => one("deliver", "{"),
        "a NUL" => one("deliver", "\"\0\""),
        _ => one("deliver", r#"{"to":"a","event":"b"}"#),
    };
    let tidings = place.tidings(builder().expand("webhooks", expand));
    declare(&tidings, &[hooks()]).await;
    for (subject, says) in [
        ("fails", "subscription `hooks` cannot be expanded: the list of receivers is locked"),
        ("panics", "the expander panicked: an expander's mistake"),
        ("unknown kind", "makes jobs of kind `no.such.kind`, which no program carries out"),
        ("no JSON", "is not taken as JSON"),
        ("a NUL", "is not taken as JSON"),
    ] {
        let id = record(&tidings, Record::json("note.changed", "{}").subject(subject)).await;
        assert_eq!(relay(&tidings).await, 0);
        let (_, failures, reason) = waiting(&tidings, id).await.unwrap();
        assert!(failures == 1 && reason.as_ref().is_some_and(|reason| reason.contains(says)), "{reason:?}");
    }
    record(&tidings, note(1)).await;
    assert_eq!(relay(&tidings).await, 1, "and nobody else is stopped");
}

/// UP1: an older program leaves what it cannot do to a newer one, and counts it as nobody's failure.
#[tokio::test]
async fn a_program_without_the_expander_leaves_events_to_one_that_has_it() {
    let place = open().await;
    let newer = started(&place).await;
    let older = place.tidings(Tidings::builder());
    let id = record(&newer, note(1)).await;
    assert_eq!(relay(&older).await, 0);
    assert_eq!(waiting(&newer, id).await, Some((newer.now(), 0, None)), "as it was");
    assert_eq!(relay(&newer).await, 1);
}

/// FO4: who the receivers are is asked at the fan-out, not when the event was recorded.
#[tokio::test]
async fn an_expander_that_makes_nothing_of_an_event_lets_it_go() {
    let place = open().await;
    let tidings = place.tidings(builder().expand("webhooks", to_each(&[])));
    declare(&tidings, &[hooks()]).await;
    let id = record(&tidings, note(1)).await;
    assert_eq!(relay(&tidings).await, 1);
    assert!(jobs(&tidings, id).await.is_empty());
}
