//! Every limit in one place, related to each other by compile-time checks.

use crate::time::Millis;

/// Longest job arguments, in bytes of JSON text.
pub const ARGS_BYTES_MAX: usize = 256 * 1024;
/// Deepest nesting of job arguments.
pub const ARGS_DEPTH_MAX: usize = 64;
/// Longest kind name, in bytes.
pub const KIND_BYTES_MAX: usize = 128;
/// Longest event type name, in bytes.
pub const TYPE_BYTES_MAX: usize = 128;
/// Longest subject of an event, in bytes.
pub const SUBJECT_BYTES_MAX: usize = 512;
/// Events that one pass of the relay fans out at most.
pub const RELAY_BATCH_MAX: usize = 200;
/// Conditions of one subscription's filter.
pub const FILTER_CONDITIONS_MAX: usize = 20;
/// Longest queue name, in bytes.
pub const QUEUE_BYTES_MAX: usize = 64;
/// Longest tenant, in bytes.
pub const TENANT_BYTES_MAX: usize = 128;
/// Longest unique key or idempotency key, in bytes. Keys are stored hashed.
pub const KEY_BYTES_MAX: usize = 1024;
/// Longest reason that is kept, in bytes; longer ones are cut at a character.
pub const REASON_BYTES_MAX: usize = 1024;
/// Longest excerpt of a receiver's answer that is kept, in bytes.
pub const EXCERPT_BYTES_MAX: usize = 4 * 1024;
/// How much of a receiver's answer is read before the connection is closed, in bytes.
pub const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Largest head of a receiver's answer, in bytes.
pub const ANSWER_HEAD_BYTES_MAX: usize = 32 * 1024;
/// Most header fields of a receiver's answer.
pub const ANSWER_HEADERS_MAX: usize = 100;
/// Longest URL, in bytes.
pub const URL_BYTES_MAX: usize = 2048;
/// Most request headers that a caller may give.
pub const REQUEST_HEADERS_MAX: usize = 50;
/// Most bytes of request headers that a caller may give.
pub const REQUEST_HEADERS_BYTES_MAX: usize = 16 * 1024;
/// Longest wait that a receiver can ask for.
pub const RETRY_AFTER_MAX: Millis = Millis::from_hours(10);
/// Hard time limit of a kind that names none.
pub const TIME_LIMIT_DEFAULT: Millis = Millis::from_seconds(30);
/// Longest hard time limit that a kind may name.
pub const TIME_LIMIT_MAX: Millis = Millis::from_hours(24);
/// How much longer than the time limit a lease is: time to cancel the handler,
/// close its connection and write the report.
pub const LEASE_MARGIN: Millis = Millis::from_seconds(15);
/// Shortest snooze. One to a time that has passed would be a loop that spends nothing.
pub const SNOOZE_MIN: Millis = Millis::from_seconds(1);
/// How far ahead a job may be scheduled.
pub const RUN_AT_AHEAD_MAX: Millis = Millis::from_days(366 * 100);
/// Times that a worker may die in one job before it is discarded.
pub const CRASHES_MAX_DEFAULT: u32 = 5;
/// Most jobs in one insert.
pub const BATCH_MAX: usize = 1_000;

const _: () = assert!(EXCERPT_BYTES_MAX <= ANSWER_BYTES_MAX);
const _: () = assert!(LEASE_MARGIN.0 > 0);
const _: () = assert!(ARGS_DEPTH_MAX < 128, "the JSON parser itself stops at 128");
