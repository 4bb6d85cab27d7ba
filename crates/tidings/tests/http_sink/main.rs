//! The HTTP sink against receivers that misbehave on command: how each exchange
//! ends, what it is classified as, and that it is at most one request on the wire.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test may stop at a surprise, and one of them plays a child process"
)]

mod answers;
mod bodies;
mod bounds;
mod fixture;
mod guard;
mod statuses;
mod tls;
mod transport;
