//! Listing jobs: newest first, live and finished as one.

use crate::draft::{Draft, act, job};
use tidings::core::decide::Command;
use tidings::core::id::JobId;
use tidings::core::job::StateName;
use tidings::store::JobFilter;

fn any() -> JobFilter {
    JobFilter { limit: 100, ..JobFilter::default() }
}

#[tokio::test]
async fn a_filter_may_name_state_kind_queue_and_tenant_together() {
    let store = super::open().await;
    let ids = store
        .put(vec![
            job(),
            job().kind("other"),
            job().queue("mail"),
            job().tenant("acme"),
            job().tenant("acme").kind("other"),
            job().tenant("acme").queue("mail"),
        ])
        .await;
    store.done(ids[5], Command::Cancel(act())).await;
    store.take(1).await;
    let acme = || JobFilter { tenant: "acme".into(), ..any() };
    let table: Vec<(JobFilter, Vec<usize>)> = vec![
        (any(), vec![5, 4, 3, 2, 1, 0]),
        (JobFilter { kind: "other".into(), ..any() }, vec![4, 1]),
        (JobFilter { queue: "mail".into(), ..any() }, vec![5, 2]),
        (acme(), vec![5, 4, 3]),
        (JobFilter { kind: "other".into(), ..acme() }, vec![4]),
        (JobFilter { state: Some(StateName::Cancelled), ..acme() }, vec![5]),
        (JobFilter { state: Some(StateName::Running), ..any() }, vec![0]),
        (JobFilter { state: Some(StateName::Pending), ..any() }, vec![4, 3, 2, 1]),
        (JobFilter { state: Some(StateName::Completed), ..any() }, vec![]),
        (JobFilter { tenant: "acme' OR ''='".into(), ..any() }, vec![]),
        (JobFilter { limit: 0, ..any() }, vec![]),
    ];
    for (filter, expected) in table {
        let expected: Vec<JobId> = expected.iter().map(|at| ids[*at]).collect();
        let listed: Vec<JobId> = store.list(&filter).await.unwrap().iter().map(|job| job.id).collect();
        assert_eq!(listed, expected, "{filter:?}");
    }
}

#[tokio::test]
async fn pages_follow_each_other_without_a_gap_or_a_double() {
    let store = super::open().await;
    let mut ids = store.put((0..25).map(|_| job()).collect()).await;
    for id in ids.iter().step_by(3) {
        store.done(*id, Command::Cancel(act())).await;
    }
    let (mut pages, mut before) = (vec![], None);
    for _ in 0..10 {
        let page = store.list(&JobFilter { before, limit: 4, ..any() }).await.unwrap();
        assert!(page.len() <= 4);
        before = page.last().map(|job| job.id).or(before);
        pages.extend(page.iter().map(|job| job.id));
    }
    ids.reverse();
    assert_eq!(pages, ids);
}

#[tokio::test]
async fn what_is_listed_is_what_is_loaded() {
    let store = super::open().await;
    let ids = store.put(vec![job(), job().tenant("acme").priority(1)]).await;
    store.done(ids[0], Command::Cancel(act())).await;
    for listed in store.list(&any()).await.unwrap() {
        assert_eq!(store.job(listed.id).await, listed);
    }
}
