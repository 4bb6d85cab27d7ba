//! A row that does not read as a job (a newer program's, or a hand's) stops nobody else.

use crate::draft::{Draft, job, jobs};
use crate::fixture::Fresh;
use tidings::core::id::JobId;
use tidings::core::unique::UniqueStates;
use tidings::store::{JobFilter, StoreError};

/// Makes the rows unreadable in a way that no constraint sees.
async fn damage(store: &Fresh, ids: &[JobId], set: &str) {
    for id in ids {
        let id = store.place().literal(*id);
        store.sql(&format!("UPDATE tidings.job SET {set} WHERE id = {id}")).await.unwrap();
    }
}

fn keyed(count: usize) -> Vec<tidings::store::NewJob> {
    (0..count).map(|n| job().unique(&format!("{n}"), UniqueStates::KEPT)).collect()
}

/// UP2.
#[tokio::test]
async fn jobs_that_cannot_be_read_do_not_keep_others_from_being_taken() {
    let store = super::open().await;
    let bad = store.put(keyed(7)).await;
    damage(&store, &bad, "unique_states = 30000").await;
    let good = store.put(jobs(3)).await;
    assert_eq!(store.take_ids(1).await, good[..1], "even one at a time");
    assert_eq!(store.take_ids(10).await, good[1..]);
    assert!(store.take_ids(10).await.is_empty());
    assert_eq!(store.number("SELECT count(*) FROM tidings.job WHERE state = 'pending'").await, 7);
}

#[tokio::test]
async fn leases_that_cannot_be_read_do_not_keep_others_from_being_ended() {
    let store = super::open().await;
    store.put(keyed(7)).await;
    let bad: Vec<JobId> = store.take_ids(7).await;
    damage(&store, &bad, "came_from = 'nowhere'").await;
    let good = store.running_one().await.id;
    let swept: Vec<JobId> = store.sweep_all(1).await.iter().map(|job| job.id).collect();
    assert_eq!(swept, [good]);
    assert!(store.sweep_all(10).await.is_empty());
}

#[tokio::test]
async fn whoever_asks_for_the_job_itself_is_told_what_is_wrong_with_which_row() {
    let store = super::open().await;
    let ids = store.put(keyed(2)).await;
    damage(&store, &ids[..1], "unique_states = 30000").await;
    let problem = store.load(&ids[..1]).await.unwrap_err();
    assert!(matches!(problem, StoreError::CorruptRow { .. }), "{problem}");
    assert!(problem.to_string().contains(&ids[0].to_string()), "{problem}");
    assert_eq!(store.job(ids[1]).await.id, ids[1]);
}

#[tokio::test]
async fn a_list_leaves_it_out_and_shows_the_others() {
    let store = super::open().await;
    let ids = store.put(keyed(5)).await;
    damage(&store, &ids[3..], "unique_states = 30000").await;
    let listed = store.list(&JobFilter { limit: 2, ..JobFilter::default() }).await.unwrap();
    assert_eq!(listed.iter().map(|job| job.id).collect::<Vec<_>>(), [ids[2], ids[1]]);
}
