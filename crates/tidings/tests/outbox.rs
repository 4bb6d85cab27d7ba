//! Events through the public door, on both databases: recorded once, fanned out
//! once, and what each became can be read.
//!
//! Time stands still where a clock can be held; where processes are the subject,
//! receipts say when to look. Rows of `docs/cases.md` name these tests.
#![allow(clippy::duplicate_mod, reason = "one file, one test per database")]
#![allow(clippy::unwrap_used, reason = "a test may stop at a surprise")]

#[path = "outbox/fixture.rs"]
mod fixture;
#[path = "outbox/in_postgres.rs"]
mod in_postgres;
#[path = "outbox/in_sqlite.rs"]
mod in_sqlite;
#[cfg(feature = "sqlx")]
#[path = "outbox/postgres_by_sqlx.rs"]
mod postgres_by_sqlx;
#[path = "outbox/postgres_trouble.rs"]
mod postgres_trouble;

macro_rules! on_both {
    ($module:ident, $open:path) => {
        #[path = "."]
        mod $module {
            use $open as open;
            #[path = "outbox/backlog.rs"]
            mod backlog;
            #[path = "outbox/crashes.rs"]
            mod crashes;
            #[path = "outbox/expansion.rs"]
            mod expansion;
            #[path = "outbox/fans_out.rs"]
            mod fans_out;
            #[path = "outbox/recording.rs"]
            mod recording;
            #[path = "outbox/routing.rs"]
            mod routing;
            #[path = "outbox/set_aside.rs"]
            mod set_aside;
            #[path = "outbox/waits.rs"]
            mod waits;
        }
    };
}
on_both!(on_sqlite, crate::fixture::sqlite);
on_both!(on_postgres, crate::fixture::postgres);
