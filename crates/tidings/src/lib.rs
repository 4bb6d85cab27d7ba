//! A durable job layer.
pub mod sink;
