//! The one source of randomness: ids, jitter, keys.
//!
//! Absent from the core on purpose: there, random numbers are arguments.

use std::sync::atomic::{AtomicU32, Ordering};
use tidings_core::id::{JobId, WorkerId};
use tidings_core::policy::Draw;
use tidings_core::time::Time;

/// A fresh number for a jitter.
pub fn draw() -> Draw {
    Draw(getrandom::u32().expect("the operating system gives random numbers"))
}

/// A fresh id that sorts by `now`, and within a millisecond by the order in which
/// this process made it: jobs that are due together are taken in that order.
pub fn job_id(now: Time) -> JobId {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    let counter = COUNTER.fetch_add(1, Ordering::Relaxed);
    let mut bytes = [0_u8; 10];
    fill(&mut bytes[4..]);
    // 26 bits of counter around the version and variant bits, which the builder sets.
    let [_, _, above_high, above_low] = (counter >> 14).to_be_bytes();
    let [_, _, below_high, below_low] = (counter & 0x3fff).to_be_bytes();
    bytes[..4].copy_from_slice(&[above_high, above_low, below_high, below_low]);
    let ms = u64::try_from(now.0).unwrap_or(0);
    JobId(uuid::Builder::from_unix_timestamp_millis(ms, &bytes).into_uuid())
}

/// A fresh id for this run of this process.
pub fn worker_id() -> WorkerId {
    let mut random = [0_u8; 16];
    fill(&mut random);
    WorkerId(uuid::Builder::from_random_bytes(random).into_uuid())
}

/// Fills `bytes` from the operating system.
pub fn fill(bytes: &mut [u8]) {
    getrandom::fill(bytes).expect("the operating system gives random numbers");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_one_millisecond_sort_by_the_order_in_which_they_were_made() {
        let ids: Vec<JobId> = (0..100_000).map(|_| job_id(Time(1_800_000_000_000))).collect();
        assert!(ids.is_sorted());
        assert!(ids.iter().all(|id| id.0.get_version_num() == 7));
    }
}
