//! What users see of the program: each test starts the built binary on a database
//! of its own, talks to it over HTTP or its command line, and looks at what comes out.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]
#![allow(clippy::print_stdout, reason = "a test that fails shows the log of its server")]
#![allow(clippy::large_futures, reason = "tests are few and their tasks have room")]

mod acts;
mod api;
mod args;
mod cli;
mod crash;
mod event_cli;
mod event_faults;
mod events;
mod fixture;
mod listen;
mod many;
mod outage;
mod readme;
mod start;
mod stop;

/// Makes of each function a test on SQLite and one on PostgreSQL.
macro_rules! on_both_databases {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            use crate::fixture::Place;
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(&Place::sqlite()).await;
            })+
        }
        mod postgres {
            use crate::fixture::Place;
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(&Place::postgres().await).await;
            })+
        }
    };
}
use on_both_databases;
