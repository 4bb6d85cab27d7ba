//! Jobs come in: what is given is what is kept.

use crate::draft::{Draft, NOW, job, jobs};
use tidings::core::job::{State, Wait};
use tidings::core::time::Millis;
use tidings::core::unique::UniqueStates;
use tidings::random;
use tidings::store::{Inserted, StoreError};

#[tokio::test]
async fn every_column_of_a_job_reads_back_as_it_was_given() {
    let store = super::open().await;
    let given = job()
        .kind("käse.senden")
        .queue("mail")
        .tenant("acme ☂ \"quoted\" 'and' ;--")
        .priority(4)
        .due(NOW + Millis(5))
        .unique("k", UniqueStates::KEPT);
    let id = given.job.id;
    store.put(vec![given.clone()]).await;
    assert_eq!(store.job(id).await, given.job);
    assert!(store.log(id).await.is_empty(), "an enqueue is the row itself, not a fact");
}

/// PE1, PE2: a signature over the arguments must still fit after the database had them.
#[tokio::test]
async fn arguments_are_kept_byte_for_byte() {
    let store = super::open().await;
    let long = format!("\"{}\"", "ü".repeat(100_000));
    let given = [
        r#"{"a":"x\u0000y"}"#,
        r#"{"big":9223372036854775808123456789.000,"neg":-0.0,"exp":1E+2}"#,
        r#"{ "b" : 1 , "a" : 2, "a" : 3 }"#,
        "\"\u{1f600} ß \u{202e} \u{feff}\"",
        r#"{"slash":"\/","surrogates":"\ud83d\ude00"}"#,
        "  [ ]\n",
        &long,
    ];
    let ids = store.put(given.iter().map(|args| job().args(args)).collect()).await;
    let loaded = store.load(&ids).await.unwrap();
    for (args, stored) in given.iter().zip(loaded) {
        assert_eq!(&*stored.unwrap().args, *args);
    }
    let taken = store.take_due(&crate::draft::take(100)).await.unwrap().started;
    assert_eq!(taken.iter().map(|stored| &*stored.args).collect::<Vec<_>>(), given);
}

#[tokio::test]
async fn a_thousand_jobs_come_in_at_once_and_load_in_the_order_asked_for() {
    let store = super::open().await;
    let mut ids = store.put(jobs(1_000)).await;
    ids.reverse();
    ids.insert(500, random::job_id(NOW));
    ids.push(ids[0]);
    let loaded = store.load(&ids).await.unwrap();
    assert_eq!(loaded.len(), 1_002);
    for (at, (id, stored)) in ids.iter().zip(&loaded).enumerate() {
        assert_eq!(stored.as_ref().map(|stored| stored.job.id), (at != 500).then_some(*id), "at {at}");
    }
}

#[tokio::test]
async fn nothing_at_all_is_a_batch_too() {
    let store = super::open().await;
    assert_eq!(store.insert(vec![]).await.unwrap(), []);
    assert!(store.load(&[]).await.unwrap().is_empty());
    assert!(store.history(&[]).await.unwrap().is_empty());
    assert_eq!(store.save(vec![]).await.unwrap(), []);
}

#[tokio::test]
async fn a_batch_of_which_one_is_refused_leaves_nothing_behind() {
    let store = super::open().await;
    let there = job();
    store.put(vec![there.clone()]).await;
    let mut batch = jobs(10);
    batch[3] = batch[3].clone().unique("k", UniqueStates::UNFINISHED).once("call", "x");
    batch.push(there);
    let refused = store.insert(batch.clone()).await.unwrap_err();
    assert!(matches!(refused, StoreError::Refused(_)), "{refused}");

    batch.pop();
    let ids: Vec<_> = batch.iter().map(|new| new.job.id).collect();
    assert!(store.load(&ids).await.unwrap().iter().all(Option::is_none));
    store.put(batch).await;
}

/// TM7: a delay past 2^31 ms.
#[tokio::test]
async fn a_job_far_in_the_future_waits_for_its_time() {
    let store = super::open().await;
    for days in [25, 60, 36_525] {
        let due = NOW + Millis::from_days(days);
        let id = store.put(vec![job().due(due)]).await[0];
        assert_eq!(store.job(id).await.state, State::Waiting { why: Wait::Fresh, due_at: due });
        assert!(store.take_at(due - Millis(1), 10).await.is_empty(), "{days} days");
        assert_eq!(store.take_at(due, 10).await.len(), 1, "{days} days");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_at_the_same_time_each_get_their_own_answer() {
    let store = super::open().await;
    let there = store.put(vec![job().unique("k", UniqueStates::UNFINISHED)]).await[0];
    let mut callers = tokio::task::JoinSet::new();
    for caller in 0..64 {
        let store = store.handle();
        callers.spawn(async move {
            let mut given = job();
            if caller % 4 == 0 {
                given = given.unique("k", UniqueStates::UNFINISHED);
            } else if caller % 4 == 1 {
                given.job.id = there;
            }
            let id = given.job.id;
            (caller % 4, id, store.insert(vec![given]).await)
        });
    }
    while let Some(answer) = callers.join_next().await {
        match answer.unwrap() {
            (0, _, result) => assert_eq!(result.unwrap(), [Inserted::Existing(there)]),
            (1, _, result) => assert!(matches!(result, Err(StoreError::Refused(_))), "{result:?}"),
            (_, id, result) => assert_eq!(result.unwrap(), [Inserted::New(id)]),
        }
    }
    assert_eq!(store.number("SELECT count(*) FROM tidings.job").await, 33);
}
