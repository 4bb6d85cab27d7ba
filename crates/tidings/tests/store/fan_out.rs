//! Fanning out: each event exactly once, its jobs and its mark in one transaction.

use crate::draft::{Draft, NOW, job};
use crate::event_draft::{
    Becomes, EventDraft, Notes, Planned, declared, done, event, events, order, relay_all, with_types,
};
use crate::fixture::Fresh;
use std::collections::BTreeSet;
use std::sync::Arc;
use tidings::core::event::{Event, EventId};
use tidings::core::relay::RelayState;
use tidings::core::route::Subscription;
use tidings::core::time::Millis;
use tidings::core::unique::UniqueStates;
use tidings::random;
use tidings::store::outbox::{Batch, FanOut, KeptKind, Known, Passed, Plan, Unplanned};
use tidings::store::{JobFilter, StoreError};

async fn open() -> Fresh {
    with_types(super::open().await).await
}

async fn jobs(store: &Fresh) -> i64 {
    store.number("SELECT count(*) FROM tidings.job").await
}

async fn waiting(store: &Fresh) -> i64 {
    store.number("SELECT count(*) FROM tidings.event WHERE state = 'waiting'").await
}

#[tokio::test]
async fn an_event_gets_its_jobs_and_its_mark_together_and_once() {
    let store = open().await;
    let ids = store.note(events(3)).await;
    let plan = Planned(|events: &[Event], _: &Known| {
        let plan = |(n, event): (usize, &Event)| Plan {
            jobs: vec![job().args(&format!("\"{}\"", event.id)), job().queue(&format!("q{n}"))],
            became: format!("[{n}]"),
        };
        Ok(events.iter().enumerate().map(plan).collect())
    });
    let passed = store.fan_out(Batch::Due(2), NOW, Arc::new(plan)).await.unwrap();
    let queues = ["default", "q0", "q1"].map(String::from).to_vec();
    assert_eq!(passed, Passed::Done { events: ids[..2].to_vec(), queues, next_due: None });
    assert_eq!(jobs(&store).await, 4);
    for (n, id) in ids[..2].iter().enumerate() {
        let stored = store.noted(*id).await;
        assert_eq!(stored.state, RelayState::FannedOut { at: NOW });
        assert_eq!(stored.became, Some(format!("[{n}]")));
    }
    assert_eq!(store.relay(10).await, ids[2..]);
    assert_eq!(store.relay(10).await, [], "once");
}

#[tokio::test]
async fn an_event_that_becomes_nothing_is_fanned_out_as_well() {
    let store = open().await;
    let ids = store.note(events(2)).await;
    let passed = store.fan_out(Batch::Due(10), NOW, Arc::new(Becomes(0))).await.unwrap();
    assert_eq!(passed, Passed::Done { events: ids, queues: vec![], next_due: None });
    assert_eq!((jobs(&store).await, waiting(&store).await), (0, 0));
}

#[tokio::test]
async fn a_pass_takes_at_most_what_it_was_told_and_nothing_that_is_due_later() {
    let store = open().await;
    let ids = store.note(events(250)).await;
    store.record(vec![event()], NOW + Millis(1)).await.unwrap();
    assert_eq!(store.relay(200).await, ids[..200]);
    assert_eq!(store.relay(200).await, ids[200..]);
    assert_eq!(store.relay(200).await, []);
    assert_eq!(waiting(&store).await, 1);
}

/// One that had to wait is older than it looks: it must not stand for a newer event.
#[tokio::test]
async fn events_are_planned_in_the_order_in_which_they_were_written_whenever_they_are_due() {
    let store = open().await;
    let ids = store.note(events(3)).await;
    let read = store.noted(ids[0]).await;
    let due_later = RelayState::Waiting { due_at: NOW + Millis(5), failures: 1, reason: Some("503".into()) };
    assert!(store.save_event(&read, &due_later, random::job_id(NOW).0, NOW).await.unwrap());
    assert_eq!(order(&store, Batch::Due(10), NOW).await, ids[1..]);
    let passed = store.fan_out(Batch::Due(0), NOW, Arc::new(Becomes(1))).await.unwrap();
    let next_due = Some(NOW + Millis(5));
    assert_eq!(passed, Passed::Done { events: vec![], queues: vec![], next_due }, "not what is due already");
    assert_eq!(order(&store, Batch::Due(10), NOW + Millis(5)).await, ids);
    let passed = store.fan_out(Batch::Due(10), NOW + Millis(5), Arc::new(Becomes(1))).await.unwrap();
    assert_eq!(done(passed), ids);
    let listed = store.list(&JobFilter { limit: 10, ..JobFilter::default() }).await.unwrap();
    assert_eq!(listed.len(), 3);
}

#[tokio::test]
async fn one_event_is_taken_by_its_name_whether_it_is_due_or_not() {
    let store = open().await;
    let id = store.note(events(2)).await[1];
    let read = store.noted(id).await;
    let due_later = RelayState::Waiting { due_at: NOW + Millis(5_000), failures: 1, reason: None };
    store.save_event(&read, &due_later, random::job_id(NOW).0, NOW).await.unwrap();
    let one = async || done(store.fan_out(Batch::One(id), NOW, Arc::new(Becomes(1))).await.unwrap());
    assert_eq!(one().await, [id]);
    assert_eq!(one().await, [], "once");
}

#[tokio::test]
async fn a_plan_that_fails_leaves_everything_as_it_was_and_says_why() {
    let store = open().await;
    let ids = store.note(events(2)).await;
    let before = store.noted(ids[0]).await;
    let fails = Planned(|_: &[Event], _: &Known| Err(Unplanned::Failed("no such kind".into())));
    let passed = store.fan_out(Batch::Due(10), NOW, Arc::new(fails)).await.unwrap();
    let Passed::Failed { events, reason } = passed else { panic!("{passed:?}") };
    assert_eq!((&events[0], events.len(), &*reason), (&before, 2, "no such kind"));
    let elsewhere = Planned(|_: &[Event], _: &Known| Err(Unplanned::NotHere("an expander".into())));
    let passed = store.fan_out(Batch::Due(10), NOW, Arc::new(elsewhere)).await.unwrap();
    assert_eq!(passed, Passed::LeftAlone { reason: "an expander".into() });
    assert_eq!((store.noted(ids[0]).await, jobs(&store).await), (before, 0));
    assert_eq!(store.relay(10).await, ids);
}

/// The first event's jobs are there when the database refuses the second's.
#[tokio::test]
async fn a_plan_that_the_database_refuses_leaves_nothing_behind() {
    let store = open().await;
    let ids = store.note(events(3)).await;
    let plan = Planned(|events: &[Event], _: &Known| {
        let plan = |(n, _): (usize, &Event)| {
            let new = job();
            // Of the second event, two rows of one id.
            Plan { jobs: vec![new; if n == 1 { 2 } else { 1 }], became: "[]".into() }
        };
        Ok(events.iter().enumerate().map(plan).collect())
    });
    let problem = store.fan_out(Batch::Due(10), NOW, Arc::new(plan)).await.unwrap_err();
    assert!(matches!(problem, StoreError::Refused(_)), "{problem}");
    assert_eq!((jobs(&store).await, waiting(&store).await), (0, 3));
    assert_eq!(store.relay(10).await, ids);
}

/// A subscription that was there before the event gets it, however long ago the relay
/// looked at the subscriptions before.
#[tokio::test]
async fn a_plan_goes_by_what_the_database_knows_after_the_events_were_locked() {
    let store = open().await;
    let subscription = Subscription::to_job("index", "note.*", "demo").unwrap();
    let kind = KeptKind {
        name: "demo".into(),
        queue: "default".into(),
        priority: 2,
        unique_states: UniqueStates::UNFINISHED,
    };
    let (expected, expected_kind) = (subscription.clone(), kind.clone());
    let plan: Arc<dyn FanOut> = Arc::new(Planned(move |events: &[Event], known: &Known| {
        assert_eq!(known.subscriptions, std::slice::from_ref(&expected));
        assert_eq!(known.kinds, std::slice::from_ref(&expected_kind));
        Ok(events.iter().map(|_| Plan { jobs: vec![], became: "[]".into() }).collect())
    }));
    store.keep_subscriptions(&[subscription]).await.unwrap();
    store.keep_kinds(&[kind]).await.unwrap();
    store.note(events(1)).await;
    assert_eq!(done(store.fan_out(Batch::Due(10), NOW, plan).await.unwrap()).len(), 1);
}

/// B3.
#[tokio::test(flavor = "multi_thread")]
async fn eight_relays_fan_two_thousand_events_out_once_each() {
    let store = open().await;
    let mut ids = store.note(events(1_000)).await;
    ids.extend(store.note(events(1_000)).await);
    let mut handles = vec![store.handle(), store.another().await];
    handles.extend((0..6).map(|_| store.handle()));
    let relays = handles
        .into_iter()
        .map(|store| tokio::spawn(async move { relay_all(&*store, Arc::new(Becomes(1))).await }));
    let mut taken: Vec<EventId> = Vec::new();
    for relay in futures_util::future::join_all(relays).await {
        taken.extend(relay.unwrap());
    }
    taken.sort();
    assert_eq!(taken, ids, "each by one relay");
    assert_eq!((jobs(&store).await, waiting(&store).await), (2_000, 0));
    let listed = store.list(&JobFilter { limit: 5_000, ..JobFilter::default() }).await.unwrap();
    let jobs: Vec<_> = listed.iter().map(|job| job.id).collect();
    let args: BTreeSet<String> =
        store.load(&jobs).await.unwrap().iter().flatten().map(|stored| stored.args.to_string()).collect();
    assert_eq!(args, ids.iter().map(|id| format!("\"{id}\"")).collect());
}

/// While relays run, some events fail, some are put back: none is lost, none doubled.
#[tokio::test(flavor = "multi_thread")]
async fn relays_and_failures_at_the_same_time_leave_each_event_in_one_state() {
    let store = open().await;
    let ids = store.note(events(400)).await;
    let failing = {
        let (store, ids) = (store.another().await, ids.clone());
        tokio::spawn(async move {
            let mut set_aside = 0;
            for id in &ids {
                let read = store.events(&[*id]).await.unwrap().remove(0).unwrap();
                let poisoned = RelayState::Poisoned { at: NOW, reason: "no".into() };
                if matches!(read.state, RelayState::Waiting { .. })
                    && store.save_event(&read, &poisoned, random::job_id(NOW).0, NOW).await.unwrap()
                {
                    set_aside += 1;
                }
            }
            set_aside
        })
    };
    let plan: Arc<dyn FanOut> = Arc::new(Becomes(1));
    let mut fanned_out = 0;
    while waiting(&store).await > 0 {
        fanned_out += done(store.fan_out(Batch::Due(7), NOW, Arc::clone(&plan)).await.unwrap()).len();
    }
    let set_aside: usize = failing.await.unwrap();
    assert_eq!(fanned_out + set_aside, 400);
    assert_eq!(jobs(&store).await, i64::try_from(fanned_out).unwrap());
    assert_eq!(store.incidents(false, 1_000).await.unwrap().len(), set_aside);
}

/// A lock that outlives its pass would hide events from the next one, which has another
/// connection. Many at once, so that the database is slow to let go.
#[tokio::test(flavor = "multi_thread")]
async fn a_pass_that_ends_without_a_result_leaves_no_lock_behind() {
    let store = open().await;
    let twice = job();
    let plans: [Arc<dyn FanOut>; 3] = [
        Arc::new(Planned(|_: &[Event], _: &Known| Err(Unplanned::Failed("no".into())))),
        Arc::new(Planned(|_: &[Event], _: &Known| Err(Unplanned::NotHere("no".into())))),
        Arc::new(Planned(move |_: &[Event], _: &Known| {
            Ok(vec![Plan { jobs: vec![twice.clone(); 2], became: "[]".into() }])
        })),
    ];
    let tries = store.note(events(12)).await.into_iter().map(|id| {
        let (store, plans) = (store.handle(), plans.clone());
        tokio::spawn(async move {
            for plan in plans.iter().cycle().take(30) {
                let passed = store.fan_out(Batch::One(id), NOW, Arc::clone(plan)).await;
                let seen = matches!(passed, Err(_) | Ok(Passed::Failed { .. } | Passed::LeftAlone { .. }));
                assert!(seen, "it did not find the event: {passed:?}");
            }
        })
    });
    for tried in futures_util::future::join_all(tries).await {
        tried.unwrap();
    }
}

#[tokio::test]
async fn events_of_two_types_go_in_one_pass() {
    let store = open().await;
    store.declare_event_types(&[declared("third.thing")], NOW).await.unwrap();
    let ids = store.note(vec![event(), event().of_type("third.thing"), event().of_type("other.thing")]).await;
    assert_eq!(store.relay(10).await, ids);
}
