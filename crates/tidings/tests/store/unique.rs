//! Unique keys: one job holds a key, for as long as it was declared to.

use crate::draft::{Draft, NOW, act, ended, job, report};
use tidings::core::decide::Command;
use tidings::core::id::JobId;
use tidings::core::job::StateName;
use tidings::core::outcome::Outcome;
use tidings::core::time::Millis;
use tidings::core::unique::UniqueStates;
use tidings::store::{Change, Inserted, NewJob, Prune, Saved, Told};

fn keyed() -> NewJob {
    job().unique("key", UniqueStates::UNFINISHED)
}

fn keys_of(job: JobId, store: &crate::fixture::Fresh) -> String {
    format!("SELECT count(*) FROM tidings.job_key WHERE job_id = {}", store.place().literal(job))
}

#[tokio::test]
async fn of_two_in_one_batch_the_first_wins_and_the_answers_keep_their_order() {
    let store = super::open().await;
    let batch = vec![job(), keyed(), job().unique("other", UniqueStates::UNFINISHED), keyed(), job(), keyed()];
    let ids: Vec<JobId> = batch.iter().map(|new| new.job.id).collect();
    let expected = [
        Inserted::New(ids[0]),
        Inserted::New(ids[1]),
        Inserted::New(ids[2]),
        Inserted::Existing(ids[1]),
        Inserted::New(ids[4]),
        Inserted::Existing(ids[1]),
    ];
    assert_eq!(store.insert(batch).await.unwrap(), expected);
    assert!(store.stored(ids[3]).await.is_none());
}

#[tokio::test]
async fn a_later_batch_is_answered_with_the_job_that_has_the_key() {
    let store = super::open().await;
    let first = store.put(vec![keyed()]).await[0];
    assert_eq!(store.put_one(keyed()).await, Inserted::Existing(first));
    store.take(1).await;
    assert_eq!(store.put_one(keyed()).await, Inserted::Existing(first), "while it runs");
}

#[tokio::test]
async fn a_key_belongs_to_its_kind_and_its_tenant() {
    let store = super::open().await;
    store.put(vec![keyed(), keyed().kind("other"), keyed().tenant("a"), keyed().tenant("b")]).await;
    store.put(vec![keyed().tenant("a").kind("other")]).await;
    assert!(matches!(store.put_one(keyed().tenant("b")).await, Inserted::Existing(_)));
}

/// DU4.
#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_identical_enqueues_from_eight_tasks_give_one_job() {
    let store = super::open().await;
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..8 {
        let store = if task % 2 == 0 { store.handle() } else { store.another().await };
        tasks.spawn(async move {
            let mut answers = vec![];
            for _ in 0..25 {
                answers.extend(store.insert(vec![keyed()]).await.unwrap());
            }
            answers
        });
    }
    let answers: Vec<Inserted> = tasks.join_all().await.into_iter().flatten().collect();
    let new: Vec<JobId> = answers
        .iter()
        .filter_map(|answer| if let Inserted::New(id) = answer { Some(*id) } else { None })
        .collect();
    assert_eq!((answers.len(), new.len()), (200, 1));
    assert!(answers.iter().filter(|answer| **answer == Inserted::Existing(new[0])).count() == 199);
    assert_eq!(store.number("SELECT count(*) FROM tidings.job").await, 1);
}

/// Batches with the same keys in opposite orders must not wait for each other in a circle.
#[tokio::test(flavor = "multi_thread")]
async fn batches_that_share_keys_in_any_order_neither_fail_nor_double() {
    let store = super::open().await;
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..8_usize {
        let store = store.handle();
        tasks.spawn(async move {
            for round in 0..10 {
                let mut batch: Vec<NewJob> = (0..20)
                    .map(|key| job().unique(&format!("{round}-{key}"), UniqueStates::UNFINISHED))
                    .collect();
                batch.rotate_left(task * 2);
                if task % 2 == 0 {
                    batch.reverse();
                }
                store.insert(batch).await.unwrap();
            }
        });
    }
    tasks.join_all().await;
    assert_eq!(store.number("SELECT count(*) FROM tidings.job").await, 200);
    assert_eq!(store.number("SELECT count(*) FROM tidings.job_key").await, 200);
}

#[tokio::test]
async fn a_key_is_held_in_the_declared_states_and_no_others() {
    let pending_or_completed = UniqueStates::new(&[StateName::Pending, StateName::Completed]).unwrap();
    // Held while pending, running, retryable, completed.
    let table = [
        ("until it has finished", UniqueStates::UNFINISHED, [true, true, true, false]),
        ("until it starts", UniqueStates::PENDING, [true, false, false, false]),
        ("as long as it is kept", UniqueStates::KEPT, [true, true, true, true]),
        ("before and after, not in between", pending_or_completed, [true, false, false, true]),
    ];
    for (name, states, held) in table {
        let store = super::open().await;
        let id = store.put(vec![job().unique("key", states)]).await[0];
        let mut seen = vec![store.number(&keys_of(id, &store)).await == 1];

        let running = store.take(1).await.remove(0);
        seen.push(store.number(&keys_of(id, &store)).await == 1);

        store.save_all(vec![ended(&running, Outcome::retryable("503"))]).await;
        seen.push(store.number(&keys_of(id, &store)).await == 1);

        let running = store.take_at(NOW + Millis(60_000), 1).await.remove(0);
        let accepted = report(running.counters.claims, Outcome::Accepted);
        store.save_all(vec![Change::decide(&running, accepted, NOW + Millis(60_001)).unwrap()]).await;
        seen.push(store.number(&keys_of(id, &store)).await == 1);
        assert_eq!(seen, held, "{name}");
    }
}

#[tokio::test]
async fn one_more_may_wait_while_one_runs_if_the_key_is_held_until_the_start() {
    let store = super::open().await;
    let waiting = || job().unique("key", UniqueStates::PENDING);
    let first = store.put(vec![waiting()]).await[0];
    assert_eq!(store.put_one(waiting()).await, Inserted::Existing(first));
    let running = store.take(10).await.remove(0);

    let second = store.put(vec![waiting()]).await[0];
    assert_eq!(store.put_one(waiting()).await, Inserted::Existing(second));
    // The end of the first takes nothing from the second.
    store.save_all(vec![ended(&running, Outcome::Accepted)]).await;
    assert_eq!(store.put_one(waiting()).await, Inserted::Existing(second));
}

#[tokio::test]
async fn a_job_that_is_given_back_untouched_takes_its_key_again_if_it_is_free() {
    let store = super::open().await;
    let waiting = || job().unique("key", UniqueStates::PENDING);
    let first = store.put(vec![waiting()]).await[0];
    let claim = store.take(1).await[0].counters.claims;
    store.done(first, Command::Release { attempt: claim }).await;
    assert_eq!(store.put_one(waiting()).await, Inserted::Existing(first));

    let claim = store.take(1).await[0].counters.claims;
    let second = store.put(vec![waiting()]).await[0];
    store.done(first, Command::Release { attempt: claim }).await;
    assert_eq!(store.put_one(waiting()).await, Inserted::Existing(second), "it was not free");
    assert_eq!(store.take(10).await.len(), 2);
    store.put(vec![waiting()]).await;
}

#[tokio::test]
async fn a_finished_job_gives_its_key_up_and_takes_it_back_when_it_is_revived() {
    let store = super::open().await;
    let first = store.put(vec![keyed()]).await[0];
    store.done(first, Command::Cancel(act())).await;
    store.done(first, Command::Retry(act())).await;
    assert_eq!(store.put_one(keyed()).await, Inserted::Existing(first));

    store.done(first, Command::Cancel(act())).await;
    let second = store.put(vec![keyed()]).await[0];
    let told = store.tell(first, Command::Retry(act()), NOW).await;
    assert!(matches!(told, Told::KeyTaken(holder) if holder == second), "{told:?}");
    assert_eq!(store.job(first).await.state.name(), StateName::Cancelled);
    assert_eq!(store.facts(first).await, ["cancelled", "revived", "cancelled"]);

    store.done(second, Command::Cancel(act())).await;
    store.done(first, Command::Retry(act())).await;
}

/// A key that is declared for a finished state may have gone to another job before.
#[tokio::test]
async fn a_revived_job_never_shares_a_key_whatever_its_states_are() {
    let store = super::open().await;
    let states = UniqueStates::new(&[StateName::Pending, StateName::Discarded]).unwrap();
    let keyed = || job().unique("key", states);
    let first = store.put(vec![keyed()]).await[0];
    let running = store.take(1).await.remove(0);
    let second = store.put(vec![keyed()]).await[0];
    store.save_all(vec![ended(&running, Outcome::discard("410"))]).await;
    let told = store.tell(first, Command::Retry(act()), NOW).await;
    assert!(matches!(told, Told::KeyTaken(holder) if holder == second), "{told:?}");
}

#[tokio::test]
async fn of_two_revived_in_one_batch_with_one_key_the_first_comes_back() {
    let store = super::open().await;
    let mut cancelled = vec![];
    for _ in 0..2 {
        let id = store.put(vec![keyed()]).await[0];
        cancelled.push(store.done(id, Command::Cancel(act())).await);
    }
    let revived = |job| Change::decide(job, Command::Retry(act()), NOW).unwrap();
    let saved = store.save(cancelled.iter().map(revived).collect()).await.unwrap();
    assert_eq!(saved, [Saved::Yes, Saved::KeyTaken(cancelled[0].id)]);
}

/// A change that is refused must not keep what it reached for.
#[tokio::test]
async fn a_revive_that_comes_too_late_takes_no_key() {
    let store = super::open().await;
    let id = store.put(vec![keyed()]).await[0];
    let cancelled = store.done(id, Command::Cancel(act())).await;
    let late = Change::decide(&cancelled, Command::Retry(act()), NOW).unwrap();
    store.done(id, Command::Retry(act())).await;

    assert_eq!(store.save_one(late.clone()).await, Saved::Conflict);
    assert!(matches!(store.put_one(keyed()).await, Inserted::Existing(_)), "the first revive has it");

    store.done(id, Command::Cancel(act())).await;
    assert_eq!(store.save_one(late).await, Saved::Conflict);
    assert!(matches!(store.put_one(keyed()).await, Inserted::New(_)), "nobody has it");
}

#[tokio::test]
async fn a_kept_key_goes_with_the_job() {
    let store = super::open().await;
    let kept = || job().unique("key", UniqueStates::KEPT);
    let first = store.put(vec![kept()]).await[0];
    store.done(first, Command::Cancel(act())).await;
    assert_eq!(store.put_one(kept()).await, Inserted::Existing(first));
    let gone = Prune::Finished(StateName::Cancelled, NOW + Millis(1));
    assert_eq!(store.prune(gone, 10).await.unwrap(), 1);
    store.put(vec![kept()]).await;
}

/// PE7.
#[tokio::test]
async fn a_key_of_any_length_is_kept_as_its_hash() {
    let store = super::open().await;
    for length in [1, 3_000, 1_000_000] {
        let key = "ключ ".repeat(length / 5 + 1);
        let (first, twin) = (job().unique(&key, UniqueStates::KEPT), job().unique(&key, UniqueStates::KEPT));
        let id = store.put(vec![first.once(&key, "call")]).await[0];
        assert_eq!(store.put_one(twin).await, Inserted::Existing(id));
        assert_eq!(store.put_one(job().once(&key, "call")).await, Inserted::Existing(id));
    }
    assert_eq!(store.number("SELECT count(*) FROM tidings.job_key WHERE length(key_hash) <> 32").await, 0);
}
