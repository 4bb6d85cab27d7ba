//! The job layer through its public door, on both databases: what is promised of a
//! job's life, of workers, of people's deeds and of receipts.
//!
//! Time stands still where a clock can be held; where real workers are the subject,
//! receipts and signals say when to look. Rows of `docs/cases.md` name these tests.
#![allow(clippy::unwrap_used, reason = "a test may stop at a surprise")]

#[macro_use]
mod fixture;
mod claims;
mod crashes;
mod http_call;
mod keys;
mod lost_answers;
mod outcomes;
mod people;
mod postgres;
mod receipts;
mod retention;
mod sqlite;
mod stops;
mod time;
mod upgrades;
mod workers;
