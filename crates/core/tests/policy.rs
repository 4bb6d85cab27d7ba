//! Every preset at every attempt, and what no policy may ever do.

#![allow(clippy::unwrap_used, reason = "a test may stop at a surprise")]

use proptest::prelude::*;
use tidings_core::policy::{Draw, OnUnknown, Policy, PolicyData, Preset};
use tidings_core::time::Millis;

fn delays(policy: &Policy, draw: Draw) -> Vec<i64> {
    (1..policy.attempts_max()).map(|spent| policy.delay(spent, draw).0).collect()
}

fn seconds(values: &[i64]) -> Vec<i64> {
    values.iter().map(|s| s * 1_000).collect()
}

/// Preset, attempts, and the delay before each next attempt without jitter, in seconds.
fn table() -> Vec<(Preset, u32, Vec<i64>)> {
    let hours = |h: i64| h * 3_600;
    let webhook = [vec![5, 300, 1_800, hours(2), hours(5)], vec![hours(10); 12]].concat();
    vec![
        (Preset::Default, 10, vec![1, 2, 4, 8, 16, 32, 64, 128, 256]),
        (Preset::Mail, 8, vec![20, 60, 180, 540, 1_620, 4_860, 14_580]),
        (Preset::Webhook, 18, webhook),
        (Preset::Invitation, 8, vec![10, 20, 40, 80, 160, 320, 640]),
        (Preset::ImportAlert, 6, vec![30, 60, 120, 240, 480]),
        (Preset::Periodic, 1, vec![]),
    ]
}

#[test]
fn every_preset_waits_exactly_what_it_says_before_every_attempt() {
    for (preset, attempts, expected) in table() {
        let policy = preset.policy();
        assert_eq!(policy.attempts_max(), attempts, "{preset:?}");
        let unmoved = if preset == Preset::Invitation { Draw(0) } else { Draw::MIDDLE };
        assert_eq!(delays(&policy, unmoved), seconds(&expected), "{preset:?}");
        assert_eq!(policy.label(), format!("{}@1", preset.name()));
    }
}

#[test]
fn ten_percent_of_jitter_is_at_most_ten_percent_on_either_side() {
    for preset in [Preset::Default, Preset::Mail, Preset::Webhook] {
        let policy = preset.policy();
        let (low, middle, high) =
            (delays(&policy, Draw(0)), delays(&policy, Draw::MIDDLE), delays(&policy, Draw(u32::MAX)));
        for ((low, middle), high) in low.iter().zip(&middle).zip(&high) {
            assert_eq!((*low, *high), (middle * 9 / 10, middle * 11 / 10), "{preset:?}");
        }
    }
}

#[test]
fn an_invitation_waits_up_to_nine_seconds_more_and_is_capped_at_an_hour() {
    let policy = Preset::Invitation.policy();
    assert_eq!(policy.delay(1, Draw(u32::MAX)), Millis(10_000 + 9_000));
    assert_eq!(policy.delay(30, Draw(0)), Millis::from_hours(1));
    assert_eq!(policy.delay(30, Draw(u32::MAX)), Millis(3_600_000 + 9_000));
}

#[test]
fn full_jitter_draws_between_nothing_and_the_lesser_of_a_minute_and_the_power() {
    let policy = Preset::FullJitter.policy();
    for (spent, most_s) in [(1, 2), (2, 4), (5, 32), (6, 60), (24, 60)] {
        assert_eq!(policy.delay(spent, Draw(0)), Millis::ZERO);
        assert_eq!(policy.delay(spent, Draw(u32::MAX)), Millis::from_seconds(most_s));
    }
}

#[test]
fn the_webhook_preset_lasts_about_five_days_and_mail_about_six_hours() {
    let total = |preset: Preset| delays(&preset.policy(), Draw::MIDDLE).iter().sum::<i64>();
    assert_eq!(total(Preset::Webhook), 459_305_000, "5.3 days");
    assert_eq!(total(Preset::Mail), 21_860_000, "6 hours");
}

#[test]
fn an_unknown_outcome_of_an_import_alert_waits_a_minute_whatever_the_attempt() {
    let policy = Preset::ImportAlert.policy();
    for spent in [1, 2, 5] {
        assert_eq!(policy.delay_after_unknown(spent, Draw(7)), Millis::from_seconds(60));
    }
    let usual = Preset::Default.policy();
    assert_eq!(usual.delay_after_unknown(3, Draw::MIDDLE), usual.delay(3, Draw::MIDDLE));
}

#[test]
fn mail_holds_what_is_unknown_and_the_others_retry_it() {
    for preset in Preset::ALL {
        let expected = if preset == Preset::Mail { OnUnknown::Hold } else { OnUnknown::Retry };
        assert_eq!(preset.policy().on_unknown(), expected, "{preset:?}");
    }
}

/// RT8: a cap that is applied after an overflow is no cap.
#[test]
fn a_high_attempt_number_waits_the_cap_and_never_overflows() {
    let data: PolicyData = toml::from_str(
        "attempts = 2147483647\njitter = \"none\"\nbackoff = { first_ms = 30000, factor = 2, cap_ms = 900000 }",
    )
    .unwrap();
    let policy = data.check("steep").unwrap();
    for spent in [38, 39, 62, 63, 64, 100, i32::MAX as u32, u32::MAX] {
        assert_eq!(policy.delay(spent, Draw(0)), Millis(900_000), "{spent}");
    }
}

fn refusal(text: &str) -> String {
    toml::from_str::<PolicyData>(text).unwrap().check("bad").unwrap_err().to_string()
}

#[test]
fn bad_policy_data_is_refused_with_the_field_and_the_reason() {
    for (text, field) in [
        ("attempts = 0", "attempts is 0"),
        ("version = 0", "version is 0"),
        ("attempts = 4294967295", "attempts is 4294967295"),
        ("backoff = { first_ms = 10, factor = nan, cap_ms = 20 }", "backoff.factor is NaN"),
        ("backoff = { first_ms = 10, factor = inf, cap_ms = 20 }", "backoff.factor is inf"),
        ("backoff = { first_ms = 10, factor = 0.5, cap_ms = 20 }", "backoff.factor is 0.5"),
        (
            "backoff = { first_ms = 10, factor = 2, cap_ms = 9 }",
            "backoff.cap_ms is 9, under the first step of 10",
        ),
        ("backoff = { first_ms = 0, factor = 2, cap_ms = 9 }", "backoff.first_ms is 0"),
        ("backoff = { first_ms = -5, factor = 2, cap_ms = 9 }", "backoff.first_ms is -5"),
        ("backoff = { first_ms = 1, factor = 2, cap_ms = 9223372036854775807 }", "backoff.cap_ms is"),
        ("backoff = { steps_ms = [] }", "backoff.steps_ms is empty"),
        ("backoff = { steps_ms = [5, 0] }", "backoff.steps_ms is 0"),
        ("jitter = { percent = 101 }", "jitter.percent is 101"),
        ("jitter = { plus_ms = -1 }", "jitter.plus_ms is -1"),
        ("crashes_max = 0", "crashes_max is 0"),
        ("snooze_max_ms = 0", "snooze_max_ms is 0"),
        ("retryable_statuses = [404, 500]", "retryable_statuses names 500"),
    ] {
        let refusal = refusal(text);
        assert!(refusal.contains("policy `bad`") && refusal.contains(field), "{text} gave: {refusal}");
    }
}

#[test]
fn a_misspelt_field_of_a_policy_is_refused() {
    let error = toml::from_str::<PolicyData>("attempt = 3").unwrap_err().to_string();
    assert!(error.contains("attempt"), "{error}");
    assert!(serde_json::from_str::<PolicyData>(r#"{"backof": {}}"#).is_err());
}

#[test]
fn a_policy_reads_the_same_from_toml_and_from_json() {
    let toml: PolicyData = toml::from_str("preset = \"import-alert\"\njitter = { percent = 20 }").unwrap();
    let json: PolicyData =
        serde_json::from_str(r#"{"preset": "import-alert", "jitter": {"percent": 20}}"#).unwrap();
    assert_eq!(toml, json);
    let policy = toml.check("noisy").unwrap();
    assert_eq!((policy.attempts_max(), policy.label()), (6, "noisy@1".to_owned()));
}

fn any_policy() -> impl Strategy<Value = Policy> {
    let backoff = prop_oneof![
        (1_i64..=100_000, 1.0_f64..10.0, 1_i64..=3_000_000_000).prop_map(|(first, factor, more)| format!(
            "backoff = {{ first_ms = {first}, factor = {factor:?}, cap_ms = {} }}",
            first + more
        )),
        proptest::collection::vec(1_i64..=3_000_000_000_000, 1..6)
            .prop_map(|steps| format!("backoff = {{ steps_ms = {steps:?} }}")),
    ];
    let jitter = prop_oneof![
        Just("jitter = \"none\"".to_owned()),
        Just("jitter = \"full\"".to_owned()),
        (0_u8..=100).prop_map(|p| format!("jitter = {{ percent = {p} }}")),
        (1_i64..=3_000_000_000_000).prop_map(|ms| format!("jitter = {{ plus_ms = {ms} }}")),
    ];
    (backoff, jitter).prop_map(|(backoff, jitter)| {
        toml::from_str::<PolicyData>(&format!("attempts = 2147483647\n{backoff}\n{jitter}"))
            .unwrap()
            .check("any")
            .unwrap()
    })
}

proptest! {
    #[test]
    fn no_policy_ever_waits_less_than_nothing_or_more_than_its_longest(
        policy in any_policy(), spent in prop_oneof![0_u32..200, any::<u32>()], draw in any::<u32>()
    ) {
        let delay = policy.delay(spent, Draw(draw));
        prop_assert!(delay >= Millis::ZERO && delay <= policy.delay_max(), "{:?}", delay);
        prop_assert!(policy.delay_after_unknown(spent, Draw(draw)) >= Millis::ZERO);
    }

    #[test]
    fn an_exponential_never_waits_less_after_more_attempts(
        first in 1_i64..=100_000, factor in 1.0_f64..10.0, spent in 1_u32..=i32::MAX as u32, more in 0_u32..1000, draw in any::<u32>()
    ) {
        let text = format!("backoff = {{ first_ms = {first}, factor = {factor:?}, cap_ms = {} }}\nattempts = 2147483647", first * 1000);
        let policy = toml::from_str::<PolicyData>(&text).unwrap().check("any").unwrap();
        prop_assert!(policy.delay(spent, Draw(draw)) <= policy.delay(spent.saturating_add(more), Draw(draw)));
    }
}
