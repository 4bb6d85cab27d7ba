//! What carries a request to a receiver and says what became of it.
//!
//! A sink gets a request and limits, and returns how the exchange ended with its
//! evidence. It sends once: retrying is the job layer's, which is not known here.
//! Absent on purpose: the store, any queue, and any judgement; that is
//! `tidings_core::classify`'s.

pub mod http;
