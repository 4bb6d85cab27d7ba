//! What any language may call inside its own transaction on Postgres: `tidings.record`,
//! `tidings.enqueue`, `tidings.emit_on_change`. The contract is `docs/sql.md`.
#![allow(clippy::unwrap_used, reason = "a test may stop at a surprise")]

#[path = "outbox_sql/fixture.rs"]
mod fixture;
#[path = "outbox_sql/doors.rs"]
mod postgres_doors;
#[path = "outbox_sql/drivers.rs"]
mod postgres_drivers;
#[path = "outbox_sql/emits.rs"]
mod postgres_emits;
#[path = "outbox_sql/fits.rs"]
mod postgres_fits;
#[path = "outbox_sql/grants.rs"]
mod postgres_grants;
#[path = "outbox_sql/keys.rs"]
mod postgres_keys;
#[path = "outbox_sql/works.rs"]
mod postgres_works;
