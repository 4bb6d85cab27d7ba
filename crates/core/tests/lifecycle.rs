//! What must hold of a job whatever happens to it in whatever order.

#![allow(clippy::unwrap_used, reason = "a test may stop at a surprise")]

mod world;

use proptest::prelude::*;
use tidings_core::decide::{Command, Ended, Refusal, decide};
use tidings_core::evidence::Evidence;
use tidings_core::evolve::{evolve, replay};
use tidings_core::fact::{DiscardWhy, EndedBy, Fact, Next, Resolution};
use tidings_core::job::{Job, State, StateName};
use tidings_core::outcome::{AttemptOutcome, Effect, Outcome};
use tidings_core::policy::{Draw, OnUnknown, Policy, Preset};
use tidings_core::time::{Millis, Time};
use world::{LEASE, POLICY, WORKER, act, fresh, retry_after_snooze};

/// A job with its log, driven by commands, as a store would keep it.
struct Life {
    initial: Job,
    job: Job,
    log: Vec<(i64, Time, Fact)>,
    now: Time,
}

impl Life {
    fn new() -> Life {
        Life { initial: fresh(), job: fresh(), log: Vec::new(), now: Time(0) }
    }

    fn tell(&mut self, command: Command<'_>) -> Result<(), Refusal> {
        for fact in decide(&self.job, command, self.now)? {
            self.job = evolve(self.job.clone(), &fact, self.now);
            if fact.is_logged() {
                self.log.push((self.job.version, self.now, fact));
            }
        }
        Ok(())
    }

    /// Waits until the job is due and starts it; the attempt's number.
    fn start(&mut self, on_unknown: OnUnknown) -> i64 {
        self.now = self.now.max(self.job.state.due_at().expect("a job to start is due"));
        self.tell(Command::Start { worker: WORKER, lease: LEASE, on_unknown }).unwrap();
        self.job.counters.claims
    }

    fn report(&mut self, attempt: i64, ended: Ended, policy: &Policy) -> Result<(), Refusal> {
        let evidence = Evidence::plain(Effect::Possible, None);
        self.tell(Command::Report { attempt, ended, evidence, policy, draw: Draw::MIDDLE })
    }

    fn attempt(&mut self, outcome: Outcome, policy: &Policy) {
        let attempt = self.start(OnUnknown::Retry);
        self.now = self.now + Millis(10);
        self.report(attempt, Ended::Returned(outcome), policy).unwrap();
    }

    fn last_end(&self) -> &tidings_core::fact::AttemptEnd {
        match &self.log.last().expect("something happened").2 {
            Fact::AttemptEnded(end) => end,
            other => panic!("the last fact is {other:?}"),
        }
    }
}

/// The 18 attempts of the webhook preset, over 5.3 days of a hand-held clock.
#[test]
fn a_webhook_is_tried_eighteen_times_over_five_days_and_then_kept_as_discarded() {
    let policy = Preset::Webhook.policy();
    let mut life = Life::new();
    let mut started = vec![];
    while !life.job.state.name().is_finished() {
        let due = life.job.state.due_at().unwrap();
        started.push(due.0 / 1_000);
        life.attempt(Outcome::retryable("the receiver answered 503"), &policy);
    }
    assert_eq!(started.len(), 18);
    assert_eq!(life.log.len(), 18, "one fact an attempt");
    assert_eq!(&started[..5], &[0, 5, 305, 2_105, 9_305]);
    assert!((459_305..459_310).contains(&started[17]), "5.3 days: {}", started[17]);
    assert_eq!(life.last_end().next, Next::Discarded { why: DiscardWhy::AttemptsUsedUp });
    assert_eq!(life.last_end().policy, "webhook@1");
}

/// RT10, RT11.
#[test]
fn forty_thousand_snoozes_spend_no_attempt_and_do_not_move_the_backoff() {
    let mut life = Life::new();
    for _ in 0..40_000 {
        let until = life.job.state.due_at().unwrap().max(life.now) + Millis(1_000);
        life.attempt(Outcome::snooze(until, "busy"), &POLICY);
    }
    assert_eq!((life.job.counters.snoozes, life.job.counters.attempts), (40_000, 0));
    life.attempt(Outcome::retryable("503"), &POLICY);
    assert_eq!(life.last_end().delay_ms, Some(1_000), "the delay of the first attempt");
}

#[test]
fn a_ceiling_of_snoozes_discards_the_job_and_says_so() {
    let data: tidings_core::policy::PolicyData = toml::from_str("snoozes_max = 2").unwrap();
    let policy = data.check("patient").unwrap();
    let mut life = Life::new();
    for _ in 0..3 {
        let until = life.now + Millis(60_000);
        life.attempt(Outcome::snooze(until, "busy"), &policy);
    }
    assert_eq!(life.last_end().next, Next::Discarded { why: DiscardWhy::SnoozesUsedUp });
}

/// RT1, RT4: the later of Retry-After and the policy, under the cap.
#[test]
fn a_retry_after_is_never_shorter_than_the_policy_and_never_longer_than_its_cap() {
    let policy = Preset::Webhook.policy();
    for (asked_s, waited_s, cut) in [(1, 5, false), (120, 120, false), (86_400, 36_000, true)] {
        let mut life = Life::new();
        let attempt = life.start(OnUnknown::Retry);
        life.report(attempt, retry_after_snooze(life.now + Millis::from_seconds(asked_s)), &policy).unwrap();
        assert_eq!(life.last_end().delay_ms, Some(waited_s * 1_000), "asked for {asked_s} s");
        assert!(matches!(life.last_end().next, Next::Snoozed { capped, .. } if capped == cut));
        assert_eq!(life.job.counters.attempts, 0);
    }
}

/// The answer came ten seconds after the attempt's start: its Retry-After counts from there.
#[test]
fn a_retry_after_counts_from_the_report_and_not_from_the_start() {
    let mut life = Life::new();
    let attempt = life.start(OnUnknown::Retry);
    let ended = retry_after_snooze(life.now + Millis(120_000));
    life.now = life.now + Millis(10_000);
    let evidence: Evidence = serde_json::from_str(
        r#"{"effect": "none", "http": {"method": "POST", "origin": "https://a.b", "phase": "done", "bytes_written": 1,
            "bytes_read": 1, "request_body_bytes": 0, "retry_after": {"raw": "120", "used_ms": 120000}}}"#,
    )
    .unwrap();
    let policy = Preset::Webhook.policy();
    life.tell(Command::Report { attempt, ended, evidence, policy: &policy, draw: Draw::MIDDLE }).unwrap();
    assert_eq!(life.last_end().delay_ms, Some(120_000));
    assert_eq!(life.job.state.due_at(), Some(life.now + Millis(120_000)));
}

#[test]
fn a_handlers_own_snooze_is_taken_as_named() {
    let mut life = Life::new();
    life.attempt(Outcome::snooze(Time(10_000), "after lunch"), &Preset::Webhook.policy());
    assert_eq!(life.job.state.due_at(), Some(Time(10_000)));
}

#[test]
fn a_snooze_to_a_time_that_has_passed_is_no_loop() {
    for named in [Time(0), Time(1), Time(i64::MIN)] {
        let mut life = Life::new();
        life.now = Time(1_000_000);
        life.attempt(Outcome::snooze(named, "again"), &POLICY);
        assert_eq!(life.last_end().delay_ms, Some(1_000), "{named:?}");
    }
}

#[test]
fn a_job_past_its_policys_total_age_is_given_up() {
    let data: tidings_core::policy::PolicyData =
        toml::from_str("age_max_ms = 2500\njitter = \"none\"").unwrap();
    let policy = data.check("short").unwrap();
    let mut life = Life::new();
    life.attempt(Outcome::retryable("503"), &policy);
    life.attempt(Outcome::retryable("503"), &policy);
    assert_eq!(
        life.last_end().next,
        Next::Discarded { why: DiscardWhy::TooOld },
        "1 s, then 2 s would be too late"
    );
}

/// CL17, ST1: a dead worker is an unknown outcome, and then the policy.
#[test]
fn a_lease_that_is_over_becomes_unknown_and_is_retried_or_held() {
    for (on_unknown, state) in [(OnUnknown::Retry, true), (OnUnknown::Hold, false)] {
        let mut life = Life::new();
        life.start(on_unknown);
        let sweep = || Command::Sweep { policy: &POLICY, draw: Draw(0) };
        assert_eq!(life.tell(sweep()), Err(Refusal::LeaseNotOver));
        life.now = life.now + LEASE;
        life.tell(sweep()).unwrap();
        assert_eq!(life.job.state.name(), StateName::Unknown);
        assert_eq!(life.job.state.due_at().is_some(), state, "a held job is due never");
        let end = life.last_end();
        assert_eq!((end.outcome, end.ended_by), (AttemptOutcome::Unknown, EndedBy::Sweep));
        assert_eq!((life.job.counters.attempts, life.job.counters.crashes), (1, 1));
        assert_eq!(life.tell(sweep()), Err(Refusal::NotRunning), "a second sweeper changes nothing");
    }
}

#[test]
fn a_job_that_kills_its_workers_runs_out_of_crashes_before_attempts() {
    let policy = Preset::Webhook.policy();
    let mut life = Life::new();
    for _ in 0..5 {
        life.start(OnUnknown::Retry);
        life.now = life.now + LEASE;
        life.tell(Command::Sweep { policy: &policy, draw: Draw(0) }).unwrap();
    }
    assert_eq!(life.last_end().next, Next::Discarded { why: DiscardWhy::CrashesUsedUp });
}

/// DU10, CW1: what a worker says after its lease is kept, and only an accepted settles.
#[test]
fn a_late_report_is_kept_and_only_a_late_accepted_settles_the_job() {
    for swept_first in [true, false] {
        for (outcome, settled) in
            [(Outcome::Accepted, true), (Outcome::retryable("503"), false), (Outcome::discard("410"), false)]
        {
            let mut life = Life::new();
            let attempt = life.start(OnUnknown::Retry);
            life.now = life.now + LEASE;
            if swept_first {
                life.tell(Command::Sweep { policy: &POLICY, draw: Draw::MIDDLE }).unwrap();
            }
            life.report(attempt, Ended::Returned(outcome), &POLICY).unwrap();
            let names: Vec<_> = life.log.iter().map(|(_, _, fact)| fact.name()).collect();
            assert_eq!(names, ["attempt_ended", "reported_late"], "the same history whoever came first");
            let expected = if settled { StateName::Completed } else { StateName::Unknown };
            assert_eq!(life.job.state.name(), expected);
            assert_eq!(life.job.counters.attempts, 1);
        }
    }
}

#[test]
fn an_attempt_in_flight_is_the_last_one_when_an_earlier_one_turns_out_accepted() {
    for second in [Outcome::retryable("503"), Outcome::discard("410"), Outcome::unknown("no answer")] {
        let mut life = Life::new();
        let first_attempt = life.start(OnUnknown::Retry);
        life.now = life.now + LEASE;
        life.tell(Command::Sweep { policy: &POLICY, draw: Draw(0) }).unwrap();
        let second_attempt = life.start(OnUnknown::Retry);
        life.report(first_attempt, Ended::Returned(Outcome::Accepted), &POLICY).unwrap();
        assert_eq!(life.job.state.name(), StateName::Running, "its attempt goes on");
        life.report(second_attempt, Ended::Returned(second), &POLICY).unwrap();
        assert_eq!(life.last_end().next, Next::Completed { by_late_report: true });
    }
}

/// CW11: cancel and finish, in both orders.
#[test]
fn cancel_and_accepted_leave_one_end_state_in_either_order() {
    let mut life = Life::new();
    let attempt = life.start(OnUnknown::Retry);
    life.tell(Command::Cancel(act())).unwrap();
    life.tell(Command::Cancel(act())).unwrap();
    life.report(attempt, Ended::Returned(Outcome::Accepted), &POLICY).unwrap();
    assert_eq!(
        life.job.state.name(),
        StateName::Completed,
        "it happened; the request to cancel is in the log"
    );
    assert_eq!(life.tell(Command::Cancel(act())), Err(Refusal::Finished));

    let mut life = Life::new();
    let attempt = life.start(OnUnknown::Retry);
    life.tell(Command::Cancel(act())).unwrap();
    life.report(attempt, Ended::Returned(Outcome::retryable("503")), &POLICY).unwrap();
    assert_eq!(life.job.state.name(), StateName::Cancelled, "a cancelled job is not tried again");
}

/// CW11: the worker died before it heard of the cancel.
#[test]
fn a_job_whose_worker_is_lost_after_a_cancel_is_cancelled_and_never_sent_again() {
    for on_unknown in [OnUnknown::Retry, OnUnknown::Hold] {
        let mut life = Life::new();
        let attempt = life.start(on_unknown);
        life.tell(Command::Cancel(act())).unwrap();
        life.now = life.now + LEASE;
        life.tell(Command::Sweep { policy: &POLICY, draw: Draw(0) }).unwrap();
        assert_eq!(
            (life.last_end().outcome, life.last_end().next),
            (AttemptOutcome::Unknown, Next::Cancelled)
        );
        life.report(attempt, Ended::Returned(Outcome::Accepted), &POLICY).unwrap();
        assert_eq!(life.job.state.name(), StateName::Completed, "it happened all the same");
    }
}

#[test]
fn a_released_claim_leaves_everything_but_the_claim_number_as_it_was() {
    let mut life = Life::new();
    life.attempt(Outcome::retryable("503"), &POLICY);
    let attempt = life.start(OnUnknown::Retry);
    life.tell(Command::Release { attempt }).unwrap();
    assert_eq!(life.job.state.name(), StateName::Retryable);
    assert_eq!(life.job.counters.attempts, 1);
    assert_eq!(life.start(OnUnknown::Retry), attempt + 1, "a claim number is never reused");
    assert_eq!(life.tell(Command::Release { attempt }), Err(Refusal::NoSuchAttempt));
}

/// UI1, UI2.
#[test]
fn a_retry_by_hand_gives_the_attempts_back_and_goes_on_counting_claims() {
    let mut life = Life::new();
    life.attempt(Outcome::discard("410"), &POLICY);
    life.tell(Command::Retry(act())).unwrap();
    assert_eq!((life.job.counters.attempts, life.job.counters.claims), (0, 1));
    life.attempt(Outcome::retryable("503"), &POLICY);
    life.tell(Command::Retry(act())).unwrap();
    assert_eq!(life.job.state.due_at(), Some(life.now), "the next attempt is now, not a second one");
    let before = life.log.len();
    life.tell(Command::Retry(act())).unwrap();
    assert_eq!(life.log.len(), before, "pressed twice it is one retry");
    life.attempt(Outcome::Accepted, &POLICY);
    assert_eq!(life.tell(Command::Retry(act())), Err(Refusal::Accepted));
}

#[test]
fn a_report_of_an_attempt_that_was_never_made_is_refused() {
    let mut life = Life::new();
    assert_eq!(life.report(1, Ended::Returned(Outcome::Accepted), &POLICY), Err(Refusal::NoSuchAttempt));
    let attempt = life.start(OnUnknown::Retry);
    assert_eq!(
        life.report(attempt + 1, Ended::Returned(Outcome::Accepted), &POLICY),
        Err(Refusal::NoSuchAttempt)
    );
    life.report(attempt, Ended::Returned(Outcome::Accepted), &POLICY).unwrap();
    assert_eq!(
        life.report(attempt, Ended::Returned(Outcome::Accepted), &POLICY),
        Err(Refusal::NoSuchAttempt)
    );
}

/// ST7: text that a database or a terminal would choke on.
#[test]
fn a_reason_is_kept_bounded_and_without_control_characters() {
    let mut life = Life::new();
    life.attempt(Outcome::retryable(format!("a\u{0}b{}", "x".repeat(10_000_000))), &POLICY);
    let reason = &life.last_end().reason;
    assert!(reason.starts_with("a\u{fffd}b") && reason.len() <= 1024);
}

#[test]
fn a_fact_reads_back_as_it_was_written() {
    let mut life = Life::new();
    life.attempt(Outcome::retryable("503"), &POLICY);
    life.tell(Command::Cancel(act())).unwrap();
    life.tell(Command::Retry(act())).unwrap();
    for (_, _, fact) in &life.log {
        let text = serde_json::to_string(fact).unwrap();
        assert_eq!(&serde_json::from_str::<Fact>(&text).unwrap(), fact, "{text}");
    }
}

#[derive(Clone, Debug)]
enum Step {
    Start(bool),
    Report { back: i64, outcome: u8 },
    Stopped,
    Release,
    Sweep,
    Cancel,
    Retry,
    Resolve(u8),
    Wait(i64),
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => any::<bool>().prop_map(Step::Start),
        3 => (0_i64..3, 0_u8..5).prop_map(|(back, outcome)| Step::Report { back, outcome }),
        1 => Just(Step::Stopped),
        1 => Just(Step::Release),
        2 => Just(Step::Sweep),
        1 => Just(Step::Cancel),
        1 => Just(Step::Retry),
        1 => (0_u8..3).prop_map(Step::Resolve),
        3 => prop_oneof![0_i64..2_000, 40_000_i64..60_000].prop_map(Step::Wait),
    ]
}

fn outcome(number: u8, now: Time) -> Outcome {
    match number {
        0 => Outcome::Accepted,
        1 => Outcome::retryable("503"),
        2 => Outcome::snooze(now + Millis(500), "later"),
        3 => Outcome::discard("410"),
        _ => Outcome::unknown("no answer"),
    }
}

fn take(life: &mut Life, step: &Step) {
    // A refusal is a legal answer to a random command; what it must never do is change the job.
    let before = life.job.clone();
    let refused = match *step {
        Step::Wait(ms) => {
            life.now = life.now + Millis(ms);
            return;
        }
        Step::Start(hold) => {
            let on_unknown = if hold { OnUnknown::Hold } else { OnUnknown::Retry };
            life.tell(Command::Start { worker: WORKER, lease: LEASE, on_unknown })
        }
        Step::Report { back, outcome: number } => {
            let ended = Ended::Returned(outcome(number, life.now));
            life.report(life.job.counters.claims - back, ended, &POLICY)
        }
        Step::Stopped => life.report(life.job.counters.claims, Ended::Cancelled, &POLICY),
        Step::Release => life.tell(Command::Release { attempt: life.job.counters.claims }),
        Step::Sweep => life.tell(Command::Sweep { policy: &POLICY, draw: Draw(1) }),
        Step::Cancel => life.tell(Command::Cancel(act())),
        Step::Retry => life.tell(Command::Retry(act())),
        Step::Resolve(n) => {
            let resolution = [Resolution::Accepted, Resolution::Retry, Resolution::GiveUp][usize::from(n)];
            life.tell(Command::Resolve(resolution, act()))
        }
    }
    .is_err();
    if refused {
        assert_eq!(life.job, before);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn whatever_happens_in_whatever_order_the_promises_hold(steps in proptest::collection::vec(any_step(), 1..60)) {
        let mut life = Life::new();
        let mut accepted = false;
        for step in steps {
            let claims_before = life.job.counters.claims;
            take(&mut life, &step);
            // An accepted job never runs again.
            accepted |= life.job.state.name() == StateName::Completed;
            prop_assert!(!accepted || life.job.state.name() == StateName::Completed);
            prop_assert!(life.job.counters.claims >= claims_before, "a claim number only rises");
            // Every state has a way out or is an end.
            let ends = life.job.state.name().is_finished() || matches!(life.job.state, State::Held);
            prop_assert_eq!(life.job.state.due_at().is_none(), ends);
        }

        // The row is the fold of its facts; an open claim is the row's alone.
        let told = replay(life.initial.clone(), life.log.iter().map(|(version, at, fact)| (*version, *at, fact)));
        if let State::Running { .. } = life.job.state {
            prop_assert_eq!(told.counters.attempts, life.job.counters.attempts);
            prop_assert_eq!(told.counters.snoozes, life.job.counters.snoozes);
            prop_assert_eq!(told.counters.crashes, life.job.counters.crashes);
        } else {
            prop_assert_eq!((&told.state, told.counters, told.version), (&life.job.state, life.job.counters, life.job.version));
        }

        // No attempt is ended twice, and every reason is there.
        let mut ended = std::collections::BTreeSet::new();
        for (_, _, fact) in &life.log {
            if let Fact::AttemptEnded(end) = fact {
                prop_assert!(ended.insert(end.attempt), "attempt {} ended twice", end.attempt);
                prop_assert!(end.outcome == AttemptOutcome::Accepted || !end.reason.is_empty());
            }
        }
    }
}
