//! What is kept, for how long, and who switched what: retention, pauses, policies, keys.

use crate::draft::{Draft, LEASE_OVER, NOW, act, ended, job, jobs};
use tidings::core::decide::Command;
use tidings::core::fact::Act;
use tidings::core::job::StateName;
use tidings::core::outcome::Outcome;
use tidings::core::time::{Millis, Time};
use tidings::core::unique::KeyHash;
use tidings::store::{ApiKey, Change, PausedQueue, Prune};

#[tokio::test]
async fn finished_jobs_go_by_state_and_age_and_no_more_than_asked() {
    let store = super::open().await;
    let running = store.running(10).await;
    let accepted = running[..6].iter().map(|job| ended(job, Outcome::Accepted));
    let given_up = running[6..9].iter().map(|job| ended(job, Outcome::discard("410")));
    store.save_all(accepted.chain(given_up).collect()).await;
    let finished_at = NOW + Millis(1);

    let completed = |before: Time| Prune::Finished(StateName::Completed, before);
    assert_eq!(store.prune(completed(finished_at), 100).await.unwrap(), 0, "not older than that");
    let before = finished_at + Millis(1);
    assert_eq!(store.prune(completed(before), 4).await.unwrap(), 4);
    assert_eq!(store.prune(completed(before), 4).await.unwrap(), 2);
    assert_eq!(store.prune(Prune::Finished(StateName::Cancelled, before), 4).await.unwrap(), 0);
    assert_eq!(store.prune(Prune::Finished(StateName::Discarded, before), 4).await.unwrap(), 3);
    assert!(store.stored(running[0].id).await.is_none());
    assert_eq!(store.job(running[9].id).await, running[9], "live jobs stay");
    assert_eq!(store.facts(running[0].id).await, ["attempt_ended"], "the evidence has its own retention");
}

#[tokio::test]
async fn the_oldest_finished_jobs_go_first() {
    let store = super::open().await;
    let ids = store.put(jobs(3)).await;
    for (id, at) in ids.iter().zip([30, 10, 20]) {
        store.tell(*id, Command::Cancel(act()), NOW + Millis(at)).await;
    }
    let all = Prune::Finished(StateName::Cancelled, NOW + Millis(100));
    assert_eq!(store.prune(all, 1).await.unwrap(), 1);
    assert!(store.stored(ids[1]).await.is_none());
    assert_eq!(store.prune(all, 1).await.unwrap(), 1);
    assert!(store.stored(ids[0]).await.is_some());
}

/// DB13.
#[tokio::test(flavor = "multi_thread")]
async fn several_who_prune_at_once_do_not_fail_and_remove_each_row_once() {
    let store = super::open().await;
    let given: Vec<_> = (0..300).map(|n| job().once(&format!("{n}"), "call")).collect();
    store.put(given).await;
    let running = store.take(300).await;
    store.save_all(running.iter().map(|job| ended(job, Outcome::Accepted)).collect()).await;
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..4 {
        let store = if task % 2 == 0 { store.handle() } else { store.another().await };
        tasks.spawn(async move {
            let before = NOW + Millis::from_days(1);
            let (mut jobs, mut keys) = (0, 0);
            for _ in 0..40 {
                jobs += store.prune(Prune::Finished(StateName::Completed, before), 10).await.unwrap();
                keys += store.prune(Prune::Keys(before), 10).await.unwrap();
            }
            (jobs, keys)
        });
    }
    let gone = tasks.join_all().await;
    assert_eq!(gone.iter().map(|(jobs, _)| jobs).sum::<u64>(), 300);
    assert_eq!(gone.iter().map(|(_, keys)| keys).sum::<u64>(), 300);
}

/// Each week's facts, recorded a week apart.
async fn facts_of_weeks(store: &crate::fixture::Fresh, weeks: i64) -> Vec<(tidings::JobId, Time)> {
    let mut recorded = vec![];
    for week in 0..weeks {
        let at = NOW + Millis::from_days(7 * week);
        let id = store.put(vec![job()]).await[0];
        let change = Change::decide(&store.job(id).await, Command::Cancel(act()), at).unwrap();
        store.save_all(vec![change]).await;
        recorded.push((id, at));
    }
    recorded
}

#[tokio::test]
async fn old_facts_go_and_younger_ones_stay() {
    for with_house in [true, false] {
        let store = super::open().await;
        if with_house {
            store.keep_house(NOW).await.unwrap();
        }
        let recorded = facts_of_weeks(&store, 5).await;
        // A whole number of weeks has passed since the second was recorded.
        let before = recorded[2].1 + Millis::from_days(7);
        for _ in 0..10 {
            store.prune(Prune::Facts(before), 2).await.unwrap();
        }
        let mut kept = vec![];
        for (id, _) in &recorded {
            kept.push(store.facts(*id).await.len());
        }
        assert_eq!(kept[..2], [0, 0], "with partitions: {with_house}");
        assert_eq!(kept[3..], [1, 1], "with partitions: {with_house}");
        assert_eq!(store.prune(Prune::Facts(before), 2).await.unwrap(), 0, "nothing is left to go");
        let refused = store.sql("DELETE FROM tidings.fact").await.unwrap_err();
        assert!(refused.contains("facts are append-only"), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_house_is_kept_twice_and_by_several_at_once_while_facts_are_written() {
    let store = super::open().await;
    let running = store.running(200).await;
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..4 {
        let store = if task % 2 == 0 { store.handle() } else { store.another().await };
        tasks.spawn(async move {
            for week in 0..4 {
                store.keep_house(NOW + Millis::from_days(7 * (week + task))).await.unwrap();
            }
        });
    }
    let writer = store.handle();
    let writing = tokio::spawn(async move {
        for job in running {
            writer.save(vec![ended(&job, Outcome::Accepted)]).await.unwrap();
        }
    });
    tasks.join_all().await;
    writing.await.unwrap();
    store.keep_house(NOW).await.unwrap();
    assert_eq!(store.number("SELECT count(*) FROM tidings.fact").await, 200);
}

#[tokio::test]
async fn a_pause_says_who_since_when_and_why_and_the_first_one_stands() {
    let store = super::open().await;
    assert_eq!(store.paused().await.unwrap(), []);
    let other = Act { actor: "bob".into(), reason: String::new() };
    store.pause("mail", NOW, &act()).await.unwrap();
    store.pause("mail", LEASE_OVER, &other).await.unwrap();
    store.pause("default", LEASE_OVER, &other).await.unwrap();
    let paused = |queue: &str, paused_at, act| PausedQueue { queue: queue.into(), paused_at, act };
    assert_eq!(store.paused().await.unwrap(), [paused("default", LEASE_OVER, other), paused("mail", NOW, act())]);
    store.resume("mail").await.unwrap();
    store.resume("mail").await.unwrap();
    store.resume("never paused").await.unwrap();
    assert_eq!(store.paused().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_policy_is_kept_as_it_was_first_used_under_its_version() {
    let store = super::open().await;
    assert_eq!(store.keep_policy("mail", 1, "{\"a\":1}").await.unwrap(), "{\"a\":1}");
    assert_eq!(store.keep_policy("mail", 1, "{\"a\":2}").await.unwrap(), "{\"a\":1}");
    assert_eq!(store.keep_policy("mail", 2, "{\"a\":2}").await.unwrap(), "{\"a\":2}");
    assert_eq!(store.keep_policy("other", u32::MAX, "x").await.unwrap(), "x");
}

#[tokio::test]
async fn an_api_key_is_kept_as_its_hash_and_one_that_is_there_stays() {
    let store = super::open().await;
    let key = |id: &str, scope: &str| ApiKey {
        id: id.into(),
        hash: KeyHash::of(scope),
        scope: scope.into(),
        tenant: "acme".into(),
    };
    store.add_api_key(&key("b", "admin"), NOW).await.unwrap();
    store.add_api_key(&key("a", "read"), NOW).await.unwrap();
    store.add_api_key(&key("b", "enqueue"), NOW).await.unwrap();
    assert_eq!(store.api_keys().await.unwrap(), [key("a", "read"), key("b", "admin")]);
    store.sql("UPDATE tidings.api_key SET revoked_at_ms = 1 WHERE id = 'a'").await.unwrap();
    assert_eq!(store.api_keys().await.unwrap(), [key("b", "admin")]);
}

#[tokio::test]
async fn the_clock_is_the_databases_and_goes_forward() {
    let store = super::open().await;
    let first = store.now().await.unwrap();
    let second = store.another().await.now().await.unwrap();
    assert!(second >= first && second.since(first) < Millis::from_hours(1));
    assert!(first > Time(1_700_000_000_000));
}
