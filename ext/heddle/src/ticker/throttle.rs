//! Suppressing ticks: while the job of the last tick runs and shortly after, and in calls that fail if an interrupt is
//! pending.
//!
//! When a job ends, Ruby checks interrupts again before it continues the program. If each job takes longer than a tick,
//! as under `GC.stress`, an interrupt would always be pending, and the program would make no progress.

use std::sync::atomic::{AtomicU64, Ordering};

/// How long ticks are suppressed after a job, in nanoseconds: enough for some thousand instructions of the program.
const PAUSE_AFTER_JOB: u64 = 50_000;
/// How long ticks are suppressed at most, in nanoseconds. A job may run the program's own code, as an `initialize` of an
/// exception. That may wait with the whole thread, while the ticks of others stop.
const BOUND: u64 = NANOSECONDS_PER_SECOND;
const NANOSECONDS_PER_SECOND: u64 = 1_000_000_000;
/// Part of [`SUPPRESSED_UNTIL`] until what suppresses the ticks has ended.
const UNDER_WAY: u64 = 1 << 63;

/// When the suppression ends, in nanoseconds of the monotonic clock. One for all threads, as one at a time runs Ruby.
static SUPPRESSED_UNTIL: AtomicU64 = AtomicU64::new(0);

/// Suppresses ticks on all threads until it is dropped, and shortly after: while a job runs, and in short calls in which
/// Ruby treats a pending interrupt as the end of the timeout. If another thread ends that earlier, such a call may have
/// to be repeated.
pub struct Suppression {
    /// The value of [`SUPPRESSED_UNTIL`] before.
    outer: u64,
}

impl Suppression {
    /// Suppresses ticks from now on.
    pub fn begin() -> Self {
        let until = (now() + BOUND) | UNDER_WAY;
        Suppression { outer: SUPPRESSED_UNTIL.swap(until, Ordering::Relaxed) }
    }
}

impl Drop for Suppression {
    fn drop(&mut self) {
        let is_within_outer = self.outer & SUPPRESSED_UNTIL.load(Ordering::Relaxed) & UNDER_WAY != 0;
        if is_within_outer {
            // A job that has run within a call.
            SUPPRESSED_UNTIL.store(self.outer, Ordering::Relaxed);
        } else {
            end();
        }
    }
}

/// Ends all suppression in a forked child, where the other threads that had started it do not exist.
pub fn reset() {
    SUPPRESSED_UNTIL.store(0, Ordering::Relaxed);
}

/// Whether a tick must not trigger the job. Callable from signal handlers.
pub fn suppresses_ticks() -> bool {
    now() < SUPPRESSED_UNTIL.load(Ordering::Relaxed) & !UNDER_WAY
}

/// Ends the suppression shortly after now, as the job ends or leaves the fiber.
pub fn end() {
    SUPPRESSED_UNTIL.store(now() + PAUSE_AFTER_JOB, Ordering::Relaxed);
}

/// The fiber is left, or the thread waits. What suppresses ticks goes on only afterwards.
#[inline]
pub fn leave() {
    if SUPPRESSED_UNTIL.load(Ordering::Relaxed) & UNDER_WAY != 0 {
        end();
    }
}

/// The monotonic clock, in nanoseconds. Callable from signal handlers.
pub fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes to a variable of this function. The clock exists everywhere; the call is safe in signal handlers.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec.unsigned_abs() * NANOSECONDS_PER_SECOND + time.tv_nsec.unsigned_abs()
}
