//! Every statement, by name, one a file. A statement that both databases
//! understand is in `sql/shared`; the others are in both folders, same names.
//!
//! Shared statements are written for Postgres (`tidings.job`, `$1`); for SQLite,
//! which has no schemas and numbers `$3` before `$1` by first appearance, they
//! are rewritten once, at first use (`tidings_job`, `?1`).

macro_rules! statements {
    (shared: [$($s:ident),* $(,)?], by_backend: [$($b:ident),* $(,)?] $(,)?) => {
        /// Statements for Postgres.
        #[cfg(feature = "postgres")]
        #[allow(non_upper_case_globals, reason = "a statement is named like its file")]
        pub(crate) mod postgres {
            $(#[allow(dead_code, reason = "Postgres does some of these inside larger statements")]
            pub(crate) const $s: &str = include_str!(concat!("../../sql/shared/", stringify!($s), ".sql"));)*
            $(pub(crate) const $b: &str = include_str!(concat!("../../sql/postgres/", stringify!($b), ".sql"));)*
            /// All of them, for the test that prepares each on its database.
            #[cfg(test)]
            pub(crate) const ALL: &[(&str, &str)] = &[$((stringify!($s), $s),)* $((stringify!($b), $b),)*];
        }
        /// Statements for SQLite.
        #[cfg(feature = "sqlite")]
        #[allow(non_upper_case_globals, reason = "a statement is named like its file")]
        pub(crate) mod sqlite {
            use std::sync::LazyLock;
            $(pub(crate) static $s: LazyLock<String> = LazyLock::new(|| {
                super::for_sqlite(include_str!(concat!("../../sql/shared/", stringify!($s), ".sql")))
            });)*
            $(pub(crate) const $b: &str = include_str!(concat!("../../sql/sqlite/", stringify!($b), ".sql"));)*
            /// All of them, for the test that prepares each on its database.
            #[cfg(test)]
            pub(crate) fn all() -> Vec<(&'static str, &'static str)> {
                vec![$((stringify!($s), $s.as_str()),)* $((stringify!($b), $b),)*]
            }
        }
    };
}

statements! {
    shared: [
        append_fact, backlog, close_incident, declare_event_type, delete_finished, delete_live, event_types,
        find_policy, incidents, insert_api_key, keep_kind, keep_policy, keep_subscription, kept_kinds,
        list_api_keys, list_events, list_finished, list_live, live_args, next_event_due, open_incident,
        pause_queue, paused_queues, raise_fact_horizon, release_keys_of_job, remove_subscription, resume_queue,
        save_event, set_aside_unreadable, subscriptions,
    ],
    by_backend: [
        claim_jobs, find_keys, history, insert_jobs, load_events, load_finished, load_live, lock_event,
        mark_events, next_due, now_ms, prune_events, prune_facts, prune_finished, prune_keys, record_events,
        release_keys, repoint_keys, save_amended, save_finished, save_live, save_revived, take_due,
        take_events, take_expired, take_keys,
    ],
}

#[cfg(feature = "sqlite")]
fn for_sqlite(statement: &str) -> String {
    statement.replace("tidings.", "tidings_").replace('$', "?")
}

/// The schema, one step a file. A step that was released is never edited.
#[cfg(feature = "postgres")]
pub(crate) const POSTGRES_MIGRATIONS: &[&str] = &[
    include_str!("../../sql/migrations/postgres/0001_job_layer.sql"),
    include_str!("../../sql/migrations/postgres/0002_outbox.sql"),
    include_str!("../../sql/migrations/postgres/0003_sql_functions.sql"),
    include_str!("../../sql/migrations/postgres/0004_emit_on_change.sql"),
];
/// The same steps for SQLite.
#[cfg(feature = "sqlite")]
pub(crate) const SQLITE_MIGRATIONS: &[&str] = &[
    include_str!("../../sql/migrations/sqlite/0001_job_layer.sql"),
    include_str!("../../sql/migrations/sqlite/0002_outbox.sql"),
    include_str!("../../sql/migrations/sqlite/0003_sql_functions.sql"),
    include_str!("../../sql/migrations/sqlite/0004_emit_on_change.sql"),
];
