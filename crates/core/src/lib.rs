//! Every rule of Tidings, and nothing else.
//!
//! What chooses never waits: this crate reads no clock, draws no random number,
//! opens no file or socket and awaits nothing. Time, randomness and ids are
//! arguments; `clippy.toml` beside this crate bans their sources and says why.
//!
//! Read in this order: [`job`] (the nouns), [`decide`] (what may happen),
//! [`evolve`] (what a fact changes), [`policy`] (when to try again).

pub mod classify;
pub mod decide;
pub mod event;
pub mod evidence;
pub mod evolve;
pub mod fact;
pub mod guard;
pub mod headers;
pub mod id;
pub mod job;
pub mod limits;
pub mod outcome;
pub mod payload;
pub mod policy;
pub mod relay;
pub mod retry_after;
pub mod route;
pub mod sign;
pub mod text;
pub mod time;
pub mod unique;
