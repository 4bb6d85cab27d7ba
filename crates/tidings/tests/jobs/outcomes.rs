//! What a handler says, and what becomes of its job: retry, snooze, discard, panic,
//! time limit, arguments that do not decode.

use crate::fixture::*;
use std::sync::Arc;
use tidings::core::fact::{DiscardWhy, Next};
use tidings::core::outcome::{AttemptOutcome, Effect, FailureKind};
use tidings::core::policy::PolicyData;
use tidings::{Attempt, Millis, Outcome, Preset, Report, Tidings};

on_both_stores![
    a_failure_is_due_again_on_the_policys_backoff_and_discarded_after_the_last_attempt,
    eighteen_attempts_of_a_webhook_take_five_days_of_the_clock,
    a_short_policy_ends_although_a_write_of_its_count_failed,
    twelve_hundred_snoozes_spend_no_attempt_and_do_not_move_the_backoff,
    a_discard_is_final_at_once,
    an_unknown_outcome_is_retried_or_held_as_the_policy_says,
    a_panic_is_caught_with_its_message,
    an_error_that_nobody_classified_is_retryable,
    arguments_that_do_not_decode_are_discarded_at_once,
    a_handler_that_runs_into_its_time_limit_is_gone_before_the_next_attempt,
    a_reason_that_a_database_would_choke_on_is_kept_safe_and_bounded,
    each_attempt_names_the_policy_that_chose_its_delay,
];

async fn a_failure_is_due_again_on_the_policys_backoff_and_discarded_after_the_last_attempt(db: Database) {
    let script = Script::new([Outcome::retryable("503")]);
    let policy = PolicyData {
        attempts: Some(4),
        jitter: Some(tidings::core::policy::JitterData::None),
        ..PolicyData::default()
    };
    let builder = Tidings::builder().kind::<Note, _, _, _>(script, play);
    let tidings = db.held(builder.policy("note", policy.check("four").unwrap())).await;
    let id = tidings.enqueue(Note::new("a")).await.unwrap().id;
    let mut waits = Vec::new();
    while job(&tidings, id).await.state.due_at().is_some() {
        waits.push(tidings.drain_when_due(id).await.0);
    }
    assert_eq!(waits, [0, 1_000, 2_000, 4_000]);
    let view = view(&tidings, id).await;
    assert_eq!((view.job.state.name().as_str(), view.job.counters.attempts), ("discarded", 4));
    let delays: Vec<_> = view.attempts.iter().map(|attempt| attempt.end.as_ref().unwrap().delay_ms).collect();
    assert_eq!(delays, [Some(1_000), Some(2_000), Some(4_000), None]);
    assert_eq!(last_end(&tidings, id).await.next, Next::Discarded { why: DiscardWhy::AttemptsUsedUp });
}

async fn eighteen_attempts_of_a_webhook_take_five_days_of_the_clock(db: Database) {
    let script = Script::new([Outcome::retryable("the receiver answered 503")]);
    let tidings = db.held(Tidings::builder().kind::<Hook, _, _, _>(script.clone(), play)).await;
    let id = tidings.enqueue(Hook::new("a")).await.unwrap().id;
    let mut waits = Vec::new();
    while job(&tidings, id).await.state.due_at().is_some() {
        waits.push(tidings.drain_when_due(id).await.0);
    }
    assert_eq!(script.attempts(), (1..=18).collect::<Vec<_>>());
    let steps_s = [0, 5, 300, 1_800, 7_200, 18_000, 36_000];
    for (attempt, wait) in waits.iter().enumerate() {
        let step = steps_s[attempt.min(6)] * 1_000;
        assert!((step * 9 / 10..=step * 11 / 10).contains(wait), "before attempt {}: {wait}", attempt + 1);
    }
    let days = tidings.now().since(NOW).0 as f64 / 86_400_000.0;
    assert!((4.7..5.9).contains(&days), "{days}");
    assert_eq!(state(&tidings, id).await, "discarded");
    assert_eq!(view(&tidings, id).await.attempts.len(), 18, "the evidence of each");
}

/// RT14: a count that is not written with the reschedule is a count that never ends.
async fn a_short_policy_ends_although_a_write_of_its_count_failed(db: Database) {
    let script = Script::new([Outcome::retryable("403")]);
    let policy = PolicyData { attempts: Some(3), ..PolicyData::default() }.check("three").unwrap();
    let builder = Tidings::builder().kind::<Note, _, _, _>(script.clone(), play).policy("note", policy);
    let tidings = db.held(builder).await;
    let id = tidings.enqueue(Note::new("a")).await.unwrap().id;
    // The first report is never written: the sweep counts its attempt.
    tidings::testing::take_one(&tidings).await.unwrap().expect("a due job");
    tidings.clock.advance(Millis::from_minutes(1));
    assert_eq!(tidings::testing::sweep(&tidings).await.unwrap(), 1);
    while job(&tidings, id).await.state.due_at().is_some() {
        tidings.drain_when_due(id).await;
    }
    assert_eq!(script.attempts(), [2, 3]);
    assert_eq!(state(&tidings, id).await, "discarded");
}

/// RT10, RT11: snoozes are not failures, however many they are.
async fn twelve_hundred_snoozes_spend_no_attempt_and_do_not_move_the_backoff(db: Database) {
    let snoozes = (1..=1_200).map(|n| Outcome::snooze(NOW + Millis(n), "busy"));
    let script = Script::new(snoozes.chain([Outcome::retryable("503"), Outcome::Accepted]));
    let tidings = db.held(Tidings::builder().kind::<Note, _, _, _>(script, play)).await;
    let id = tidings.enqueue(Note::new("a")).await.unwrap().id;
    for _ in 0..1_200 {
        tidings.drain_when_due(id).await;
    }
    let counters = job(&tidings, id).await.counters;
    assert_eq!((counters.snoozes, counters.attempts, counters.claims), (1_200, 0, 1_200));
    tidings.drain_when_due(id).await;
    let delay = last_end(&tidings, id).await.delay_ms.unwrap();
    assert!((900..=1_100).contains(&delay), "the delay of the first attempt, not {delay}");
    tidings.drain_when_due(id).await;
    assert_eq!((state(&tidings, id).await, job(&tidings, id).await.counters.attempts), ("completed", 2));
}

async fn a_discard_is_final_at_once(db: Database) {
    let script = Script::new([Outcome::discard("no such address")]);
    let tidings = db.held(Tidings::builder().kind::<Note, _, _, _>(script, play)).await;
    let id = tidings.enqueue(Note::new("a")).await.unwrap().id;
    assert_eq!(tidings.drain().await, 1);
    let end = last_end(&tidings, id).await;
    assert_eq!((end.outcome, &*end.reason), (AttemptOutcome::PermanentFailure, "no such address"));
    assert_eq!(end.next, Next::Discarded { why: DiscardWhy::Permanent });
    assert_eq!(state(&tidings, id).await, "discarded");
}

async fn an_unknown_outcome_is_retried_or_held_as_the_policy_says(db: Database) {
    let script = Script::new([Outcome::unknown("no answer")]);
    let builder = Tidings::builder().kind::<Note, _, _, _>(script.clone(), play);
    let tidings = db.held(builder.kind::<Letter, _, _, _>(script, play)).await;
    let note = tidings.enqueue(Note::new("a")).await.unwrap().id;
    let letter = tidings.enqueue(Letter::new("a")).await.unwrap().id;
    tidings.drain().await;
    assert!(matches!(last_end(&tidings, note).await.next, Next::Unknown { .. }));
    assert_eq!(last_end(&tidings, letter).await.next, Next::Held);
    for id in [note, letter] {
        assert_eq!((state(&tidings, id).await, job(&tidings, id).await.counters.attempts), ("unknown", 1));
    }
    assert_eq!(job(&tidings, letter).await.state.due_at(), None, "a person decides");
    while job(&tidings, note).await.state.due_at().is_some() {
        tidings.drain_when_due(note).await;
    }
    let end = last_end(&tidings, note).await;
    assert_eq!(end.outcome, AttemptOutcome::Unknown, "discarded, and its last outcome stays unknown");
    assert_eq!(end.next, Next::Discarded { why: DiscardWhy::AttemptsUsedUp });
}

/// Before the first await, after it, and with something that is no text.
async fn a_panic_is_caught_with_its_message(db: Database) {
    async fn panics(_: (), attempt: Attempt<Note>) -> Outcome {
        match &*attempt.args.text {
            "late" => {
                tokio::task::yield_now().await;
                panic!("after {} steps", 2)
            }
            "number" => std::panic::panic_any(42_u8),
            _ => panic!("at once"),
        }
    }
    // Not an async function: it panics while its future is made.
    #[expect(clippy::needless_pass_by_value, reason = "a handler")]
    fn panics_early(_: (), attempt: Attempt<Letter>) -> std::future::Ready<Outcome> {
        panic!("no future for {}", attempt.args.text)
    }
    let tidings = db.held(Tidings::builder().kind((), panics).kind((), panics_early)).await;
    let texts = ["late", "number", "at once"];
    let notes = tidings.enqueue_all(texts.map(Note::new)).await.unwrap();
    let letter = tidings.enqueue(Letter::new("ann")).await.unwrap();
    assert_eq!(tidings.drain().await, 4);
    let expected = ["after 2 steps", "its message is not text", "at once", "no future for ann"];
    for (receipt, message) in notes.iter().chain([&letter]).zip(expected) {
        let end = last_end(&tidings, receipt.id).await;
        assert_eq!(end.reason, format!("the handler panicked: {message}"));
        assert_eq!(end.outcome, AttemptOutcome::RetryableFailure);
        assert_eq!(
            (end.evidence.failure_kind, end.evidence.effect),
            (Some(FailureKind::Panic), Effect::Possible)
        );
        assert_eq!(job(&tidings, receipt.id).await.counters.attempts, 1, "it counts");
    }
}

async fn an_error_that_nobody_classified_is_retryable(db: Database) {
    async fn fails(_: (), _: Attempt<Note>) -> Result<Outcome, std::num::ParseIntError> {
        let number: u8 = "many".parse()?;
        Ok(Outcome::discard(number.to_string()))
    }
    let tidings = db.held(Tidings::builder().kind((), fails)).await;
    let id = tidings.enqueue(Note::new("a")).await.unwrap().id;
    tidings.drain().await;
    let end = last_end(&tidings, id).await;
    assert_eq!(
        (end.outcome, &*end.reason),
        (AttemptOutcome::RetryableFailure, "invalid digit found in string")
    );
}

async fn arguments_that_do_not_decode_are_discarded_at_once(db: Database) {
    /// What an older program called by the same name.
    #[derive(serde::Serialize, serde::Deserialize)]
    struct OldNote {
        password: String,
    }
    impl tidings::Kind for OldNote {
        const DECLARATION: tidings::Declaration = tidings::Declaration::new("note");
    }
    let old = db.held(Tidings::builder().kind::<OldNote, _, _, _>(Script::accepting(), play)).await;
    let id = old.enqueue(OldNote { password: "s3cr3t".into() }).await.unwrap().id;
    let script = Script::accepting();
    let new = db.held_by(&old.clock, Tidings::builder().kind::<Note, _, _, _>(script.clone(), play)).await;
    new.drain().await;
    let end = last_end(&new, id).await;
    assert_eq!((end.outcome, end.evidence.effect), (AttemptOutcome::PermanentFailure, Effect::None));
    assert_eq!(end.evidence.failure_kind, Some(FailureKind::BadArguments));
    assert_eq!(end.reason, "the arguments do not decode to the kind: args: missing field `text`");
    assert_eq!(
        (state(&new, id).await, script.attempts().len()),
        ("discarded", 0),
        "the handler never saw them"
    );
}

async fn a_handler_that_runs_into_its_time_limit_is_gone_before_the_next_attempt(db: Database) {
    let gate = Gate::default();
    let tidings = db.held(Tidings::builder().kind::<Swift, _, _, _>(gate.clone(), wait_at_gate)).await;
    let id = tidings.enqueue(Swift::new("a")).await.unwrap().id;
    tidings.drain().await;
    gate.dropped().await;
    let end = last_end(&tidings, id).await;
    assert_eq!(
        (end.outcome, &*end.reason),
        (AttemptOutcome::Unknown, "the handler ran into its time limit of 100 ms")
    );
    assert_eq!(
        (end.evidence.failure_kind, end.evidence.effect),
        (Some(FailureKind::TimeLimit), Effect::Possible)
    );
    assert_eq!(state(&tidings, id).await, "unknown");
}

/// ST7.
async fn a_reason_that_a_database_would_choke_on_is_kept_safe_and_bounded(db: Database) {
    let long = "x".repeat(10_000_000);
    let script = Script::new([Outcome::retryable("a\u{0}b\u{1b}[31m"), Outcome::discard(long)]);
    let tidings = db.held(Tidings::builder().kind::<Note, _, _, _>(script, play)).await;
    let id = tidings.enqueue(Note::new("a")).await.unwrap().id;
    tidings.drain().await;
    assert_eq!(last_end(&tidings, id).await.reason, "a\u{fffd}b\u{fffd}[31m");
    tidings.drain_when_due(id).await;
    assert_eq!(last_end(&tidings, id).await.reason, "x".repeat(1_024));
    assert_eq!(state(&tidings, id).await, "discarded");
}

async fn each_attempt_names_the_policy_that_chose_its_delay(db: Database) {
    let script = Script::new([Outcome::retryable("503")]);
    let first = db.held(Tidings::builder().kind::<Note, _, _, _>(script.clone(), play)).await;
    let id = first.enqueue(Note::new("a")).await.unwrap().id;
    first.drain().await;
    assert_eq!(last_end(&first, id).await.policy, "default@1");
    let policy = PolicyData { version: Some(2), preset: Some(Preset::Webhook), ..PolicyData::default() };
    let builder = Tidings::builder().kind::<Note, _, _, _>(script, play);
    let second = db.held_by(&first.clock, builder.policy("note", policy.check("patient").unwrap())).await;
    second.drain_when_due(id).await;
    let end = last_end(&second, id).await;
    assert_eq!(end.policy, "patient@2");
    let delay = end.delay_ms.unwrap();
    assert!((270_000..=330_000).contains(&delay), "the second step of the new policy: {delay}");
}

/// Evidence of a handler that says more than an outcome.
#[tokio::test]
async fn a_handler_may_give_evidence_with_its_outcome() {
    async fn handler(_: Arc<()>, _: Attempt<Note>) -> Report {
        let evidence = tidings::core::evidence::Evidence::plain(Effect::None, Some(FailureKind::Dns));
        Report { outcome: Outcome::retryable("no such host"), evidence }
    }
    let tidings = Database::sqlite().held(Tidings::builder().kind(Arc::new(()), handler)).await;
    let report = tidings::testing::perform(&tidings, Note::new("a")).await;
    assert_eq!(report.evidence.failure_kind, Some(FailureKind::Dns));
}
