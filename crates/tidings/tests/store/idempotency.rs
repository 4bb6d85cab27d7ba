//! Idempotency keys: the same call twice is one job.

use crate::draft::{Draft, NOW, act, job};
use tidings::core::decide::Command;
use tidings::core::id::JobId;
use tidings::core::time::Millis;
use tidings::core::unique::UniqueStates;
use tidings::store::{Inserted, NewJob, Prune};

#[tokio::test]
async fn the_same_call_again_is_answered_with_the_first_job_even_after_it_finished() {
    let store = super::open().await;
    let first = store.put(vec![job().once("key", "call")]).await[0];
    assert_eq!(store.put_one(job().once("key", "call")).await, Inserted::Existing(first));
    store.done(first, Command::Cancel(act())).await;
    assert_eq!(store.put_one(job().once("key", "call")).await, Inserted::Existing(first));
    assert_eq!(store.number("SELECT count(*) FROM tidings.job").await, 0);
}

#[tokio::test]
async fn the_same_key_for_another_call_is_refused_and_names_the_first_job() {
    let store = super::open().await;
    let first = store.put(vec![job().once("key", "call")]).await[0];
    assert_eq!(store.put_one(job().once("key", "another call")).await, Inserted::KeyReused(first));
    assert_eq!(store.number("SELECT count(*) FROM tidings.job").await, 1);
}

/// MT2.
#[tokio::test]
async fn two_tenants_with_the_same_key_get_two_jobs() {
    let store = super::open().await;
    let ids = store
        .put(vec![job().once("key", "call").tenant("a"), job().once("key", "another call").tenant("b")])
        .await;
    let again = store.put_one(job().once("key", "another call").tenant("b")).await;
    assert_eq!(again, Inserted::Existing(ids[1]));
}

#[tokio::test]
async fn a_batch_that_repeats_itself_is_one_job_a_call() {
    let store = super::open().await;
    let batch: Vec<NewJob> =
        ["a", "b", "a", "a"].iter().zip(["1", "1", "1", "2"]).map(|(key, call)| job().once(key, call)).collect();
    let ids: Vec<JobId> = batch.iter().map(|new| new.job.id).collect();
    let expected =
        [Inserted::New(ids[0]), Inserted::New(ids[1]), Inserted::Existing(ids[0]), Inserted::KeyReused(ids[0])];
    assert_eq!(store.insert(batch).await.unwrap(), expected);
}

#[tokio::test]
async fn a_call_whose_unique_key_another_job_has_is_remembered_as_that_job() {
    let store = super::open().await;
    let holder = store.put(vec![job().unique("u", UniqueStates::UNFINISHED)]).await[0];
    let call = || job().unique("u", UniqueStates::UNFINISHED).once("key", "call");
    assert_eq!(store.put_one(call()).await, Inserted::Existing(holder));
    store.done(holder, Command::Cancel(act())).await;
    assert_eq!(store.put_one(call()).await, Inserted::Existing(holder), "the unique key is free, the call is not new");
    assert_eq!(store.put_one(job().once("key", "another")).await, Inserted::KeyReused(holder));
}

/// Every answer names a job that is there.
#[tokio::test]
async fn a_repeated_call_in_the_batch_that_loses_its_unique_key_names_the_holder_too() {
    let store = super::open().await;
    let holder = store.put(vec![job().unique("u", UniqueStates::UNFINISHED)]).await[0];
    let call = || job().unique("u", UniqueStates::UNFINISHED).once("key", "call");
    let answers = store.insert(vec![call(), call(), job().once("key", "another")]).await.unwrap();
    assert_eq!(
        answers,
        [Inserted::Existing(holder), Inserted::Existing(holder), Inserted::KeyReused(holder)]
    );
}

#[tokio::test]
async fn a_replayed_call_touches_no_unique_key() {
    let store = super::open().await;
    let first = store.put(vec![job().once("key", "call")]).await[0];
    let again = job().once("key", "call").unique("u", UniqueStates::UNFINISHED);
    assert_eq!(store.put_one(again).await, Inserted::Existing(first));
    store.put(vec![job().unique("u", UniqueStates::UNFINISHED)]).await;
}

#[tokio::test]
async fn a_key_is_remembered_until_it_has_expired() {
    let store = super::open().await;
    let first = store.put(vec![job().once("key", "call").unique("u", UniqueStates::UNFINISHED)]).await[0];
    let expiry = NOW + Millis(1_000);
    assert_eq!(store.prune(Prune::Keys(expiry), 10).await.unwrap(), 0);
    assert_eq!(store.put_one(job().once("key", "call")).await, Inserted::Existing(first));
    assert_eq!(store.prune(Prune::Keys(expiry + Millis(1)), 10).await.unwrap(), 1);
    let second = store.put(vec![job().once("key", "another call")]).await[0];
    assert_ne!(first, second);
    let unique = store.put_one(job().unique("u", UniqueStates::UNFINISHED)).await;
    assert_eq!(unique, Inserted::Existing(first), "a unique key does not expire");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_call_from_many_tasks_is_one_job() {
    let store = super::open().await;
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..8 {
        let store = store.handle();
        tasks.spawn(async move {
            for round in 0..20 {
                let call = format!("{round}");
                // Some also share a unique key, which half of them lose.
                let mut given = job().once(&call, &call);
                if task % 2 == 0 {
                    given = given.unique(&call, UniqueStates::UNFINISHED);
                }
                store.insert(vec![given]).await.unwrap();
            }
        });
    }
    tasks.join_all().await;
    assert_eq!(store.number("SELECT count(*) FROM tidings.job").await, 20);
    let unknown = "SELECT count(*) FROM tidings.job_key WHERE job_id NOT IN (SELECT id FROM tidings.job)";
    assert_eq!(store.number(unknown).await, 0);
}
