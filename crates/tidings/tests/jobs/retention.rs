//! What has finished stays for a time, and goes; its evidence stays longer.

use crate::fixture::*;
use tidings::testing::keep_house;
use tidings::{Millis, Outcome, Retention, Settings, Tidings};

on_both_stores![
    each_end_state_is_kept_for_its_time,
    what_is_not_finished_is_never_removed,
    a_thousand_finished_jobs_go_in_one_housekeeping,
    the_settings_say_how_long_things_stay,
    the_evidence_outlives_the_job_and_then_goes,
];

async fn each_end_state_is_kept_for_its_time(db: Database) {
    let script = Script::new([Outcome::Accepted, Outcome::discard("410")]);
    let tidings = db.held(Tidings::builder().kind::<Note, _, _, _>(script, play)).await;
    let completed = tidings.enqueue(Note::new("a")).await.unwrap().id;
    tidings.drain().await;
    let discarded = tidings.enqueue(Note::new("b")).await.unwrap().id;
    tidings.drain().await;
    let cancelled = tidings.enqueue(Note::new("c")).await.unwrap().id;
    tidings.cancel(cancelled, &act("")).await.unwrap();
    let ids = [completed, discarded, cancelled];
    let day = Millis::from_days(1).0;
    for (after, expected) in [
        (day, [true, true, true]),
        (1, [false, true, true]),
        (6 * day - 1, [false, true, true]),
        (1, [false; 3]),
    ] {
        tidings.clock.advance(Millis(after));
        keep_house(&tidings).await.unwrap();
        let mut there = Vec::new();
        for id in ids {
            there.push(tidings.job(id).await.unwrap().is_some());
        }
        assert_eq!(there, expected, "after {after} ms more");
    }
}

async fn what_is_not_finished_is_never_removed(db: Database) {
    let script = Script::new([Outcome::unknown("no answer")]);
    let builder = Tidings::builder().kind::<Letter, _, _, _>(script, play);
    let tidings = db.held(builder.kind::<Note, _, _, _>(Script::accepting(), play)).await;
    let held = tidings.enqueue(Letter::new("a")).await.unwrap().id;
    tidings.drain().await;
    let waiting = tidings.enqueue(Note::new("a")).await.unwrap().id;
    tidings.clock.advance(Millis::from_days(400));
    keep_house(&tidings).await.unwrap();
    assert_eq!((state(&tidings, held).await, state(&tidings, waiting).await), ("unknown", "pending"));
}

async fn a_thousand_finished_jobs_go_in_one_housekeeping(db: Database) {
    let tidings = db.held(Tidings::builder().kind::<Note, _, _, _>(Script::accepting(), play)).await;
    for batch in 0..3 {
        let jobs = (0..700).map(|n| Note::new(&format!("{batch}.{n}")));
        for receipt in tidings.enqueue_all(jobs).await.unwrap().iter().take(1) {
            tidings.cancel(receipt.id, &act("")).await.unwrap();
        }
    }
    let ids: Vec<_> = {
        let filter = tidings::store::JobFilter { limit: 5_000, ..Default::default() };
        tidings.jobs(&filter).await.unwrap().iter().map(|job| job.id).collect()
    };
    let changes: Vec<_> = tidings
        .store()
        .load(&ids)
        .await
        .unwrap()
        .into_iter()
        .flatten()
        .filter_map(|stored| {
            let cancel = tidings::core::decide::Command::Cancel(act(""));
            tidings::store::Change::decide(&stored.job, cancel, NOW).ok().filter(|change| !change.is_empty())
        })
        .collect();
    tidings.store().save(changes).await.unwrap();
    tidings.clock.advance(Millis::from_days(8));
    keep_house(&tidings).await.unwrap();
    let filter = tidings::store::JobFilter { limit: 5_000, ..Default::default() };
    assert_eq!(tidings.jobs(&filter).await.unwrap().len(), 0, "all {} of them", ids.len());
}

async fn the_settings_say_how_long_things_stay(db: Database) {
    let retention = Retention { completed: Millis::from_minutes(1), ..Retention::default() };
    let builder = Tidings::builder().settings(Settings { retention, ..Settings::default() });
    let tidings = db.held(builder.kind::<Note, _, _, _>(Script::accepting(), play)).await;
    let id = tidings.enqueue(Note::new("a")).await.unwrap().id;
    tidings.drain().await;
    tidings.clock.advance(Millis::from_minutes(2));
    keep_house(&tidings).await.unwrap();
    assert!(tidings.job(id).await.unwrap().is_none());
}

async fn the_evidence_outlives_the_job_and_then_goes(db: Database) {
    let tidings = db.held(Tidings::builder().kind::<Note, _, _, _>(Script::accepting(), play)).await;
    keep_house(&tidings).await.unwrap();
    let id = tidings.enqueue(Note::new("a")).await.unwrap().id;
    tidings.drain().await;
    let lines = async || tidings.store().history(&[id]).await.unwrap().remove(0).len();
    tidings.clock.advance(Millis::from_days(29));
    keep_house(&tidings).await.unwrap();
    assert!(tidings.job(id).await.unwrap().is_none());
    assert_eq!(lines().await, 1);
    // A week of facts goes at once, when the last of its days is over.
    tidings.clock.advance(Millis::from_days(9));
    keep_house(&tidings).await.unwrap();
    assert_eq!(lines().await, 0);
}
