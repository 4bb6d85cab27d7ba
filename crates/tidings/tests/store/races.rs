//! Two who want the same job at the same moment: one wins, nothing is half done.

use crate::draft::{LEASE_OVER, NOW, act, ended, job, report, sweep_of, terms};
use crate::fixture::Fresh;
use std::sync::Arc;
use tidings::core::decide::Command;
use tidings::core::id::JobId;
use tidings::core::job::{State, StateName};
use tidings::core::outcome::Outcome;
use tidings::core::time::Millis;
use tidings::store::{Saved, Store, Told, tell};

/// CW1: a sweeper that looked, and was slow to write.
#[tokio::test]
async fn a_sweep_that_comes_after_the_end_changes_nothing() {
    let store = super::open().await;
    let running = store.running_one().await;
    let slow_sweep = sweep_of(&running);
    let done = store.save_all(vec![ended(&running, Outcome::Accepted)]).await.remove(0);
    assert_eq!(store.save_one(slow_sweep).await, Saved::Conflict);
    assert_eq!(store.job(running.id).await, done);
    assert_eq!(store.facts(running.id).await, ["attempt_ended"]);
}

/// CW1, CW13: the same, but another worker has the job by now.
#[tokio::test]
async fn neither_a_slow_sweep_nor_a_late_report_touches_the_next_workers_claim() {
    let store = super::open().await;
    let first = store.running_one().await;
    let slow_sweep = sweep_of(&first);
    assert_eq!(store.sweep_all(10).await.len(), 1);
    let second = store.take_at(LEASE_OVER + Millis(10_000), 1).await.remove(0);
    assert_eq!(second.counters.claims, 2);

    assert_eq!(store.save_one(slow_sweep).await, Saved::Conflict);
    assert_eq!(store.save_one(ended(&first, Outcome::discard("410"))).await, Saved::Conflict);
    let told = store.tell(first.id, report(1, Outcome::retryable("503")), LEASE_OVER + Millis(10_001)).await;
    let Told::Done(after) = told else { panic!("{told:?}") };
    assert_eq!((&after.state, after.counters), (&second.state, second.counters));
}

/// A job is a live row or a finished one, never none, never both.
async fn assert_one_row_each(store: &Fresh, ids: &[JobId]) {
    let double = "SELECT count(*) - count(DISTINCT id) FROM (
                      SELECT id FROM tidings.job UNION ALL SELECT id FROM tidings.finished_job
                  ) AS every_row";
    assert_eq!(store.number(double).await, 0);
    assert!(store.load(ids).await.unwrap().iter().all(Option::is_some));
}

/// CW2.
#[tokio::test(flavor = "multi_thread")]
async fn sweep_and_end_in_parallel_give_one_finished_row_in_each_of_300_rounds() {
    let store = super::open().await;
    let ids: Vec<JobId> = store.running(300).await.iter().map(|job| job.id).collect();
    let (sweeper, worker) = (store.handle(), store.another().await);
    for id in &ids {
        let (sweeper, worker, id) = (Arc::clone(&sweeper), Arc::clone(&worker), *id);
        let sweep = tokio::spawn(async move {
            sweeper.sweep(LEASE_OVER, &["default".into()], 1, &terms(&["demo"])).await.unwrap().len()
        });
        let end = tokio::spawn(async move {
            // By its own time the worker is early enough; if it was swept, this is a late report.
            tell(&*worker, id, report(1, Outcome::Accepted), NOW + Millis(1)).await.unwrap()
        });
        sweep.await.unwrap();
        let told = end.await.unwrap();
        assert!(matches!(&told, Told::Done(job) if job.state.name() == StateName::Completed), "{told:?}");
    }
    assert_one_row_each(&store, &ids).await;
    for (id, log) in ids.iter().zip(store.history(&ids).await.unwrap()) {
        let names: Vec<_> = log.iter().map(|line| line.fact.name()).collect();
        let in_time = names == ["attempt_ended"];
        assert!(in_time || names == ["attempt_ended", "reported_late"], "{id}: {names:?}");
    }
}

/// CW11, both orders.
#[tokio::test]
async fn of_cancel_and_end_both_are_in_the_history_and_one_decides() {
    let store = super::open().await;
    let jobs = store.running(2).await;
    store.done(jobs[0].id, Command::Cancel(act())).await;
    assert_eq!(store.save_one(ended(&jobs[0], Outcome::Accepted)).await, Saved::Conflict);
    let accepted = store.done(jobs[0].id, report(1, Outcome::Accepted)).await;
    assert_eq!(accepted.state.name(), StateName::Completed, "it happened");
    assert_eq!(store.facts(jobs[0].id).await, ["cancel_requested", "attempt_ended"]);

    store.save_all(vec![ended(&jobs[1], Outcome::Accepted)]).await;
    assert!(matches!(store.tell(jobs[1].id, Command::Cancel(act()), NOW).await, Told::Refused(_)));
    assert_eq!(store.facts(jobs[1].id).await, ["attempt_ended"]);
}

/// CW11, at the same moment.
#[tokio::test(flavor = "multi_thread")]
async fn cancel_and_end_in_parallel_leave_one_finished_row() {
    let store = super::open().await;
    let ids: Vec<JobId> = store.running(100).await.iter().map(|job| job.id).collect();
    let other = store.another().await;
    for id in &ids {
        let (canceller, worker, id) = (store.handle(), Arc::clone(&other), *id);
        let cancel = tokio::spawn(async move {
            tell(&*canceller, id, Command::Cancel(act()), NOW).await.unwrap();
        });
        let end = tokio::spawn(async move {
            tell(&*worker, id, report(1, Outcome::retryable("503")), NOW).await.unwrap();
        });
        cancel.await.unwrap();
        end.await.unwrap();
    }
    assert_one_row_each(&store, &ids).await;
    for stored in store.load(&ids).await.unwrap() {
        assert_eq!(stored.unwrap().job.state.name(), StateName::Cancelled);
    }
}

/// Each change in turn, however many want to make one.
#[tokio::test(flavor = "multi_thread")]
async fn twenty_who_change_one_job_at_once_all_get_through() {
    let store = super::open().await;
    let running = store.running_one().await;
    store.sweep_all(1).await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let (store, id) = (store.handle(), running.id);
        tasks.spawn(async move {
            tell(&*store, id, report(1, Outcome::retryable("503")), LEASE_OVER).await.unwrap()
        });
    }
    let told = tasks.join_all().await;
    assert!(told.iter().all(|told| matches!(told, Told::Done(_))));
    let log = store.log(running.id).await;
    assert_eq!(log.len(), 21);
    assert!(log.iter().zip(2..).all(|(line, version)| line.version == version));
}

/// Writers of two processes that report the same jobs, in different orders.
#[tokio::test(flavor = "multi_thread")]
async fn batches_that_overlap_in_any_order_never_wait_in_a_circle() {
    let store = super::open().await;
    let mixed = [Outcome::Accepted, Outcome::retryable("503")];
    for round in 0..20 {
        let outcomes = if round % 2 == 0 { &mixed[..] } else { &mixed[..1] };
        let jobs = store.running(60).await;
        let mut tasks = tokio::task::JoinSet::new();
        for task in 0..6_usize {
            let store = store.handle();
            let mut changes: Vec<_> = jobs
                .iter()
                .zip(outcomes.iter().cycle().skip(task / 3))
                .map(|(job, outcome)| ended(job, outcome.clone()))
                .collect();
            changes.rotate_left(task * 7);
            if task % 2 == 0 {
                changes.reverse();
            }
            tasks.spawn(async move { (round, store.save(changes).await) });
        }
        let saved = tasks.join_all().await.into_iter();
        let saved: Vec<Saved> = saved
            .flat_map(|(round, saved)| saved.unwrap_or_else(|problem| panic!("round {round}: {problem}")))
            .collect();
        assert_eq!(saved.iter().filter(|saved| **saved == Saved::Yes).count(), 60);
        let ids: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
        assert_one_row_each(&store, &ids).await;
    }
}

/// Cancelled and brought back all the time, a job moves from table to table.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_moves_between_the_tables_is_always_found_once() {
    let store = super::open().await;
    let id = store.put(vec![job()]).await[0];
    let (mover, done) = (store.handle(), Arc::new(std::sync::atomic::AtomicBool::new(false)));
    let moving = {
        let done = Arc::clone(&done);
        tokio::spawn(async move {
            for _ in 0..400 {
                tell(&*mover, id, Command::Cancel(act()), NOW).await.unwrap();
                tell(&*mover, id, Command::Retry(act()), NOW).await.unwrap();
            }
            done.store(true, std::sync::atomic::Ordering::SeqCst);
        })
    };
    let all = tidings::store::JobFilter { limit: 10, ..Default::default() };
    let mut looks = 0;
    while !done.load(std::sync::atomic::Ordering::SeqCst) {
        looks += 1;
        assert!(store.stored(id).await.is_some(), "look {looks}");
        assert_eq!(store.list(&all).await.unwrap().len(), 1, "look {looks}");
    }
    moving.await.unwrap();
    assert!(looks > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_changes_hands_all_the_time_is_never_held_twice() {
    use crate::draft::Draft;
    use tidings::core::unique::UniqueStates;
    use tidings::store::Inserted;
    let store = super::open().await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let store: Arc<dyn Store> = store.handle();
        tasks.spawn(async move {
            for _ in 0..100 {
                let given = job().unique("key", UniqueStates::UNFINISHED);
                let answer = store.insert(vec![given]).await.unwrap()[0];
                if let Inserted::New(id) = answer {
                    tell(&*store, id, Command::Cancel(act()), NOW).await.unwrap();
                }
            }
        });
    }
    let watcher = store.place();
    while !tasks.is_empty() {
        let without = watcher
            .number(
                "SELECT count(*) FROM tidings.job
                 WHERE NOT EXISTS (SELECT 1 FROM tidings.job_key WHERE job_id = job.id)"
                    .replace("job.id)", if store.is_postgres() { "job.id)" } else { "tidings_job.id)" })
                    .as_str(),
            )
            .await;
        assert_eq!(without, 0, "a live job has its key");
        assert!(watcher.number("SELECT count(*) FROM tidings.job").await <= 1);
        while tasks.try_join_next().is_some() {}
        tokio::task::yield_now().await;
    }
    assert_eq!(store.number("SELECT count(*) FROM tidings.job_key").await, 0);
}

/// A worker that reports while the job is cancelled, taken again and reported by another.
#[tokio::test]
async fn a_claim_number_is_never_used_twice() {
    let store = super::open().await;
    let id = store.put(vec![job()]).await[0];
    let mut now = NOW;
    for number in 1..=5 {
        let running = store.take_at(now, 1).await.remove(0);
        assert!(matches!(&running.state, State::Running { claim, .. } if claim.number == number));
        store.done(id, Command::Release { attempt: number }).await;
        now = now + Millis(1);
    }
    assert_eq!(store.facts(id).await, ["released"; 5]);
}
