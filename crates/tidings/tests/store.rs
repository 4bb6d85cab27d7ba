//! The contract of a store. The same files run against every store; a test
//! prints as `on_sqlite::claim::a_job_is_taken_once`. What only one database can
//! do (or break) stands in the modules after them.
#![allow(clippy::duplicate_mod, reason = "one file, one test per store")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(unreachable_pub, reason = "a test program has no outside")]

#[path = "store/draft.rs"]
mod draft;
#[path = "store/event_draft.rs"]
mod event_draft;
#[path = "store/fixture.rs"]
mod fixture;

macro_rules! contract {
    ($module:ident, $open:path, $empty:path) => {
        #[path = "."]
        mod $module {
            use $empty as open_empty;
            use $open as open;
            #[path = "store/claim.rs"]
            mod claim;
            #[path = "store/damaged_rows.rs"]
            mod damaged_rows;
            #[path = "store/event_rows.rs"]
            mod event_rows;
            #[path = "store/events.rs"]
            mod events;
            #[path = "store/fan_out.rs"]
            mod fan_out;
            #[path = "store/fold.rs"]
            mod fold;
            #[path = "store/house.rs"]
            mod house;
            #[path = "store/idempotency.rs"]
            mod idempotency;
            #[path = "store/insert.rs"]
            mod insert;
            #[path = "store/list.rs"]
            mod list;
            #[path = "store/open.rs"]
            mod opening;
            #[path = "store/races.rs"]
            mod races;
            #[path = "store/save.rs"]
            mod save;
            #[path = "store/schema.rs"]
            mod schema;
            #[path = "store/sweep.rs"]
            mod sweep;
            #[path = "store/unique.rs"]
            mod unique;
        }
    };
}
contract!(on_sqlite, crate::fixture::sqlite, crate::fixture::empty_sqlite);
contract!(on_postgres, crate::fixture::postgres, crate::fixture::empty_postgres);

#[path = "store/only_on_postgres.rs"]
mod only_on_postgres;
#[path = "store/only_on_sqlite.rs"]
mod only_on_sqlite;
