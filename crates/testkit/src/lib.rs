//! What tests need of the world, made on the spot: receivers that misbehave on
//! command, a throw-away PostgreSQL, an address that moves, and programs of other people.
//!
//! Absent on purpose: anything of Tidings. The kit knows TCP, HTTP/1.1 bytes and
//! SQL connections, so that what it reports about a sink is an independent view.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "tests fail by panicking, wait for real peers and are told by the environment"
)]

pub mod foreign;
pub mod forwarder;
pub mod postgres;
pub mod receiver;
