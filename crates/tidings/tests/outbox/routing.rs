//! What is refused as a whole, and what each subscription made of an event.

use super::open;
use crate::fixture::{Place, internal};
use serde::{Deserialize, Serialize};
use tidings::core::relay::RelayState;
use tidings::core::route::{Becomes, Subscription, Test};
use tidings::routing::Decided;
use tidings::store::outbox::EventFilter;
use tidings::{Attempt, Declaration, Kind, Millis, Outcome, Record, RecordRefused, Tidings, testing};

#[derive(Serialize, Deserialize)]
struct Index {
    id: String,
}

impl Kind for Index {
    const DECLARATION: Declaration = Declaration::new("search.index");
}

async fn index((): (), _: Attempt<Index>) -> Outcome {
    Outcome::Accepted
}

async fn started(place: &Place) -> Tidings {
    let tidings = place.tidings(Tidings::builder().kind((), index));
    tidings.work().await.unwrap().stop().await;
    tidings.declare(&[internal("note.changed"), internal("other.thing")], &[]).await.unwrap();
    tidings
}

async fn recorded(tidings: &Tidings) -> usize {
    tidings.events(&EventFilter { limit: 100, ..EventFilter::default() }).await.unwrap().len()
}

fn note(key: &str, data: &str) -> Record {
    Record::json("note.changed", data).key(key)
}

#[tokio::test]
async fn of_a_batch_with_one_refused_event_nothing_is_recorded() {
    let place = open().await;
    let tidings = started(&place).await;
    let first = tidings.record(note("a", "1")).await.unwrap();
    for (batch, refused) in [
        (vec![note("b", "1"), note("a", "2"), note("c", "1")], "[1]: the key was used for another event"),
        (vec![note("b", "1"), note("b", "2")], "[1]: the key was used for another event"),
        (vec![note("b", "1"), Record::json("note.lost", "1")], "[1]: event type `note.lost` is not declared"),
        (vec![note("b", "{"), note("c", "1")], "[0]: data is not taken as JSON"),
    ] {
        let refusal = tidings.record_all(batch).await.unwrap_err();
        assert!(matches!(refusal, RecordRefused::InBatch { .. }), "{refusal:?}");
        assert!(refusal.to_string().starts_with(refused), "{refusal}");
        assert_eq!(recorded(&tidings).await, 1, "{refused}");
    }
    // Not even the keys were taken.
    let batch = vec![note("b", "1"), note("a", "1"), note("c", "1"), note("b", "1")];
    let receipts = tidings.record_all(batch).await.unwrap();
    assert_eq!(
        receipts.iter().map(|receipt| receipt.existing).collect::<Vec<_>>(),
        [false, true, false, true]
    );
    assert_eq!((receipts[1].id, receipts[3].id), (first.id, receipts[0].id));
    assert_eq!(recorded(&tidings).await, 3);
}

#[tokio::test]
async fn a_subscription_is_kept_only_if_somebody_does_what_its_matches_become() {
    let place = open().await;
    let tidings = started(&place).await;
    let good = Subscription::to_job("index", "note.*", "search.index").unwrap();
    for bad in [
        Subscription::to_job("bad", "note.*", "nobody.does").unwrap(),
        Subscription::to_expander("bad", "note.*", "nothing").unwrap(),
        Subscription::to_job("bad", "notes.*", "search.index").unwrap(),
    ] {
        tidings.subscribe(&[good.clone(), bad]).await.unwrap_err();
        assert_eq!(tidings.subscriptions().await.unwrap(), [], "none is kept");
    }
    tidings.subscribe(std::slice::from_ref(&good)).await.unwrap();
    // A program without the kind learns of it from the database.
    let other = place.tidings(Tidings::builder());
    assert_eq!(other.known_kinds().await.unwrap(), ["search.index"]);
    other.subscribe(&[good.coalescing()]).await.unwrap();
}

#[tokio::test]
async fn an_event_says_what_each_subscription_made_of_it_and_why_others_made_nothing() {
    let place = open().await;
    let tidings = started(&place).await;
    let to_index = |name: &str, pattern: &str| Subscription::to_job(name, pattern, "search.index").unwrap();
    tidings
        .subscribe(&[
            to_index("all", "note.*").coalescing(),
            to_index("german", "note.*").only("lang", Test::Equals("de".into())),
            to_index("others", "other.*"),
        ])
        .await
        .unwrap();
    let note = || Record::json("note.changed", r#"{"lang": "en"}"#).subject("note/1");
    let (older, newer) = (tidings.record(note()).await.unwrap(), tidings.record(note()).await.unwrap());
    let decisions = async |id| {
        let stored = tidings.event(id).await.unwrap().unwrap();
        tidings.decisions(&stored).await.unwrap()
    };
    let waiting = decisions(older.id).await;
    assert!(matches!(waiting[0].decided, Decided::ToBecome { problem: None }), "{waiting:?}");

    testing::relay(&tidings).await.unwrap();
    tidings.subscribe(&[to_index("late", "note.changed")]).await.unwrap();
    let [all, german, late, others] = &decisions(older.id).await[..] else { panic!("four") };
    assert!(matches!(all.decided, Decided::Coalesced { into } if into == newer.id), "{all:?}");
    assert!(matches!(&german.decided, Decided::Filtered { field } if field == "lang"), "{german:?}");
    assert!(matches!(late.decided, Decided::CameLater), "{late:?}");
    assert!(matches!(&others.decided, Decided::NotMatched { pattern } if pattern == "other.*"), "{others:?}");
    let made = decisions(newer.id).await;
    let Decided::Became(jobs) = &made[0].decided else { panic!("{made:?}") };
    assert_eq!(jobs[0].job.as_ref().unwrap().kind, "search.index");
}

#[tokio::test]
async fn an_event_that_nobody_can_carry_out_is_set_aside_with_an_incident_until_it_is_put_back() {
    let place = open().await;
    let tidings = started(&place).await;
    let lost = Subscription {
        becomes: Becomes::Job("nobody.does".into()),
        ..Subscription::to_job("lost", "note.*", "search.index").unwrap()
    };
    // As a program that carried it out once has left it.
    tidings.store().keep_subscriptions(&[lost]).await.unwrap();
    let bad = tidings.record(Record::json("note.changed", "1")).await.unwrap();
    let good = tidings.record(Record::json("other.thing", "1")).await.unwrap();
    let event = async |id| tidings.event(id).await.unwrap().unwrap();
    for failures in 1..=10 {
        testing::relay(&tidings).await.unwrap();
        assert!(matches!(event(good.id).await.state, RelayState::FannedOut { .. }), "it blocks no other");
        match event(bad.id).await.state {
            RelayState::Waiting { failures: counted, .. } => assert_eq!(counted, failures),
            RelayState::Poisoned { reason, .. } => {
                assert_eq!(failures, 10);
                assert!(reason.contains("no program carries out"), "{reason}");
            }
            RelayState::FannedOut { .. } => panic!("it cannot be"),
        }
        place.clock.advance(Millis::from_minutes(2));
    }
    let open = tidings.incidents(false, 10).await.unwrap();
    assert_eq!((open.len(), open[0].subject.clone()), (1, bad.id.to_string()));
    let decided = tidings.decisions(&event(bad.id).await).await.unwrap();
    assert!(matches!(&decided[0].decided, Decided::ToBecome { problem: Some(_) }), "{decided:?}");

    tidings.subscribe(&[Subscription::to_job("lost", "note.*", "search.index").unwrap()]).await.unwrap();
    tidings.requeue(bad.id).await.unwrap();
    assert!(matches!(tidings.requeue(bad.id).await, Err(RecordRefused::NotPoisoned(_))));
    assert_eq!(tidings.incidents(false, 10).await.unwrap(), []);
    assert_eq!(testing::relay(&tidings).await.unwrap(), 1);
    assert_eq!(testing::drain(&tidings).await.unwrap(), 1);
}
