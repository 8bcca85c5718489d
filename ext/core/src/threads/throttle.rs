//! Until when ticks are suppressed: while the job of the last tick runs and shortly after, and in calls that fail if an
//! interrupt is pending. Times are in nanoseconds of one clock, and below 2⁶³.
//!
//! When a job ends, Ruby checks interrupts again before it continues the program. If each job takes longer than a tick,
//! as under `GC.stress`, an interrupt would always be pending, and the program would make no progress.

use std::sync::atomic::{AtomicU64, Ordering};

/// How long ticks are suppressed after a job: enough for some thousand instructions of the program.
const PAUSE_AFTER_JOB: u64 = 50_000;
/// How long ticks are suppressed at most. A job may run the program's own code, as an `initialize` of an exception.
/// That may wait with the whole thread, while the ticks of others stop.
const BOUND: u64 = 1_000_000_000;
/// Part of the time until what suppresses the ticks has ended.
const UNDER_WAY: u64 = 1 << 63;

/// When the suppression ends. Lock-free, so a signal handler may ask.
#[derive(Debug, Default)]
pub struct Throttle(AtomicU64);

/// The suppression that was under way when another one began.
#[derive(Debug, Clone, Copy)]
pub struct Outer(u64);

impl Throttle {
    /// Suppresses nothing.
    pub const fn new() -> Self {
        Throttle(AtomicU64::new(0))
    }

    /// Suppresses ticks from now on, until [`Throttle::finish`].
    pub fn begin(&self, now: u64) -> Outer {
        Outer(self.0.swap((now + BOUND) | UNDER_WAY, Ordering::Relaxed))
    }

    /// The inverse of [`Throttle::begin`].
    pub fn finish(&self, outer: Outer, now: u64) {
        if outer.0 & self.0.load(Ordering::Relaxed) & UNDER_WAY != 0 {
            // A job that has run within a call.
            self.0.store(outer.0, Ordering::Relaxed);
        } else {
            self.end(now);
        }
    }

    /// Ends the suppression shortly after now, whatever is under way.
    pub fn end(&self, now: u64) {
        self.0.store(now + PAUSE_AFTER_JOB, Ordering::Relaxed);
    }

    /// Ends all suppression at once.
    pub fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Whether what suppresses ticks has not ended.
    #[inline]
    pub fn is_under_way(&self) -> bool {
        self.0.load(Ordering::Relaxed) & UNDER_WAY != 0
    }

    /// Whether a tick must not trigger the job.
    pub fn suppresses(&self, now: u64) -> bool {
        now < self.0.load(Ordering::Relaxed) & !UNDER_WAY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGUN: u64 = 1_000;
    const ENDED: u64 = 700_000;
    const PAUSE: u64 = 50_000;
    const SECOND: u64 = 1_000_000_000;

    fn assert_ends_at(throttle: &Throttle, end: u64) {
        assert!(throttle.suppresses(end - 1));
        assert!(!throttle.suppresses(end));
    }

    #[test]
    fn ticks_are_suppressed_during_a_job_and_shortly_after_it() {
        let throttle = Throttle::new();
        assert!(!throttle.suppresses(0));
        let outer = throttle.begin(BEGUN);
        assert!(throttle.suppresses(ENDED));
        throttle.finish(outer, ENDED);
        assert_ends_at(&throttle, ENDED + PAUSE);
    }

    #[test]
    fn ticks_are_suppressed_for_a_second_at_most() {
        let throttle = Throttle::new();
        throttle.begin(BEGUN);
        assert_ends_at(&throttle, BEGUN + SECOND);
    }

    #[test]
    fn a_job_within_a_call_does_not_end_the_suppression_of_the_call() {
        let throttle = Throttle::new();
        let call = throttle.begin(BEGUN);
        let job = throttle.begin(BEGUN + 1);
        throttle.finish(job, BEGUN + 2);
        assert!(throttle.suppresses(ENDED));
        throttle.finish(call, ENDED);
        assert_ends_at(&throttle, ENDED + PAUSE);
    }

    #[test]
    fn ticks_come_while_a_fiber_runs_for_which_a_job_within_a_call_has_left_its_own() {
        let throttle = Throttle::new();
        let call = throttle.begin(BEGUN);
        let job = throttle.begin(BEGUN + 1);
        throttle.end(BEGUN + 2);
        assert!(!throttle.is_under_way());
        assert_ends_at(&throttle, BEGUN + 2 + PAUSE);
        throttle.finish(job, ENDED);
        assert_ends_at(&throttle, ENDED + PAUSE);
        throttle.finish(call, ENDED * 2);
        assert_ends_at(&throttle, ENDED * 2 + PAUSE);
    }

    #[test]
    fn a_forked_child_keeps_no_suppression() {
        let throttle = Throttle::new();
        throttle.begin(BEGUN);
        throttle.reset();
        assert!(!throttle.is_under_way() && !throttle.suppresses(BEGUN));
    }
}
