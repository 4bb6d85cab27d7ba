//! A durable job layer.
