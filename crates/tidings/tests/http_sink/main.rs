//! The HTTP sink against receivers that misbehave on command: how each exchange
//! ends, what it is classified as, and that it is at most one request on the wire.

mod answers;
mod bodies;
mod bounds;
mod fixture;
mod guard;
mod statuses;
mod tls;
mod transport;
