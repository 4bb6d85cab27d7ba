//! What tests need of the world, made on the spot: receivers that misbehave on
//! command and a throw-away PostgreSQL.
//!
//! Absent on purpose: anything of Tidings. The kit knows TCP, HTTP/1.1 bytes and
//! SQL connections, so that what it reports about a sink is an independent view.

pub mod postgres;
pub mod receiver;
