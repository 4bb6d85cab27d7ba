//! At the door: what is taken, what is refused and how that is said, and keys.

use super::open;
use crate::fixture::{Place, declare, event, internal, note, record};
use tidings::core::event::Exposure;
use tidings::core::limits;
use tidings::core::route::Subscription;
use tidings::store::outbox::EventFilter;
use tidings::{Millis, Record, RecordRefused, Tidings, testing};

async fn started(place: &Place) -> Tidings {
    let tidings = place.tidings(Tidings::builder());
    declare(&tidings, &[]).await;
    tidings
}

async fn count(tidings: &Tidings) -> usize {
    tidings.events(&EventFilter { limit: 5_000, ..EventFilter::default() }).await.unwrap().len()
}

#[tokio::test]
async fn an_undeclared_type_is_refused_with_the_declared_ones() {
    let place = open().await;
    let tidings = started(&place).await;
    let refusal = tidings.record(Record::json("note.chnaged", "{}")).await.unwrap_err().to_string();
    let all = refusal.contains("`note.chnaged` is not declared") && refusal.contains("note.changed");
    assert!(all, "{refusal}");
    // Another process declares it: nobody has to be restarted.
    place.tidings(Tidings::builder()).declare(&[internal("note.chnaged")], &[]).await.unwrap();
    tidings.record(Record::json("note.chnaged", "{}")).await.unwrap();
}

/// PE1, PE2, PE7, PE8.
#[tokio::test]
async fn what_cannot_be_kept_is_refused_at_the_door_and_says_what_to_write() {
    let place = open().await;
    let tidings = started(&place).await;
    let data = |data: &str| Record::json("note.changed", data);
    let deep = "[".repeat(10_000) + &"]".repeat(10_000);
    let long = format!("\"{}\"", "x".repeat(limits::ARGS_BYTES_MAX));
    for (bad, says) in [
        (data("{"), "is not taken as JSON"),
        (data(r#"{"a":"\ud800"}"#), "is not taken as JSON"),
        (data(r#"["\udc00"]"#), "is not taken as JSON"),
        (data(&deep), "nested deeper than 64 levels"),
        (data(&long), "at most 262144 are taken"),
        (data("1").subject("x".repeat(513)), "subject is 513 bytes long; at most 512"),
        (data("1").subject("a\0b"), "subject has control characters"),
        (data("1").tenant("t\n"), "tenant has control characters"),
        (data("1").key("k".repeat(1_000_000)), "key is 1000000 bytes long; at most 1024 are taken"),
        (data("1").key(""), "key is empty; leave it out instead"),
        (data("1").key("a\u{1b}"), "key has control characters"),
        (Record::json("Note Changed", "1"), "`Note Changed` is not an event type"),
        (
            Record::new("note.changed", &f64::NAN.to_string().parse::<NoJson>().unwrap()),
            "does not become JSON",
        ),
    ] {
        let refusal = tidings.record(bad).await.unwrap_err().to_string();
        assert!(refusal.contains(says), "{refusal}");
    }
    assert_eq!(count(&tidings).await, 0);
}

/// What serde cannot write.
struct NoJson;

impl std::str::FromStr for NoJson {
    type Err = ();

    fn from_str(_: &str) -> Result<NoJson, ()> {
        Ok(NoJson)
    }
}

impl serde::Serialize for NoJson {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("no"))
    }
}

#[tokio::test]
async fn the_same_recording_again_is_one_event_and_a_key_names_one_call() {
    let place = open().await;
    let tidings = started(&place).await;
    let call = || note(1).key("change-7");
    let first = tidings.record(call()).await.unwrap();
    let again = tidings.record(call()).await.unwrap();
    assert_eq!((first.existing, again.existing, again.id), (false, true, first.id));
    let refused = tidings.record(note(2).key("change-7")).await.unwrap_err();
    assert!(matches!(refused, RecordRefused::KeyReused(id) if id == first.id), "{refused}");
    assert!(!tidings.record(note(2).key("change-7").tenant("acme")).await.unwrap().existing);
    assert_eq!(count(&tidings).await, 2);
    place.clock.advance(Millis::from_hours(72));
    testing::keep_house(&tidings).await.unwrap();
    place.clock.advance(Millis(1));
    testing::keep_house(&tidings).await.unwrap();
    assert!(!tidings.record(call()).await.unwrap().existing, "a key is remembered for 72 h");
}

/// DU4.
#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_recordings_at_once_with_one_key_are_one_event() {
    let place = open().await;
    let one = started(&place).await;
    let two = place.tidings(Tidings::builder());
    let calls = (0..200)
        .map(|n| if n % 2 == 0 { one.record(note(1).key("k")) } else { two.record(note(1).key("k")) });
    let receipts: Vec<_> =
        futures_util::future::join_all(calls).await.into_iter().map(Result::unwrap).collect();
    assert!(receipts.iter().all(|receipt| receipt.id == receipts[0].id));
    assert_eq!(receipts.iter().filter(|receipt| !receipt.existing).count(), 1);
    assert_eq!(count(&one).await, 1);
}

#[tokio::test]
async fn a_batch_is_recorded_whole_or_not_at_all() {
    let place = open().await;
    let tidings = started(&place).await;
    let first = tidings.record(note(1).key("k")).await.unwrap().id;
    let with = |bad: Record| vec![note(2), note(3).key("fresh"), bad, note(4)];
    for bad in [Record::json("no.such.type", "{}"), note(9).key("k"), Record::json("note.changed", "{")] {
        tidings.record_all(with(bad)).await.unwrap_err();
        assert_eq!(count(&tidings).await, 1);
    }
    let receipts = tidings.record_all(with(note(1).key("k"))).await.unwrap();
    assert_eq!(
        receipts.iter().map(|receipt| receipt.existing).collect::<Vec<_>>(),
        [false, false, true, false]
    );
    assert_eq!((receipts[2].id, count(&tidings).await), (first, 4));
    let many = (0..=limits::BATCH_MAX).map(note).collect();
    let refused = tidings.record_all(many).await.unwrap_err();
    assert!(refused.to_string().contains("at most 1000 are taken"), "{refused}");
    assert!(tidings.record_all(vec![]).await.unwrap().is_empty());
}

/// LO14: the answer comes after the commit, also for those who share one.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_acknowledged_is_there_for_another_process_at_once() {
    let place = open().await;
    let (one, two) = (started(&place).await, place.process(Tidings::builder()).await);
    let calls = (0..100).map(|n| {
        let (one, two) = (one.clone(), two.clone());
        async move {
            let id = record(&one, note(n)).await;
            assert_eq!(event(&two, id).await.event.subject, format!("note/{n}"));
        }
    });
    futures_util::future::join_all(calls).await;
}

#[tokio::test]
async fn an_event_happened_when_it_was_recorded_unless_its_caller_says_otherwise() {
    let place = open().await;
    let tidings = started(&place).await;
    let earlier = tidings.now() - Millis::from_days(30);
    let (now, then) = (record(&tidings, note(1)).await, record(&tidings, note(2).occurred_at(earlier)).await);
    assert_eq!(event(&tidings, now).await.event.occurred_at, tidings.now());
    let then = event(&tidings, then).await;
    assert_eq!((then.event.occurred_at, then.recorded_at), (earlier, tidings.now()));
}

/// B2.
#[tokio::test]
async fn a_subscription_that_can_match_nothing_or_coalesces_what_is_expanded_is_refused() {
    let place = open().await;
    let tidings = started(&place).await;
    let typo = Subscription::to_job("index", "notes.*", "search.index").unwrap();
    let refusal = tidings.declare(&[], &[typo]).await.unwrap_err().to_string();
    assert!(refusal.contains("`notes.*`") && refusal.contains("note.changed, other.thing"), "{refusal}");
    let lossy = Subscription::to_expander("hooks", "*", "webhooks").unwrap().coalescing();
    let refusal = tidings.declare(&[], &[lossy]).await.unwrap_err().to_string();
    assert!(refusal.contains("never coalesced"), "{refusal}");
    assert!(tidings.subscriptions().await.unwrap().is_empty());
    let types = tidings.event_types().await.unwrap();
    assert!(types.iter().all(|declared| declared.exposure == Exposure::Internal));
}

#[tokio::test]
async fn a_program_with_a_subscription_that_cannot_be_does_not_open() {
    let place = open().await;
    let typo = Subscription::to_job("index", "notes.*", "search.index").unwrap();
    let builder = Tidings::builder().event_type(internal("note.changed")).subscribe(typo);
    let Err(refused) = builder.open(&place.address).await else { panic!("it opened") };
    assert!(refused.to_string().contains("matches no declared event type"), "{refused}");
}
