//! What is recorded, declared and looked at of events.

use crate::draft::{Draft, NOW, job};
use crate::event_draft::{Becomes as Into, EventDraft, Notes, declared, done, event, events, with_types};
use crate::fixture::Fresh;
use std::sync::Arc;
use tidings::core::event::{EventId, Exposure, TypeName};
use tidings::core::relay::{Backlog, RelayState};
use tidings::core::route::{Becomes, Subscription, Test};
use tidings::core::time::Millis;
use tidings::core::unique::UniqueStates;
use tidings::random;
use tidings::store::outbox::{Batch, EventFilter, IncidentSource, KeptKind, Recorded, StoredEvent};
use tidings::store::{Prune, StoreError};

async fn open() -> Fresh {
    with_types(super::open().await).await
}

fn any(limit: usize) -> EventFilter {
    EventFilter { limit, ..EventFilter::default() }
}

fn ids(events: &[StoredEvent]) -> Vec<EventId> {
    events.iter().map(|stored| stored.event.id).collect()
}

/// PE1, PE5.
#[tokio::test]
async fn an_event_reads_back_as_it_was_recorded_with_every_byte_of_its_data() {
    let store = open().await;
    for data in [
        "null",
        r#"{ "n": 0.1e1, "big": [9223372036854775807, 18446744073709551616, 1.0] }"#,
        r#"{"a":"x\u0000y","b":"\ud83d\ude00","c":"ü"}"#,
    ] {
        let mut new = event().subject("note/ü").tenant("acme").data(data);
        new.event.occurred_at = NOW - Millis::from_hours(3);
        let id = store.note(vec![new.clone()]).await[0];
        let stored = store.noted(id).await;
        assert_eq!(stored.event, new.event);
        assert_eq!(stored.recorded_at, NOW);
        assert_eq!(stored.state, RelayState::Waiting { due_at: NOW, failures: 0, reason: None });
        assert_eq!(stored.became, None);
    }
}

#[tokio::test]
async fn events_of_a_batch_are_written_in_the_order_in_which_they_were_given() {
    let store = open().await;
    let ids = store.note(events(1_000)).await;
    let mut stored: Vec<StoredEvent> = store.events(&ids).await.unwrap().into_iter().flatten().collect();
    assert_eq!(stored.iter().map(|stored| stored.event.id).collect::<Vec<_>>(), ids);
    assert!(stored.is_sorted_by_key(|stored| stored.seq));
    stored.dedup_by_key(|stored| stored.seq);
    assert_eq!(stored.len(), 1_000);
}

#[tokio::test]
async fn an_event_of_an_undeclared_type_takes_its_whole_batch_with_it() {
    let store = open().await;
    let problem = store.record(vec![event(), event().of_type("note.chnaged")], NOW).await.unwrap_err();
    assert!(matches!(problem, StoreError::Refused(_)), "{problem}");
    let with_key = vec![event().once("key", "call"), event().of_type("note.chnaged")];
    store.record(with_key, NOW).await.unwrap_err();
    assert_eq!(store.number("SELECT count(*) FROM tidings.event").await, 0);
    let again = store.note_one(event().once("key", "call")).await;
    assert!(matches!(again, Recorded::New(_)), "the key was given up with it: {again:?}");
}

#[tokio::test]
async fn the_same_recording_again_is_answered_with_the_first_event_and_another_one_is_refused() {
    let store = open().await;
    let first = store.note(vec![event().once("key", "call")]).await[0];
    assert_eq!(store.note_one(event().once("key", "call")).await, Recorded::Existing(first));
    assert_eq!(store.note_one(event().once("key", "another")).await, Recorded::KeyReused(first));
    let tenants = store.note_one(event().once("key", "another").tenant("acme")).await;
    assert!(matches!(tenants, Recorded::New(_)), "a key belongs to its tenant");
    // The word may be used for a job, too.
    store.put(vec![job().once("key", "call")]).await;
    let batch = [("k", "1"), ("l", "1"), ("k", "1"), ("k", "2")].map(|(key, call)| event().once(key, call));
    let [k, l] = [batch[0].event.id, batch[1].event.id];
    let answers = store.record(batch.to_vec(), NOW).await.unwrap();
    let expected = [Recorded::New(k), Recorded::New(l), Recorded::Existing(k), Recorded::KeyReused(k)];
    assert_eq!(answers, expected);
}

#[tokio::test]
async fn a_batch_that_is_recorded_together_is_there_whole_or_not_at_all() {
    let store = open().await;
    let first = store.note(vec![event().once("key", "call")]).await[0];
    let reused = vec![event(), event().once("fresh", "call"), event().once("key", "another")];
    let answers = store.record_together(reused, NOW).await.unwrap();
    assert_eq!(answers[2], Recorded::KeyReused(first));
    assert_eq!(store.number("SELECT count(*) FROM tidings.event").await, 1);
    let again = vec![event(), event().once("fresh", "call"), event().once("key", "call")];
    let answers = store.record_together(again, NOW).await.unwrap();
    assert!(matches!(answers[1], Recorded::New(_)), "its key was not taken either");
    assert_eq!(answers[2], Recorded::Existing(first));
    assert_eq!(store.number("SELECT count(*) FROM tidings.event").await, 3);
}

#[tokio::test]
async fn a_list_is_newest_first_in_pages_and_by_what_is_asked_for() {
    let store = open().await;
    let new = vec![
        event().subject("note/1").tenant("a"),
        event().subject("note/2").tenant("a"),
        event().of_type("other.thing").subject("note/1").tenant("b"),
        event(),
    ];
    let all = store.note(new).await;
    store.relay(1).await;
    let newest_first: Vec<EventId> = all.iter().rev().copied().collect();
    assert_eq!(ids(&store.list_events(&any(10)).await.unwrap()), newest_first);
    assert_eq!(ids(&store.list_events(&any(2)).await.unwrap()), newest_first[..2]);
    let next = EventFilter { before: Some(newest_first[1]), ..any(10) };
    assert_eq!(ids(&store.list_events(&next).await.unwrap()), newest_first[2..]);
    for (filter, expected) in [
        (EventFilter { state: "fanned_out".into(), ..any(10) }, vec![all[0]]),
        (EventFilter { state: "waiting".into(), ..any(10) }, vec![all[3], all[2], all[1]]),
        (EventFilter { type_name: "other.thing".into(), ..any(10) }, vec![all[2]]),
        (EventFilter { subject: "note/1".into(), ..any(10) }, vec![all[2], all[0]]),
        (EventFilter { tenant: "a".into(), subject: "note/2".into(), ..any(10) }, vec![all[1]]),
        (EventFilter { state: "poisoned".into(), ..any(10) }, vec![]),
    ] {
        assert_eq!(ids(&store.list_events(&filter).await.unwrap()), expected, "{filter:?}");
    }
}

#[tokio::test]
async fn events_come_in_the_order_asked_for_and_none_for_an_id_that_is_not_there() {
    let store = open().await;
    let recorded = store.note(events(2)).await;
    let nobody = EventId(random::job_id(NOW).0);
    let asked = [recorded[1], nobody, recorded[0], recorded[1]];
    let found = store.events(&asked).await.unwrap();
    let found: Vec<Option<EventId>> =
        found.iter().map(|found| found.as_ref().map(|stored| stored.event.id)).collect();
    assert_eq!(found, [Some(recorded[1]), None, Some(recorded[0]), Some(recorded[1])]);
}

#[tokio::test]
async fn declaring_a_type_again_changes_what_is_said_of_it() {
    let store = super::open().await;
    let mut order = declared("order.paid");
    order.description = "Money came".into();
    store.declare_event_types(&[order.clone(), declared("a.first")], NOW).await.unwrap();
    assert_eq!(store.event_types().await.unwrap(), [declared("a.first"), order.clone()], "by name");
    order.exposure = Exposure::External;
    store.declare_event_types(std::slice::from_ref(&order), NOW).await.unwrap();
    assert_eq!(store.event_types().await.unwrap(), [declared("a.first"), order]);
}

#[tokio::test]
async fn a_subscription_reads_back_in_full_and_is_replaced_by_its_name() {
    let store = super::open().await;
    let index = Subscription::to_job("index", "note.*", "search.index").unwrap().coalescing();
    let paid = Subscription::to_expander("hooks", "*", "webhooks")
        .unwrap()
        .only("order.status", Test::Equals(serde_json::json!({"deep": [1, "x"]})))
        .only("country", Test::Prefix("D".into()));
    store.keep_subscriptions(&[index.clone(), paid.clone()]).await.unwrap();
    assert_eq!(store.subscriptions().await.unwrap(), [paid.clone(), index], "by name");
    let other = Subscription::to_job("index", "other.*", "other.kind").unwrap();
    assert_eq!(other.becomes, Becomes::Job("other.kind".into()));
    store.keep_subscriptions(std::slice::from_ref(&other)).await.unwrap();
    assert_eq!(store.subscriptions().await.unwrap(), [paid, other.clone()]);
    store.remove_subscription("hooks").await.unwrap();
    store.remove_subscription("hooks").await.unwrap();
    assert_eq!(store.subscriptions().await.unwrap(), [other]);
}

#[tokio::test]
async fn kinds_are_kept_and_replaced_by_their_name() {
    let store = super::open().await;
    let kind = |name: &str, queue: &str, priority| KeptKind {
        name: name.into(),
        queue: queue.into(),
        priority,
        unique_states: UniqueStates::UNFINISHED,
    };
    store.keep_kinds(&[kind("b", "q", 1), kind("a", "q", 4)]).await.unwrap();
    store.keep_kinds(&[kind("b", "other", 2)]).await.unwrap();
    assert_eq!(store.kept_kinds().await.unwrap(), [kind("a", "q", 4), kind("b", "other", 2)]);
}

/// Programs that start at once declare the same things in any order.
#[tokio::test(flavor = "multi_thread")]
async fn many_who_declare_at_once_do_not_wait_in_a_circle() {
    let store = super::open().await;
    let names: Vec<String> = (0..40).map(|n| format!("type.n{n}")).collect();
    let many = (0..8).map(|turn| {
        let (store, mut names) = (store.handle(), names.clone());
        names.rotate_left(turn * 5);
        tokio::spawn(async move {
            let types: Vec<_> = names.iter().map(|name| declared(name)).collect();
            let subscription = |name: &String| Subscription::to_job(name, name, "demo").unwrap();
            let subscriptions: Vec<_> = names.iter().map(subscription).collect();
            store.declare_event_types(&types, NOW).await.unwrap();
            store.keep_subscriptions(&subscriptions).await.unwrap();
        })
    });
    for done in futures_util::future::join_all(many).await {
        done.unwrap();
    }
    assert_eq!(store.event_types().await.unwrap().len(), 40);
}

#[tokio::test]
async fn a_backlog_is_counted_up_to_a_bound_and_its_age_is_that_of_the_oldest_which_may_be_due_later() {
    let store = open().await;
    assert_eq!(store.backlog(10).await.unwrap(), Backlog::default());
    let old = store.note(vec![event()]).await[0];
    let read = store.noted(old).await;
    let due_later =
        RelayState::Waiting { due_at: NOW + Millis(60_000), failures: 5, reason: Some("503".into()) };
    assert!(store.save_event(&read, &due_later, random::job_id(NOW).0, NOW).await.unwrap());
    store.record(events(4), NOW + Millis(10_000)).await.unwrap();
    let backlog = |waiting, poisoned| Backlog { waiting, oldest_at: Some(NOW), poisoned };
    assert_eq!(store.backlog(100).await.unwrap(), backlog(5, 0));
    assert_eq!(store.backlog(5).await.unwrap(), backlog(5, 0));
    assert_eq!(store.backlog(3).await.unwrap().waiting, 3);
    let poisoned = RelayState::Poisoned { at: NOW, reason: "no".into() };
    let read = store.noted(old).await;
    assert!(store.save_event(&read, &poisoned, random::job_id(NOW).0, NOW).await.unwrap());
    let after = Backlog { waiting: 4, oldest_at: Some(NOW + Millis(10_000)), poisoned: 1 };
    assert_eq!(store.backlog(100).await.unwrap(), after);
}

#[tokio::test]
async fn a_state_is_written_over_the_one_that_was_read_only() {
    let store = open().await;
    let id = store.note(vec![event()]).await[0];
    let read = store.noted(id).await;
    let failed =
        |failures| RelayState::Waiting { due_at: NOW + Millis(1), failures, reason: Some("why".into()) };
    let incident = || random::job_id(NOW).0;
    assert!(store.save_event(&read, &failed(1), incident(), NOW).await.unwrap());
    assert_eq!(store.noted(id).await.state, failed(1));
    assert!(
        !store.save_event(&read, &failed(1), incident(), NOW).await.unwrap(),
        "another one failed it meanwhile"
    );
    let read = store.noted(id).await;
    assert_eq!(store.relay(10).await, []);
    let passed = store.fan_out(Batch::One(id), NOW, Arc::new(Into(0))).await.unwrap();
    assert_eq!(done(passed), [id]);
    let poisoned = RelayState::Poisoned { at: NOW, reason: "late".into() };
    assert!(!store.save_event(&read, &poisoned, incident(), NOW).await.unwrap(), "it is fanned out");
    assert!(store.incidents(true, 10).await.unwrap().is_empty(), "and nothing is said of it");
}

#[tokio::test]
async fn an_event_that_is_set_aside_has_an_incident_until_it_is_put_back() {
    let store = open().await;
    let id = store.note(vec![event()]).await[0];
    for round in 1..=2 {
        let read = store.noted(id).await;
        let poisoned = RelayState::Poisoned { at: NOW, reason: format!("no such kind, {round}") };
        assert!(store.save_event(&read, &poisoned, random::job_id(NOW).0, NOW).await.unwrap());
        let open = store.incidents(false, 10).await.unwrap();
        let [incident] = &open[..] else { panic!("{open:?}") };
        assert_eq!((&*incident.source, &incident.subject, incident.times), ("event", &id.to_string(), 1));
        assert_eq!(incident.reason, format!("no such kind, {round}"));
        let read = store.noted(id).await;
        let again = read.state.requeued(NOW).unwrap();
        assert!(store.save_event(&read, &again, random::job_id(NOW).0, NOW).await.unwrap());
        assert!(store.incidents(false, 10).await.unwrap().is_empty());
        assert_eq!(store.incidents(true, 10).await.unwrap().len(), round, "each opening is kept");
    }
}

#[tokio::test]
async fn an_open_incident_is_one_however_often_it_is_seen() {
    let store = super::open().await;
    let seen = async |reason: &str, at| {
        store
            .open_incident(random::job_id(NOW).0, IncidentSource::Backlog, "relay", reason, at)
            .await
            .unwrap();
    };
    seen("1,001 wait", NOW).await;
    seen("2,000 wait", NOW + Millis(5)).await;
    let open = store.incidents(false, 10).await.unwrap();
    let [incident] = &open[..] else { panic!("{open:?}") };
    assert_eq!((&*incident.reason, incident.times), ("2,000 wait", 2));
    assert_eq!((incident.opened_at, incident.seen_at, incident.closed_at), (NOW, NOW + Millis(5), None));
    store.close_incident(IncidentSource::Backlog, "relay", NOW + Millis(9)).await.unwrap();
    store.close_incident(IncidentSource::Backlog, "relay", NOW + Millis(10)).await.unwrap();
    assert!(store.incidents(false, 10).await.unwrap().is_empty());
    assert_eq!(store.incidents(true, 10).await.unwrap()[0].closed_at, Some(NOW + Millis(9)));
    seen("again", NOW + Millis(20)).await;
    let all = store.incidents(true, 10).await.unwrap();
    assert_eq!((all.len(), &*all[0].reason, all[0].times), (2, "again", 1), "newest first");
}

/// B6.
#[tokio::test]
async fn only_events_that_are_fanned_out_long_ago_are_removed() {
    let store = open().await;
    let all = store.note(events(5)).await;
    store.relay(3).await;
    let read = store.noted(all[3]).await;
    let poisoned = RelayState::Poisoned { at: NOW, reason: "no".into() };
    store.save_event(&read, &poisoned, random::job_id(NOW).0, NOW).await.unwrap();
    assert_eq!(store.prune(Prune::Events(NOW), 10).await.unwrap(), 0, "not before");
    let later = NOW + Millis::from_days(100);
    assert_eq!(store.prune(Prune::Events(later), 2).await.unwrap(), 2, "a few at a time");
    assert_eq!(store.prune(Prune::Events(later), 10).await.unwrap(), 1);
    assert_eq!(ids(&store.list_events(&any(10)).await.unwrap()), [all[4], all[3]]);
    assert_eq!(store.number("SELECT count(*) FROM tidings.job").await, 3, "the jobs are there still");
}

/// DB13.
#[tokio::test(flavor = "multi_thread")]
async fn several_who_prune_events_at_once_remove_each_once() {
    let store = open().await;
    store.note(events(600)).await;
    store.relay(1_000).await;
    let later = NOW + Millis::from_days(100);
    let pruning = (0..6).map(|_| {
        let store = store.handle();
        tokio::spawn(async move {
            let mut removed = 0;
            for _ in 0..6 {
                removed += store.prune(Prune::Events(later), 50).await.unwrap();
            }
            removed
        })
    });
    let mut removed = 0;
    for pruned in futures_util::future::join_all(pruning).await {
        removed += pruned.unwrap();
    }
    removed += store.prune(Prune::Events(later), 1_000).await.unwrap();
    assert_eq!((removed, store.number("SELECT count(*) FROM tidings.event").await), (600, 0));
}

#[tokio::test]
async fn an_event_whose_type_was_declared_elsewhere_is_taken() {
    let store = open().await;
    let other = store.another().await;
    other.declare_event_types(&[declared("new.one")], NOW).await.unwrap();
    let new = event().of_type("new.one");
    assert_eq!(new.event.type_name, TypeName::new("new.one").unwrap());
    store.note(vec![new]).await;
}
