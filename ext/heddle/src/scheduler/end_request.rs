//! A request to a fiber to end, and its grace period.

use std::time::{Duration, Instant};

use heddle_core::timers::TimerKey;

/// How long a fiber that was killed may run before it is abandoned.
pub const GRACE_AFTER_KILL: Duration = Duration::from_millis(100);

/// A request to a fiber to end.
#[derive(Debug)]
pub struct EndRequest {
    /// Expires with the grace period.
    timer: TimerKey,
    /// `Record::waits` at the beginning of the grace period. If it is unchanged and the fiber is in the run queue, the
    /// fiber has not run since.
    waits: u32,
    /// When the exception was raised in the fiber for the first time.
    raised_at: Option<Instant>,
    /// The grace period was over once, and the fiber was killed.
    killed: bool,
}

impl EndRequest {
    /// The request to a fiber that has begun to wait so many times.
    pub fn new(timer: TimerKey, waits: u32) -> Self {
        EndRequest { timer, waits, raised_at: None, killed: false }
    }

    /// As [`EndRequest::new`], for a fiber that is killed now.
    pub fn kill(timer: TimerKey, waits: u32, now: Instant) -> Self {
        EndRequest { timer, waits, raised_at: Some(now), killed: true }
    }

    /// Whether the fiber is being killed.
    pub fn is_killed(&self) -> bool {
        self.killed
    }

    /// Expires with the grace period.
    pub fn timer(&self) -> TimerKey {
        self.timer
    }

    /// The grace period lasts until this timer expires.
    pub fn prolong(&mut self, timer: TimerKey) {
        self.timer = timer;
    }

    /// The exception has been raised in the fiber.
    pub fn note_raised(&mut self, now: Instant) {
        self.raised_at.get_or_insert(now);
    }

    /// The timer has expired. Returns until when the grace period, which lasts `grace`, or [`GRACE_AFTER_KILL`] after a
    /// kill, is prolonged: a shield holds back the end, the exception was raised later, or the fiber, which has begun
    /// to wait so many times, is in the run queue and has not run since. `None` if the period is over.
    pub fn prolonged_until(
        &self,
        now: Instant,
        grace: Duration,
        is_shielded: bool,
        (is_queued, waits): (bool, u32),
    ) -> Option<Instant> {
        let grace = if self.killed { GRACE_AFTER_KILL } else { grace };
        match self.raised_at {
            _ if is_shielded => Some(now + grace),
            Some(raised_at) if !self.killed => Some(raised_at + grace).filter(|end| *end > now),
            _ if is_queued && self.waits == waits => Some(now + grace),
            _ => None,
        }
    }
}
