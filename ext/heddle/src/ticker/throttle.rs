//! Suppressing ticks of all threads: see [`heddle_core::threads::throttle`].

use heddle_core::threads::throttle::{Outer, Throttle};

const NANOSECONDS_PER_SECOND: u64 = 1_000_000_000;

/// One for all threads, as one at a time runs Ruby.
static THROTTLE: Throttle = Throttle::new();

/// Suppresses ticks on all threads until it is dropped, and shortly after: while a job runs, and in short calls in which
/// Ruby treats a pending interrupt as the end of the timeout. If another thread ends that earlier, such a call may have
/// to be repeated.
pub struct Suppression {
    outer: Outer,
}

impl Suppression {
    /// Suppresses ticks from now on.
    pub fn begin() -> Self {
        Suppression { outer: THROTTLE.begin(now()) }
    }
}

impl Drop for Suppression {
    fn drop(&mut self) {
        THROTTLE.finish(self.outer, now());
    }
}

/// Ends all suppression in a forked child, where the other threads that had started it do not exist.
pub fn reset() {
    THROTTLE.reset();
}

/// Whether a tick must not trigger the job. Callable from signal handlers.
pub fn suppresses_ticks() -> bool {
    THROTTLE.suppresses(now())
}

/// Ends the suppression shortly after now, as the job leaves the fiber.
pub fn end() {
    THROTTLE.end(now());
}

/// The fiber is left, or the thread waits. What suppresses ticks goes on only afterwards.
#[inline]
pub fn leave() {
    if THROTTLE.is_under_way() {
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
