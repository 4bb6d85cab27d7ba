//! Programs of different age on one database.

use crate::fixture::*;
use serde::{Deserialize, Serialize};
use tidings::{Attempt, Declaration, Kind, Millis, Outcome, Settings, Tidings};

on_both_stores![
    a_kind_that_a_program_does_not_know_is_left_for_one_that_does,
    a_new_optional_field_takes_its_default_in_old_jobs,
    a_field_that_is_not_known_any_more_is_no_obstacle,
];

/// UP1.
async fn a_kind_that_a_program_does_not_know_is_left_for_one_that_does(db: Database) {
    let script = Script::accepting();
    let newer = || {
        let builder = Tidings::builder().kind::<Note, _, _, _>(script.clone(), play);
        builder.kind::<Swift, _, _, _>(script.clone(), play)
    };
    let new = db.held(newer()).await;
    let swift = new.enqueue(Swift::new("a")).await.unwrap().id;
    let note = new.enqueue(Note::new("a")).await.unwrap().id;
    let poll = std::time::Duration::from_millis(5);
    let builder = Tidings::builder().settings(Settings { poll, ..Settings::default() });
    let old = db.held_by(&new.clock, builder.kind::<Note, _, _, _>(script.clone(), play)).await;
    let workers = old.work().await.unwrap();
    assert_eq!(settled(&new, note).await.state.name().as_str(), "completed");
    workers.stop().await;
    tidings::testing::sweep(&old).await.unwrap();
    old.clock.advance(Millis::from_hours(1));
    tidings::testing::keep_house(&old).await.unwrap();
    let left = job(&new, swift).await;
    assert_eq!((left.state.name().as_str(), left.version), ("pending", 0), "not failed, not touched");
    assert_eq!(
        old.job(swift).await.unwrap().map(|view| view.job.kind),
        Some("swift".into()),
        "and to be seen"
    );
    new.drain().await;
    assert_eq!((state(&new, swift).await, script.jobs()), ("completed", vec![note, swift]));
}

/// The arguments of `note` as a newer program has them.
#[derive(Serialize, Deserialize)]
struct NewNote {
    text: String,
    #[serde(default = "quietly")]
    volume: u8,
}

fn quietly() -> u8 {
    3
}

impl Kind for NewNote {
    const DECLARATION: Declaration = Declaration::new("note");
}

async fn echo(_: (), attempt: Attempt<NewNote>) -> Outcome {
    Outcome::discard(format!("{} at {}", attempt.args.text, attempt.args.volume))
}

/// UP7.
async fn a_new_optional_field_takes_its_default_in_old_jobs(db: Database) {
    let old = db.held(Tidings::builder().kind::<Note, _, _, _>(Script::accepting(), play)).await;
    let id = old.enqueue(Note::new("a")).await.unwrap().id;
    let new = db.held_by(&old.clock, Tidings::builder().kind((), echo)).await;
    new.drain().await;
    assert_eq!(last_end(&new, id).await.reason, "a at 3");
}

async fn a_field_that_is_not_known_any_more_is_no_obstacle(db: Database) {
    let new = db.held(Tidings::builder().kind((), echo)).await;
    let id = new.enqueue(NewNote { text: "a".into(), volume: 7 }).await.unwrap().id;
    let old =
        db.held_by(&new.clock, Tidings::builder().kind::<Note, _, _, _>(Script::accepting(), play)).await;
    old.drain().await;
    assert_eq!(state(&old, id).await, "completed");
}
