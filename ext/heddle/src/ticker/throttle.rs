//! Suppressing ticks: while the job of the last tick runs and shortly after, and in calls that fail if an interrupt is
//! pending.
//!
//! When a job ends, Ruby checks interrupts again before it continues the program. If each job takes longer than a tick,
//! as under `GC.stress`, an interrupt would always be pending, and the program would make no progress.

use crate::ruby::outcome::Ignore;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// How long ticks are suppressed after a job, in nanoseconds: enough for some thousand instructions of the program.
const PAUSE_AFTER_JOB: u64 = 50_000;
const NANOSECONDS_PER_SECOND: u64 = 1_000_000_000;
/// The value of [`SUPPRESSED_UNTIL`] while the job runs.
const JOB_RUNS: u64 = u64::MAX;

/// When the suppression ends, in nanoseconds of the monotonic clock. One for all threads, as one at a time runs Ruby.
static SUPPRESSED_UNTIL: AtomicU64 = AtomicU64::new(0);

/// The number of [`TickMask`]s.
static MASKS: AtomicU32 = AtomicU32::new(0);

/// Suppresses ticks on all threads until it is dropped, for short calls in which Ruby treats a pending interrupt as the
/// end of the timeout.
pub struct TickMask(());

impl TickMask {
    /// Suppresses ticks from now on.
    pub fn new() -> Self {
        MASKS.fetch_add(1, Ordering::Relaxed);
        TickMask(())
    }
}

impl Drop for TickMask {
    fn drop(&mut self) {
        let lowered = MASKS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| count.checked_sub(1));
        lowered.ignored("it is zero, as `reset` has cleared the count");
    }
}

/// Ends all suppression in a forked child, where the other threads that had started it do not exist.
pub fn reset() {
    MASKS.store(0, Ordering::Relaxed);
    SUPPRESSED_UNTIL.store(0, Ordering::Relaxed);
}

/// Whether a tick must not trigger the job. Callable from signal handlers.
pub fn suppresses_ticks() -> bool {
    if MASKS.load(Ordering::Relaxed) > 0 {
        return true;
    }
    let until = SUPPRESSED_UNTIL.load(Ordering::Relaxed);
    until == JOB_RUNS || now() < until
}

/// Suppresses ticks while the job runs.
pub fn begin() {
    SUPPRESSED_UNTIL.store(JOB_RUNS, Ordering::Relaxed);
}

/// Ends the suppression shortly after now, as the job ends or switches to another fiber.
pub fn end() {
    SUPPRESSED_UNTIL.store(now() + PAUSE_AFTER_JOB, Ordering::Relaxed);
}

/// The monotonic clock, in nanoseconds. Callable from signal handlers.
pub fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes to a variable of this function. The clock exists everywhere; the call is safe in signal handlers.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec.unsigned_abs() * NANOSECONDS_PER_SECOND + time.tv_nsec.unsigned_abs()
}
