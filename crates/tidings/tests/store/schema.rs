//! What the database itself refuses, whoever asks.

use crate::draft::{NOW, act, ended, job};
use tidings::core::decide::Command;
use tidings::core::outcome::Outcome;
use tidings::core::time::Millis;

#[tokio::test]
async fn a_fact_is_neither_changed_nor_deleted_by_anybody() {
    let store = super::open().await;
    store.keep_house(NOW).await.unwrap();
    let running = store.running_one().await;
    store.save_all(vec![ended(&running, Outcome::Accepted)]).await;
    for statement in [
        "UPDATE tidings.fact SET name = 'nothing happened'",
        "UPDATE tidings.fact SET at_ms = at_ms + 1",
        "DELETE FROM tidings.fact",
    ] {
        let refused = store.sql(statement).await.unwrap_err();
        assert!(refused.contains("facts are append-only"), "{statement}: {refused}");
    }
    if store.is_postgres() {
        let this_week = format!("fact_week_{}", NOW.0 / Millis::from_days(7).0);
        for table in ["fact", "fact_otherwise", &this_week] {
            let refused = store.sql(&format!("TRUNCATE tidings.{table}")).await.unwrap_err();
            assert!(refused.contains("facts are append-only"), "{table}: {refused}");
        }
    }
    assert_eq!(store.facts(running.id).await, ["attempt_ended"]);
}

#[tokio::test]
async fn a_row_that_cannot_be_is_refused_by_a_constraint_that_says_why() {
    let store = super::open().await;
    let running = store.running_one().await;
    let id = store.put(vec![job()]).await[0];
    let finished = store.put(vec![job()]).await[0];
    store.done(finished, Command::Cancel(act())).await;
    let waiting = format!("WHERE id = {}", store.place().literal(id));
    let run = format!("WHERE id = {}", store.place().literal(running.id));
    let table = [
        ("job", "SET due_at_ms = NULL", &waiting, "due_unless_held"),
        ("job", "SET state = 'running', due_rank = 0", &waiting, "leased_iff_running"),
        ("job", "SET worker = NULL", &run, "leased_iff_running"),
        ("job", "SET on_unknown = NULL", &run, "leased_iff_running"),
        ("job", "SET state = 'completed'", &waiting, "live_state_is_known"),
        ("job", "SET due_rank = 0", &waiting, "leases_rank_apart"),
        ("job", "SET due_rank = priority", &run, "leases_rank_apart"),
        ("job", "SET priority = 5, due_rank = 5", &waiting, "priority_is_1_to_4"),
        ("job", "SET cancel_requested = TRUE", &waiting, "asked_only_while_running"),
        ("job", "SET unique_states = 1", &waiting, "unique_key_has_its_states"),
        ("job", "SET attempts = -1", &waiting, "counters_do_not_fall_below_zero"),
        ("finished_job", "SET state = 'pending'", &String::new(), "finished_state_is_known"),
    ];
    for (table, set, which, constraint) in table {
        let updated = store.sql(&format!("UPDATE tidings.{table} {set} {which}")).await;
        let refused = updated.expect_err(set);
        assert!(refused.contains(constraint), "{set}: {refused}");
    }
    let hash = if store.is_postgres() { "''" } else { "x''" };
    let key = format!(
        "INSERT INTO tidings.api_key (id, key_hash, scope, tenant, created_at_ms)
         VALUES ('k', {hash}, 'everything', '', 0)"
    );
    assert!(store.sql(&key).await.unwrap_err().contains("api_key_scope_is_known"));
}

#[tokio::test]
async fn people_can_read_every_job_in_one_view() {
    let store = super::open().await;
    let finished = store.put(vec![job()]).await[0];
    store.done(finished, Command::Cancel(act())).await;
    store.put(vec![job()]).await;
    assert_eq!(store.number("SELECT count(*) FROM tidings.job_view").await, 2);
    let readable = if store.is_postgres() {
        "SELECT count(*) FROM tidings.job_view WHERE enqueued_at = '2027-01-15 08:00:00+00'"
    } else {
        "SELECT count(*) FROM tidings_job_view WHERE enqueued_at = '2027-01-15T08:00:00.000Z'"
    };
    assert_eq!(store.number(readable).await, 2);
}
