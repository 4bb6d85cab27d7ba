//! Writing what was decided: compare, write the row, append the facts, all or nothing.

use crate::draft::{Draft, LEASE_OVER, NOW, act, ended, job, report, sweep_of};
use tidings::core::decide::Command;
use tidings::core::fact::Fact;
use tidings::core::job::{Job, State, StateName};
use tidings::core::outcome::Outcome;
use tidings::core::time::Millis;
use tidings::store::{Change, Saved, StoreError, Told};

fn decided(job: &Job, command: Command<'_>) -> Change {
    Change::decide(job, command, NOW).unwrap()
}

#[tokio::test]
async fn what_was_saved_is_what_is_loaded() {
    let store = super::open().await;
    for outcome in [
        Outcome::Accepted,
        Outcome::retryable("503"),
        Outcome::discard("410"),
        Outcome::unknown("no answer"),
        Outcome::snooze(NOW + Millis(5_000), "not now"),
    ] {
        let running = store.running_one().await;
        let change = ended(&running, outcome);
        let (after, logged) = (change.after.clone(), change.logged.clone());
        assert_eq!(store.save_one(change).await, Saved::Yes);
        assert_eq!(store.job(running.id).await, after);
        assert_eq!(store.log(running.id).await, logged);
    }
}

#[tokio::test]
async fn what_is_unknown_and_held_is_kept_without_a_due_time() {
    let store = super::open().await;
    store.put(vec![job().args("\"hold\"")]).await;
    let running = store.take(1).await.remove(0);
    store.save_all(vec![ended(&running, Outcome::unknown("no answer"))]).await;
    assert_eq!(store.job(running.id).await.state, State::Held);
    assert!(store.take_at(NOW + Millis::from_days(9_000), 10).await.is_empty());
}

#[tokio::test]
async fn a_write_from_an_old_version_changes_nothing() {
    let store = super::open().await;
    let running = store.running_one().await;
    let (first, late) = (ended(&running, Outcome::Accepted), ended(&running, Outcome::discard("410")));
    assert_eq!(store.save_one(first.clone()).await, Saved::Yes);
    assert_eq!(store.save_one(late).await, Saved::Conflict);
    assert_eq!(store.save_one(first).await, Saved::Conflict, "a change is written once");
    assert_eq!(store.job(running.id).await.state.name(), StateName::Completed);
    assert_eq!(store.facts(running.id).await, ["attempt_ended"]);
}

#[tokio::test]
async fn a_change_of_a_job_that_is_not_there_is_a_conflict_on_every_route() {
    let store = super::open().await;
    let running = store.running_one().await;
    let discarded = ended(&running, Outcome::discard("410")).after;
    let mut changes = vec![
        ended(&running, Outcome::retryable("503")),
        ended(&running, Outcome::Accepted),
        decided(&discarded, Command::Retry(act())),
        decided(&discarded, report(1, Outcome::Accepted)),
    ];
    for change in &mut changes {
        change.after.id = tidings::random::job_id(NOW);
    }
    assert_eq!(store.save(changes).await.unwrap(), [Saved::Conflict; 4]);
    assert_eq!(store.number("SELECT count(*) FROM tidings.fact").await, 0);
}

#[tokio::test]
async fn of_two_changes_of_one_job_in_one_batch_only_the_first_is_written() {
    let store = super::open().await;
    let jobs = store.running(2).await;
    let changes = vec![
        ended(&jobs[0], Outcome::retryable("503")),
        ended(&jobs[1], Outcome::Accepted),
        ended(&jobs[0], Outcome::Accepted),
        ended(&jobs[1], Outcome::Accepted),
    ];
    let saved = store.save(changes).await.unwrap();
    assert_eq!(saved, [Saved::Yes, Saved::Yes, Saved::Conflict, Saved::Conflict]);
    assert_eq!(store.job(jobs[0].id).await.state.name(), StateName::Retryable);
    for job in jobs {
        assert_eq!(store.facts(job.id).await.len(), 1);
    }
}

#[tokio::test]
async fn changes_that_go_different_ways_share_a_batch_with_one_that_conflicts() {
    let store = super::open().await;
    let jobs = store.running(6).await;
    let ended_already = store
        .save_all(jobs[3..].iter().map(|job| ended(job, Outcome::discard("410"))).collect())
        .await;
    let stale = decided(&ended_already[2], Command::Retry(act()));
    store.save_all(vec![stale.clone()]).await;

    let changes = vec![
        ended(&jobs[0], Outcome::retryable("503")),
        ended(&jobs[1], Outcome::Accepted),
        stale,
        decided(&ended_already[0], Command::Retry(act())),
        decided(&ended_already[1], report(1, Outcome::Accepted)),
        ended(&jobs[2], Outcome::snooze(NOW + Millis(5), "later")),
    ];
    let saved = store.save(changes).await.unwrap();
    use Saved::{Conflict, Yes};
    assert_eq!(saved, [Yes, Yes, Conflict, Yes, Yes, Yes]);
    let mut states = vec![];
    for job in &jobs {
        states.push(store.job(job.id).await.state.name().as_str());
    }
    assert_eq!(states, ["retryable", "completed", "snoozed", "pending", "completed", "pending"]);
}

#[tokio::test]
async fn five_hundred_ends_are_written_at_once_with_a_fact_each() {
    let store = super::open().await;
    let jobs = store.running(500).await;
    let outcomes = [Outcome::Accepted, Outcome::retryable("503"), Outcome::discard("410")];
    let changes = jobs.iter().zip(outcomes.iter().cycle()).map(|(job, outcome)| ended(job, outcome.clone()));
    let after = store.save_all(changes.collect()).await;
    let ids: Vec<_> = after.iter().map(|job| job.id).collect();
    let loaded = store.load(&ids).await.unwrap();
    for (after, stored) in after.iter().zip(loaded) {
        assert_eq!(*after, stored.unwrap().job);
    }
    assert_eq!(store.number("SELECT count(*) FROM tidings.fact").await, 500);
    assert_eq!(store.number("SELECT count(*) FROM tidings.job").await, 167);
    assert_eq!(store.number("SELECT count(*) FROM tidings.finished_job").await, 333);
}

#[tokio::test]
async fn a_finished_job_moves_out_and_is_never_taken_again() {
    let store = super::open().await;
    let running = store.running_one().await;
    store.save_all(vec![ended(&running, Outcome::Accepted)]).await;
    assert!(store.take_at(NOW + Millis::from_days(9_000), 10).await.is_empty());
    assert_eq!(store.number("SELECT count(*) FROM tidings.job").await, 0);
    assert!(matches!(store.tell(running.id, Command::Retry(act()), NOW).await, Told::Refused(_)));
}

#[tokio::test]
async fn a_revived_job_comes_back_with_everything_it_had() {
    let store = super::open().await;
    let given = job().kind("demo").tenant("acme").priority(3).args(r#"{"a":1}"#);
    store.put(vec![given.clone()]).await;
    let running = store.take(1).await.remove(0);
    store.save_all(vec![ended(&running, Outcome::discard("410"))]).await;
    let revived = store.done(given.job.id, Command::Retry(act())).await;
    let stored = store.stored(given.job.id).await.unwrap();
    assert_eq!((&stored.job, &*stored.args), (&revived, r#"{"a":1}"#));
    assert_eq!(store.number("SELECT count(*) FROM tidings.finished_job").await, 0);
    let taken = store.take(1).await.remove(0);
    assert_eq!((taken.id, taken.counters.claims, taken.priority), (given.job.id, 2, given.job.priority));
}

#[tokio::test]
async fn a_late_report_on_a_finished_job_is_added_and_a_late_accepted_settles_it() {
    let store = super::open().await;
    let running = store.running_one().await;
    store.save_all(vec![sweep_of(&running)]).await;
    let cancelled = store.done(running.id, Command::Cancel(act())).await;

    let amended = store.done(running.id, report(1, Outcome::retryable("503"))).await;
    assert_eq!(amended.state, cancelled.state, "it changes nothing but is remembered");
    let at = NOW + Millis(77);
    let settled = store.tell(running.id, report(1, Outcome::Accepted), at).await;
    assert!(matches!(settled, Told::Done(_)), "{settled:?}");
    assert_eq!(store.job(running.id).await.state, State::Completed { at });
    let facts = ["attempt_ended", "cancelled", "reported_late", "reported_late"];
    assert_eq!(store.facts(running.id).await, facts);
}

/// A report after the lease is two facts of one change: the sweep's and the late report.
#[tokio::test]
async fn the_facts_of_one_change_are_numbered_one_after_the_other() {
    let store = super::open().await;
    let running = store.running_one().await;
    let late = Change::decide(&running, report(1, Outcome::Accepted), LEASE_OVER).unwrap();
    store.save_all(vec![late]).await;
    let log = store.log(running.id).await;
    assert_eq!(log.iter().map(|line| (line.version, line.fact.name())).collect::<Vec<_>>(), [
        (2, "attempt_ended"),
        (3, "reported_late")
    ]);
    assert_eq!(store.job(running.id).await.version, 3);
}

/// CW5: there is no moment between the row and its facts.
#[tokio::test]
async fn row_and_facts_are_written_together_or_not_at_all() {
    let store = super::open().await;
    let running = store.running(4).await;
    let discarded = store.save_all(vec![ended(&running[3], Outcome::discard("410"))]).await.remove(0);
    let no_more_facts = if store.is_postgres() {
        "CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$;
         CREATE TRIGGER no_more BEFORE INSERT ON tidings.fact FOR EACH ROW EXECUTE FUNCTION no()"
    } else {
        "CREATE TRIGGER no_more BEFORE INSERT ON tidings_fact BEGIN SELECT RAISE(ABORT, 'no'); END"
    };
    store.sql(no_more_facts).await.unwrap();
    let changes = [
        ended(&running[0], Outcome::Accepted),
        ended(&running[1], Outcome::retryable("503")),
        ended(&running[2], Outcome::discard("410")),
        decided(&discarded, Command::Retry(act())),
        decided(&discarded, report(1, Outcome::Accepted)),
    ];
    for change in &changes {
        let refused = store.save(vec![change.clone()]).await.unwrap_err();
        assert!(matches!(refused, StoreError::Refused(_)), "{refused}");
    }
    store.save(changes[..4].to_vec()).await.unwrap_err();
    for before in running[..3].iter().chain([&discarded]) {
        assert_eq!(store.job(before.id).await, *before);
    }
    assert_eq!(store.facts(discarded.id).await.len(), 1);
}

#[tokio::test]
async fn a_change_without_facts_is_no_harm() {
    let store = super::open().await;
    let id = store.put(vec![job()]).await[0];
    let before = store.job(id).await;
    let nothing = decided(&before, Command::Retry(act()));
    assert!(nothing.is_empty());
    assert_eq!(store.save_one(nothing).await, Saved::Yes);
    assert_eq!(store.job(id).await, before);
}

#[tokio::test]
async fn what_is_told_of_a_job_is_answered_with_what_became_of_it() {
    let store = super::open().await;
    assert!(matches!(
        store.tell(tidings::random::job_id(NOW), Command::Cancel(act()), NOW).await,
        Told::NoSuchJob
    ));
    let running = store.running_one().await;
    let asked = store.done(running.id, Command::Cancel(act())).await;
    assert!(matches!(asked.state, State::Running { cancel_requested: true, .. }));
    assert_eq!(store.done(running.id, Command::Cancel(act())).await.version, asked.version, "asked once");
    assert!(matches!(&store.log(running.id).await[0].fact, Fact::CancelRequested(act) if act.actor == "ann"));
}
