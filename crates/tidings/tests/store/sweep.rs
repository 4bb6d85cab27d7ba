//! Ending attempts whose worker was not heard of again.

use crate::draft::{Draft, LEASE_OVER, NOW, job, take, terms};
use std::collections::HashSet;
use tidings::core::fact::{EndedBy, Fact};
use tidings::core::id::JobId;
use tidings::core::job::{State, StateName};
use tidings::core::time::Millis;
use tidings::store::{NewJob, Take};

#[tokio::test]
async fn only_leases_that_are_over_are_ended() {
    let store = super::open().await;
    let first = store.running_one().await;
    let second = {
        store.put(vec![job().due(NOW + Millis(1))]).await;
        store.take_at(NOW + Millis(1), 1).await.remove(0)
    };
    store.put(vec![job()]).await;
    let swept = store.sweep_all(10).await;
    assert_eq!(swept.iter().map(|job| job.id).collect::<Vec<_>>(), [first.id]);
    assert_eq!(store.job(first.id).await, swept[0]);
    assert_eq!(store.job(second.id).await, second);
    assert!(store.sweep_all(10).await.is_empty());
}

#[tokio::test]
async fn the_end_says_unknown_and_who_ended_it_and_the_policy_decides_what_is_next() {
    let store = super::open().await;
    store.put(vec![job(), job().args("\"hold\"")]).await;
    let jobs = store.take(2).await;
    let swept = store.sweep_all(10).await;
    assert_eq!(swept[0].state.name(), StateName::Unknown);
    assert_eq!(swept[0].state.due_at(), Some(LEASE_OVER + Millis(1_000)), "the policy's first delay");
    assert_eq!(swept[1].state, State::Held);
    for job in &jobs {
        let log = store.log(job.id).await;
        assert!(matches!(&log[0].fact, Fact::AttemptEnded(end) if end.ended_by == EndedBy::Sweep));
    }
    assert_eq!(store.take_at(LEASE_OVER + Millis(1_000), 10).await[0].id, jobs[0].id);
}

#[tokio::test]
async fn a_job_that_kills_its_workers_runs_out_of_its_crash_budget() {
    let store = super::open().await;
    let id = store.running_one().await.id;
    store.sweep_all(1).await;
    let later = LEASE_OVER + Millis(10_000);
    assert_eq!(store.take_at(later, 1).await.len(), 1);
    let over = later + crate::draft::LEASE;
    let swept = store.sweep(over, &["default".into()], 1, &terms(&["demo"])).await.unwrap();
    assert_eq!(swept[0].after.state, State::Discarded { at: over });
    assert_eq!(store.job(id).await, swept[0].after);
}

async fn running_of(store: &crate::fixture::Fresh, jobs: Vec<NewJob>) -> Vec<JobId> {
    let kinds = terms(&["demo", "newer"]);
    let ids = store.put(jobs).await;
    let mut taken = 0;
    for queue in ["default", "mail"] {
        let take = Take { queue: queue.into(), terms: kinds.clone(), ..take(ids.len()) };
        taken += store.take_due(&take).await.unwrap().started.len();
    }
    assert_eq!(taken, ids.len());
    ids
}

/// ST2, MT4.
#[tokio::test]
async fn ten_thousand_leases_of_an_unknown_kind_hide_no_other() {
    let store = super::open().await;
    for _ in 0..10 {
        running_of(&store, (0..1_000).map(|_| job().kind("newer")).collect()).await;
    }
    store.put(vec![job()]).await;
    let last = store.take(1).await.remove(0);
    let swept = store.sweep_all(100).await;
    assert_eq!(swept.iter().map(|job| job.id).collect::<Vec<_>>(), [last.id]);
    assert_eq!(store.number("SELECT count(*) FROM tidings.job WHERE state = 'running'").await, 10_000);
}

#[tokio::test]
async fn the_named_queues_share_the_limit_and_others_are_left_alone() {
    let store = super::open().await;
    let mut given: Vec<NewJob> = (0..5).map(|_| job()).collect();
    given.extend((0..5).map(|_| job().queue("mail")));
    running_of(&store, given).await;
    let kinds = terms(&["demo"]);
    let both = ["default".to_owned(), "mail".into(), "mail".into()];
    assert_eq!(store.sweep(LEASE_OVER, &both[..0], 100, &kinds).await.unwrap().len(), 0);
    assert_eq!(store.sweep(LEASE_OVER, &both, 3, &kinds).await.unwrap().len(), 3);
    assert_eq!(store.sweep(LEASE_OVER, &both[1..], 100, &kinds).await.unwrap().len(), 5);
    assert_eq!(store.sweep(LEASE_OVER, &both, 100, &kinds).await.unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn several_sweepers_at_once_end_each_lease_once() {
    let store = super::open().await;
    let ids: Vec<JobId> = store.running(400).await.iter().map(|job| job.id).collect();
    let mut sweepers = tokio::task::JoinSet::new();
    for sweeper in 0..6 {
        let store = if sweeper % 2 == 0 { store.handle() } else { store.another().await };
        sweepers.spawn(async move {
            let mut swept = vec![];
            for _ in 0..30 {
                let ended = store.sweep(LEASE_OVER, &["default".into()], 25, &terms(&["demo"])).await.unwrap();
                swept.extend(ended.into_iter().map(|change| change.after.id));
            }
            swept
        });
    }
    let swept: Vec<JobId> = sweepers.join_all().await.into_iter().flatten().collect();
    assert_eq!(swept.len(), 400);
    assert_eq!(swept.iter().collect::<HashSet<_>>().len(), 400);
    assert!(store.history(&ids).await.unwrap().iter().all(|log| log.len() == 1));
}

#[tokio::test]
async fn a_paused_queue_is_swept_all_the_same() {
    let store = super::open().await;
    store.running_one().await;
    store.pause("default", NOW, &crate::draft::act()).await.unwrap();
    assert_eq!(store.sweep_all(10).await.len(), 1);
}
