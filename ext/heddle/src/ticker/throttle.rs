//! When a tick would be of no use, or do harm: while the job of the last one is at work and shortly after, and in calls
//! that give up if one is pending.
//!
//! Ruby looks for interrupts again when a job is over, before the program goes on. If a job takes longer than a tick, as
//! under `GC.stress`, there would always be one, and the program would stand still.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// In nanoseconds; enough for the program to get on by some thousand instructions.
const REST: u64 = 50_000;
const NANOSECONDS: u64 = 1_000_000_000;
const FOR_NOW: u64 = u64::MAX;

/// On the monotonic clock, in nanoseconds. One for all threads, since no two of them run Ruby at a time.
static QUIET_UNTIL: AtomicU64 = AtomicU64::new(0);

/// How many [`TickMask`]s there are.
static MASKS: AtomicU32 = AtomicU32::new(0);

/// No tick is passed on as long as it lives, on any thread: for short calls in which Ruby takes a pending interrupt for
/// the end of the time.
pub struct TickMask(());

impl TickMask {
    /// From now on.
    pub fn new() -> Self {
        MASKS.fetch_add(1, Ordering::Relaxed);
        TickMask(())
    }
}

impl Drop for TickMask {
    fn drop(&mut self) {
        // Not below zero, if it was forgotten meanwhile.
        let _ = MASKS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| count.checked_sub(1));
    }
}

/// In a forked child: what other threads were doing then will never end here.
pub fn forget() {
    MASKS.store(0, Ordering::Relaxed);
    QUIET_UNTIL.store(0, Ordering::Relaxed);
}

/// Whether a tick is to pass. Callable from signal handlers.
pub fn is_quiet() -> bool {
    if MASKS.load(Ordering::Relaxed) > 0 {
        return true;
    }
    let until = QUIET_UNTIL.load(Ordering::Relaxed);
    until == FOR_NOW || now() < until
}

/// The job is at work.
pub fn begin() {
    QUIET_UNTIL.store(FOR_NOW, Ordering::Relaxed);
}

/// The program goes on: the job is over, or has switched to another fiber.
pub fn end() {
    QUIET_UNTIL.store(now() + REST, Ordering::Relaxed);
}

/// The monotonic clock, in nanoseconds. Callable from signal handlers.
pub fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes to a variable of this function. The clock exists everywhere; the call is safe in signal handlers.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec.unsigned_abs() * NANOSECONDS + time.tv_nsec.unsigned_abs()
}
