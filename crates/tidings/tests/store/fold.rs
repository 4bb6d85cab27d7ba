//! The row is the fold of its facts, whatever happened in whatever order.

use crate::draft::{Draft, NOW, act, job, report, take, terms};
use crate::fixture::Fresh;
use tidings::core::decide::Command;
use tidings::core::evolve::replay;
use tidings::core::fact::Resolution;
use tidings::core::id::JobId;
use tidings::core::job::{Job, State};
use tidings::core::outcome::Outcome;
use tidings::core::time::{Millis, Time};
use tidings::core::unique::UniqueStates;
use tidings::store::Take;

/// A small generator of our own, so that a seed names a run on both stores.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

const STEPS: usize = 120;

#[tokio::test]
async fn the_row_is_the_fold_of_its_facts_after_any_history() {
    for seed in 0..6 {
        let store = super::open().await;
        let mut initial: Vec<Job> = vec![];
        for number in 0..9 {
            let states = [UniqueStates::UNFINISHED, UniqueStates::PENDING, UniqueStates::KEPT][number % 3];
            let args = if number % 2 == 0 { "\"hold\"" } else { "{}" };
            let given = job().unique(&number.to_string(), states).args(args);
            initial.push(given.job.clone());
            store.put(vec![given]).await;
        }
        let mut dice = Dice(seed);
        let mut now = NOW;
        for _ in 0..STEPS {
            step(&store, &initial, &mut dice, &mut now).await;
        }
        for initial in initial {
            assert_folds(&store, initial, seed).await;
        }
    }
}

async fn step(store: &Fresh, jobs: &[Job], dice: &mut Dice, now: &mut Time) {
    let id = jobs[usize::try_from(dice.roll(jobs.len() as u64)).unwrap()].id;
    let claims = store.job(id).await.counters.claims;
    let outcome = match dice.roll(5) {
        0 => Outcome::Accepted,
        1 => Outcome::retryable("503"),
        2 => Outcome::snooze(*now + Millis(500), "later"),
        3 => Outcome::discard("410"),
        _ => Outcome::unknown("no answer"),
    };
    let command = match dice.roll(12) {
        0..=2 => {
            store.take_due(&Take { now: *now, ..take(3) }).await.unwrap();
            return;
        }
        3 => {
            store.sweep(*now, &["default".into()], 3, &terms(&["demo"])).await.unwrap();
            return;
        }
        4 => {
            *now = *now + Millis(i64::try_from(dice.roll(70_000)).unwrap());
            return;
        }
        5 => Command::Cancel(act()),
        6 => Command::Retry(act()),
        7 => Command::Resolve(Resolution::Retry, act()),
        8 => Command::Release { attempt: claims },
        9 => report(claims - 1, outcome),
        _ => report(claims, outcome),
    };
    // A refusal is a legal answer to a random command.
    store.tell(id, command, *now).await;
}

async fn assert_folds(store: &Fresh, initial: Job, seed: u64) {
    let row = store.job(initial.id).await;
    let log = store.log(initial.id).await;
    let told = replay(initial, log.iter().map(|line| (line.version, line.at, &line.fact)));
    if let State::Running { .. } = row.state {
        // The open claim is the row's alone.
        let counted = |job: &Job| (job.counters.attempts, job.counters.snoozes, job.counters.crashes);
        assert_eq!(counted(&told), counted(&row), "seed {seed}: {log:#?}");
    } else {
        assert_eq!(told, row, "seed {seed}: {log:#?}");
    }
    assert!(log.is_sorted_by_key(|line| line.version), "seed {seed}");
    assert_eq!(keys(store, row.id).await, i64::from(row.holds_unique_key()), "seed {seed}: {row:?} {log:#?}");
}

async fn keys(store: &Fresh, id: JobId) -> i64 {
    let id = store.place().literal(id);
    store.number(&format!("SELECT count(*) FROM tidings.job_key WHERE job_id = {id}")).await
}

#[tokio::test]
async fn histories_come_in_the_order_asked_for_and_a_job_without_one_has_none() {
    let store = super::open().await;
    let ids = store.put(vec![job(), job(), job()]).await;
    for _ in 0..3 {
        store.done(ids[0], Command::Cancel(act())).await;
        store.done(ids[0], Command::Retry(act())).await;
    }
    store.done(ids[2], Command::Cancel(act())).await;
    let asked = [ids[2], ids[1], ids[0], ids[2], tidings::random::job_id(NOW)];
    let lengths: Vec<usize> = store.history(&asked).await.unwrap().iter().map(Vec::len).collect();
    assert_eq!(lengths, [1, 0, 6, 1, 0]);
    let log = store.log(ids[0]).await;
    assert_eq!(log.iter().map(|line| line.version).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    assert!(log.iter().all(|line| line.at == NOW));
}
