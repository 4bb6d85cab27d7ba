//! Taking due jobs: each by one worker, most urgent first.

use crate::draft::{Draft, LEASE, NOW, act, job, jobs, take, terms, worker};
use std::collections::HashSet;
use tidings::core::id::JobId;
use tidings::core::job::{Claim, State, Wait};
use tidings::core::policy::OnUnknown;
use tidings::core::time::{Millis, Time};
use tidings::random;
use tidings::store::Take;

#[tokio::test]
async fn only_what_is_due_is_taken() {
    let store = super::open().await;
    let ids = store.put(vec![job(), job().due(NOW + Millis(1)), job().due(NOW - Millis(1))]).await;
    assert_eq!(store.take_ids(10).await, [ids[2], ids[0]]);
    assert!(store.take(10).await.is_empty());
    assert_eq!(store.take_at(NOW + Millis(1), 10).await[0].id, ids[1]);
}

#[tokio::test]
async fn jobs_come_by_priority_then_due_time_then_id_up_to_the_limit() {
    let store = super::open().await;
    let given = vec![
        job().priority(4).due(NOW - Millis(9)),
        job().priority(2).due(NOW - Millis(1)),
        job().priority(2).due(NOW - Millis(5)),
        job().priority(1),
        job().priority(3).due(NOW - Millis(8)),
        job().priority(1),
    ];
    let ids: Vec<JobId> = given.iter().map(|new| new.job.id).collect();
    // In another order than they were made, so that the id decides, not the insert.
    store.put(given.into_iter().rev().collect()).await;
    assert_eq!(store.take_ids(3).await, [ids[3], ids[5], ids[2]]);
    assert_eq!(store.take_ids(2).await, [ids[1], ids[4]]);
    assert_eq!(store.take_ids(2).await, [ids[0]]);
}

#[tokio::test]
async fn a_queue_is_taken_from_alone() {
    let store = super::open().await;
    let ids = store.put(vec![job(), job().queue("mail")]).await;
    let mail = Take { queue: "mail".into(), ..take(10) };
    assert_eq!(store.take_as(&mail).await[0].id, ids[1]);
    assert!(store.take_as(&mail).await.is_empty());
    assert_eq!(store.take_ids(10).await, [ids[0]]);
}

/// UP1, MT4.
#[tokio::test]
async fn a_kind_that_this_process_does_not_know_is_left_alone_and_hides_nothing() {
    let store = super::open().await;
    let newer = store.put((0..50).map(|_| job().kind("newer").priority(1)).collect()).await;
    let known = store.put(vec![job().due(NOW)]).await;
    assert_eq!(store.take_ids(1).await, known);
    assert!(store.take(10).await.is_empty());
    assert_eq!(store.job(newer[0]).await.version, 0);

    let upgraded = Take { terms: terms(&["demo", "newer"]), ..take(100) };
    assert_eq!(store.take_as(&upgraded).await.len(), 50);
}

#[tokio::test]
async fn a_limit_of_none_takes_none() {
    let store = super::open().await;
    store.put(vec![job()]).await;
    assert!(store.take(0).await.is_empty());
    assert!(store.take_as(&Take { terms: terms(&[]), ..take(10) }).await.is_empty());
}

#[tokio::test]
async fn the_claim_stands_on_the_row_before_anybody_works() {
    let store = super::open().await;
    let id = store.put(vec![job()]).await[0];
    let taken = store.take_as(&Take { worker: worker(7), ..take(1) }).await.remove(0);
    let claim = Claim {
        number: 1,
        worker: worker(7),
        started_at: NOW,
        lease_until: NOW + LEASE,
        from: Wait::Fresh,
        on_unknown: OnUnknown::Retry,
    };
    assert_eq!(taken.state, State::Running { claim, cancel_requested: false, accepted_late: false });
    assert_eq!((taken.version, taken.counters.claims), (1, 1));
    assert_eq!(store.job(id).await, taken);
    assert!(store.log(id).await.is_empty(), "an open claim is no fact yet");
}

#[tokio::test]
async fn whether_an_unknown_is_held_is_asked_with_the_arguments_of_each_job() {
    let store = super::open().await;
    store.put(vec![job().args(r#"{"hold":1}"#), job()]).await;
    let held = |state: &State| match state {
        State::Running { claim, .. } => claim.on_unknown,
        other => panic!("{other:?}"),
    };
    let taken = store.take(2).await;
    assert_eq!([held(&taken[0].state), held(&taken[1].state)], [OnUnknown::Hold, OnUnknown::Retry]);
    assert_eq!(held(&store.job(taken[0].id).await.state), OnUnknown::Hold);
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_takers_get_two_thousand_jobs_and_none_twice() {
    let store = super::open().await;
    for _ in 0..2 {
        store.put(jobs(1_000)).await;
    }
    let mut takers = tokio::task::JoinSet::new();
    for taker in 0..8 {
        let store = if taker % 2 == 0 { store.handle() } else { store.another().await };
        takers.spawn(async move {
            let worker = random::worker_id();
            let mut got = vec![];
            // Bounded: each takes at least one as long as there is one that nobody has.
            for _ in 0..2_000 {
                let taken = store.take_due(&Take { worker, ..take(17) }).await.unwrap().started;
                if taken.is_empty() {
                    break;
                }
                got.extend(taken.iter().map(|stored| stored.job.id));
            }
            (worker, got)
        });
    }
    let mut seen = HashSet::new();
    for (worker, got) in takers.join_all().await {
        for stored in store.load(&got).await.unwrap() {
            let job = stored.unwrap().job;
            assert!(matches!(&job.state, State::Running { claim, .. } if claim.worker == worker));
            assert!(seen.insert(job.id), "{} was taken twice", job.id);
        }
    }
    assert_eq!(seen.len(), 2_000);
}

#[tokio::test]
async fn nothing_is_taken_from_a_paused_queue_until_it_is_resumed() {
    let store = super::open().await;
    store.put(vec![job(), job().queue("mail")]).await;
    store.pause("default", NOW, &act()).await.unwrap();
    assert!(store.take(10).await.is_empty());
    assert_eq!(store.take_as(&Take { queue: "mail".into(), ..take(10) }).await.len(), 1);
    store.resume("default").await.unwrap();
    assert_eq!(store.take(10).await.len(), 1);
}

async fn next_due(store: &crate::fixture::Fresh, limit: usize) -> Option<Time> {
    store.take_due(&take(limit)).await.unwrap().next_due
}

#[tokio::test]
async fn who_gets_less_than_asked_for_is_told_when_to_look_again() {
    let store = super::open().await;
    assert_eq!(next_due(&store, 1).await, None);
    let (soon, later) = (NOW + Millis(5), NOW + Millis(50));
    store.put(vec![job().due(later).priority(1), job().due(soon).priority(4), job().queue("mail")]).await;
    assert_eq!(next_due(&store, 1).await, Some(soon));
    store.put(jobs(3)).await;
    assert_eq!(next_due(&store, 3).await, None, "there may be more: look again at once");
    assert_eq!(next_due(&store, 3).await, Some(soon), "running jobs are not due");
}

/// Else a worker would ask again and again without a pause.
#[tokio::test]
async fn what_is_due_but_cannot_be_taken_is_no_reason_to_look_again_at_once() {
    let store = super::open().await;
    store.put(vec![job().kind("newer"), job().kind("newer").due(NOW - Millis(9))]).await;
    assert_eq!(next_due(&store, 1).await, None);
    store.pause("default", NOW, &act()).await.unwrap();
    store.put(vec![job()]).await;
    assert_eq!(next_due(&store, 1).await, None);
    store.put(vec![job().due(NOW + Millis(7))]).await;
    assert_eq!(next_due(&store, 1).await, Some(NOW + Millis(7)));
}

/// The caller's time decides, not the machine's: `now` is the database's clock, or a test's hand.
#[tokio::test]
async fn a_taker_whose_time_is_behind_takes_later_and_one_ahead_takes_earlier() {
    let store = super::open().await;
    store.put(vec![job(), job().due(NOW + Millis(90_000))]).await;
    assert!(store.take_at(NOW - Millis(90_000), 10).await.is_empty());
    let ahead = store.take_at(NOW + Millis(90_000), 10).await;
    assert_eq!(ahead.len(), 2);
    assert!(ahead.iter().all(|job| job.state.due_at() == Some(NOW + Millis(90_000) + LEASE)));
}

/// Whoever is dropped in the middle leaves no lock and no half claim behind.
#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_goes_away_leaves_nothing_locked() {
    let store = super::open().await;
    store.put(jobs(500)).await;
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let store = store.handle();
        callers.spawn(async move { store.take_due(&take(5)).await.map(|taken| taken.started.len()) });
        tokio::task::yield_now().await;
    }
    callers.abort_all();
    while callers.join_next().await.is_some() {}
    // Whatever was claimed is claimed in full; the rest can be had.
    let rest = store.take(500).await.len();
    let running = store.number("SELECT count(*) FROM tidings.job WHERE state = 'running'").await;
    assert_eq!(running, 500, "{rest} were left");
}
