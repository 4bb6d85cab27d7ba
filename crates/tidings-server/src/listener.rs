//! What the local receiver knows of the requests that it got, and what it does
//! with the next one.
//!
//! It is for seeing what Tidings sends. It counts what arrived, tells repeats by
//! their `webhook-id`, and misbehaves on command.

mod heard;
mod plan;

pub(crate) use heard::{Heard, Request};
pub(crate) use plan::{Failure, Plan, Reply};
