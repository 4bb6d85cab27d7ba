//! Keys that two jobs may not share: unique keys, idempotency keys; and batches.

use crate::fixture::*;
use serde::{Deserialize, Serialize};
use tidings::core::unique::UniqueStates;
use tidings::testing::{perform_stored, take_one};
use tidings::{
    ActRefused, Declaration, Enqueue, EnqueueOptions, EnqueueRefused, Kind, Millis, Outcome, Tidings,
};

on_both_stores![
    a_unique_key_is_held_until_the_job_has_finished,
    a_key_that_is_held_while_pending_is_free_from_the_start_on,
    a_key_that_is_kept_is_held_as_long_as_the_job_is,
    a_job_does_not_come_back_while_another_one_has_its_key,
    enqueues_at_the_same_moment_make_one_job,
    an_idempotent_call_made_again_gives_the_same_job,
    a_key_belongs_to_its_tenant,
    a_batch_is_all_or_nothing_and_bounded,
    what_is_wrong_with_a_job_is_said_at_the_door,
];

/// One line declares it: the key.
#[derive(Serialize, Deserialize, Debug)]
struct Index {
    document: u32,
}

impl Kind for Index {
    const DECLARATION: Declaration = Declaration::new("index");

    fn unique_key(&self) -> Option<String> {
        Some(self.document.to_string())
    }
}

/// One may wait while one runs.
#[derive(Serialize, Deserialize, Debug)]
struct Turn {
    of: u32,
}

impl Kind for Turn {
    const DECLARATION: Declaration = Declaration::new("turn").unique_while(UniqueStates::PENDING);

    fn unique_key(&self) -> Option<String> {
        Some(self.of.to_string())
    }
}

/// Once, until retention takes it.
#[derive(Serialize, Deserialize, Debug)]
struct Once {
    of: u32,
}

impl Kind for Once {
    const DECLARATION: Declaration = Declaration::new("once").unique_while(UniqueStates::KEPT);

    fn unique_key(&self) -> Option<String> {
        Some(self.of.to_string())
    }
}

fn builder(script: &Script) -> tidings::Builder {
    Tidings::builder()
        .kind::<Index, _, _, _>(script.clone(), play)
        .kind::<Turn, _, _, _>(script.clone(), play)
        .kind::<Once, _, _, _>(script.clone(), play)
        .kind::<Note, _, _, _>(script.clone(), play)
}

async fn a_unique_key_is_held_until_the_job_has_finished(db: Database) {
    let script = Script::new([
        Outcome::retryable("503"),
        Outcome::snooze(NOW + Millis::from_hours(1), "later"),
        Outcome::unknown("no answer"),
        Outcome::Accepted,
    ]);
    let tidings = db.held(builder(&script)).await;
    let first = tidings.enqueue(Index { document: 7 }).await.unwrap();
    assert!(!first.existing);
    let mut states = Vec::new();
    while job(&tidings, first.id).await.state.finished_at().is_none() {
        states.push(state(&tidings, first.id).await);
        let again = tidings.enqueue(Index { document: 7 }).await.unwrap();
        assert_eq!((again.id, again.existing), (first.id, true), "while it is {states:?}");
        tidings.drain_when_due(first.id).await;
    }
    assert_eq!(states, ["pending", "retryable", "snoozed", "unknown"]);
    let next = tidings.enqueue(Index { document: 7 }).await.unwrap();
    assert!(!next.existing && next.id != first.id);
    assert!(!tidings.enqueue(Index { document: 8 }).await.unwrap().existing, "another key");
}

async fn a_key_that_is_held_while_pending_is_free_from_the_start_on(db: Database) {
    let script = Script::new([Outcome::retryable("503"), Outcome::Accepted]);
    let tidings = db.held(builder(&script)).await;
    let first = tidings.enqueue(Turn { of: 1 }).await.unwrap().id;
    assert!(tidings.enqueue(Turn { of: 1 }).await.unwrap().existing);
    let running = take_one(&tidings).await.unwrap().expect("a due job");
    let second = tidings.enqueue(Turn { of: 1 }).await.unwrap();
    assert!(!second.existing, "one more may wait while one runs");
    assert_eq!(tidings.enqueue(Turn { of: 1 }).await.unwrap().id, second.id);
    perform_stored(&tidings, running).await.unwrap();
    assert_eq!(state(&tidings, first).await, "retryable");
    assert_eq!(tidings.enqueue(Turn { of: 1 }).await.unwrap().id, second.id, "the first never took it back");
    tidings.drain().await;
    tidings.drain_when_due(first).await;
    assert_eq!((state(&tidings, first).await, state(&tidings, second.id).await), ("completed", "completed"));
}

async fn a_key_that_is_kept_is_held_as_long_as_the_job_is(db: Database) {
    let tidings = db.held(builder(&Script::accepting())).await;
    let first = tidings.enqueue(Once { of: 1 }).await.unwrap().id;
    tidings.drain().await;
    let again = tidings.enqueue(Once { of: 1 }).await.unwrap();
    assert_eq!((again.id, again.existing), (first, true), "it is done, and stays the one");
    tidings.clock.advance(Millis::from_hours(25));
    tidings::testing::keep_house(&tidings).await.unwrap();
    assert!(!tidings.enqueue(Once { of: 1 }).await.unwrap().existing, "past its retention");
}

async fn a_job_does_not_come_back_while_another_one_has_its_key(db: Database) {
    let tidings = db.held(builder(&Script::new([Outcome::discard("410"), Outcome::Accepted]))).await;
    let first = tidings.enqueue(Index { document: 7 }).await.unwrap().id;
    tidings.drain().await;
    let second = tidings.enqueue(Index { document: 7 }).await.unwrap().id;
    let refused = tidings.retry(first, &act("again")).await.unwrap_err();
    assert!(matches!(&refused, ActRefused::KeyTaken(holder) if *holder == second), "{refused}");
    assert_eq!(state(&tidings, first).await, "discarded");
    tidings.drain().await;
    tidings.retry(first, &act("again")).await.unwrap();
    assert_eq!(tidings.enqueue(Index { document: 7 }).await.unwrap().id, first, "it has its key again");
}

/// DU4: as many callers as there are, one job.
async fn enqueues_at_the_same_moment_make_one_job(db: Database) {
    let clock = std::sync::Arc::new(tidings::clock::HandClock::at(NOW));
    let script = Script::accepting();
    let doors = [db.held_by(&clock, builder(&script)).await, db.held_by(&clock, builder(&script)).await];
    let calls = (0..200).map(|n| doors[n % 2].enqueue(Index { document: 1 }));
    let receipts: Vec<_> = futures_util::future::try_join_all(calls).await.unwrap();
    let made: Vec<_> = receipts.iter().filter(|receipt| !receipt.existing).collect();
    assert_eq!(made.len(), 1);
    assert!(receipts.iter().all(|receipt| receipt.id == made[0].id));
    doors[0].drain().await;
    assert_eq!(script.jobs(), [made[0].id]);
}

async fn an_idempotent_call_made_again_gives_the_same_job(db: Database) {
    let script = Script::accepting();
    let tidings = db.held(builder(&script)).await;
    let call = || Enqueue::new(Note::new("a")).idempotency_key("call-1");
    let first = tidings.enqueue(call()).await.unwrap().id;
    tidings.drain().await;
    let again = tidings.enqueue(call()).await.unwrap();
    assert_eq!((again.id, again.existing), (first, true), "also when the job is done");
    let other = Enqueue::new(Note::new("b")).idempotency_key("call-1");
    let refused = tidings.enqueue(other).await.unwrap_err();
    assert!(matches!(&refused, EnqueueRefused::KeyReused(id) if *id == first), "{refused}");
    tidings.clock.advance(Millis(tidings::IDEMPOTENCY_KEPT.0 + 1));
    tidings::testing::keep_house(&tidings).await.unwrap();
    assert!(!tidings.enqueue(call()).await.unwrap().existing, "past its time");
    assert_eq!(script.jobs(), [first], "nothing ran twice");
}

/// MT2, and the same for unique keys.
async fn a_key_belongs_to_its_tenant(db: Database) {
    let tidings = db.held(builder(&Script::accepting())).await;
    let call = |tenant: &str| Enqueue::new(Note::new("a")).idempotency_key("k").tenant(tenant);
    let unique = |tenant: &str| Enqueue::new(Index { document: 1 }).tenant(tenant);
    let a = tidings.enqueue(call("a")).await.unwrap();
    let b = tidings.enqueue(call("b")).await.unwrap();
    assert!(!a.existing && !b.existing && a.id != b.id);
    let a = tidings.enqueue(unique("a")).await.unwrap();
    let b = tidings.enqueue(unique("b")).await.unwrap();
    assert!(!a.existing && !b.existing && a.id != b.id);
    assert_eq!(tidings.enqueue(unique("b")).await.unwrap().id, b.id);
}

async fn a_batch_is_all_or_nothing_and_bounded(db: Database) {
    let tidings = db.held(builder(&Script::accepting())).await;
    let bad = Enqueue::new(Note::new("b")).queue("nowhere");
    let refused = tidings.enqueue_all([Enqueue::new(Note::new("a")), bad]).await.unwrap_err().to_string();
    assert_eq!(refused, "there is no queue `nowhere`; known queues are: default");
    tidings::testing::refute_enqueued::<Note>(&tidings).await;
    let many = (0..1_001).map(|n| Note::new(&n.to_string()));
    let refused = tidings.enqueue_all(many).await.unwrap_err().to_string();
    assert_eq!(refused, "1001 jobs in one call; at most 1000 are taken");
    let receipts = tidings.enqueue_all((0..3).map(|n| Index { document: n % 2 })).await.unwrap();
    assert_eq!((receipts[0].id, receipts[2].existing), (receipts[2].id, true), "a key counts within a batch");
    assert_eq!(tidings.drain().await, 2);
}

async fn what_is_wrong_with_a_job_is_said_at_the_door(db: Database) {
    let tidings = db.held(builder(&Script::accepting())).await;
    let options = EnqueueOptions::default;
    let text = |length: usize| "x".repeat(length);
    let table = [
        ("nothing", "{}", options(), "there is no kind `nothing`; known kinds are: index, note, once, turn"),
        ("note", r#"{"text": 5}"#, options(), "args.text: invalid type, expected a string"),
        ("note", "{}", options(), "args: missing field `text`"),
        ("note", r#"{"text": "a""#, options(), "args "),
        (
            "note",
            r#"{"text": ""}"#,
            EnqueueOptions { tenant: Some(text(200)), ..options() },
            "tenant is 200 bytes long; at most 128 are taken",
        ),
        (
            "note",
            r#"{"text": ""}"#,
            EnqueueOptions { unique_key: Some(String::new()), ..options() },
            "unique_key is empty; leave it out instead",
        ),
        (
            "note",
            r#"{"text": ""}"#,
            EnqueueOptions { idempotency_key: Some("a\nb".into()), ..options() },
            "idempotency key has control characters; write plain text",
        ),
        (
            "note",
            r#"{"text": ""}"#,
            EnqueueOptions { run_at: Some(NOW + Millis::from_days(366 * 101)), ..options() },
            "run_at is more than 100 years ahead; write an earlier time",
        ),
    ];
    for (kind, args, options, expected) in table {
        let said = tidings.enqueue_json(kind, args, &options).await.unwrap_err().to_string();
        assert!(said.starts_with(expected), "{kind} {args} {options:?}: {said}");
    }
    assert_eq!(tidings.drain().await, 0);
}
