//! What a scheduler counts, for `stats`.
//!
//! Nothing here is counted for each switch, and no clock is read for it: [`Budget`](heddle_core::queue::budget::Budget) counts
//! switches anyway, and a poll reads the clock anyway.

use std::time::{Duration, Instant};

/// See the module.
#[derive(Debug, Default)]
pub struct Counters {
    /// Fibers that the scheduler has made.
    pub spawned: u64,
    /// Those that have ended.
    pub ended: u64,
    /// Those that an error has ended.
    pub failed: u64,
    /// Polls of timers and of the kernel.
    pub polls: u64,
    /// Those that waited, as no fiber was runnable.
    pub parks: u64,
    /// Those that a busy poll ended, so that the thread did not sleep: see [`heddle_core::io::busy_poll`].
    pub busy_polls: u64,
    /// How long the parks lasted.
    park_time: Duration,
    /// Since when the thread waits, if it does.
    parked_since: Option<Instant>,
    /// Completed operations.
    pub completed: u64,
    /// Polls that have found completed operations.
    pub batches: u64,
    /// The most operations that one poll has found.
    pub max_batch: u64,
    /// Timers that have expired.
    pub expired: u64,
    /// Since when the scheduler is open, if it is.
    opened_at: Option<Instant>,
    /// How long it was open before.
    open_time: Duration,
}

impl Counters {
    /// The scheduler is open from now on.
    pub fn open(&mut self) {
        self.opened_at.get_or_insert_with(Instant::now);
    }

    /// The scheduler is closed.
    pub fn close(&mut self) {
        self.open_time = self.elapsed();
        self.opened_at = None;
    }

    /// How long the scheduler has been open.
    pub fn elapsed(&self) -> Duration {
        self.open_time + self.opened_at.map_or(Duration::ZERO, |opened_at| opened_at.elapsed())
    }

    /// The thread begins to wait.
    pub fn park(&mut self, now: Instant) {
        self.parks += 1;
        self.parked_since = Some(now);
    }

    /// The thread has waited. `awake` says that a busy poll has ended the wait.
    pub fn unpark(&mut self, now: Instant, awake: bool) {
        self.busy_polls += u64::from(awake);
        self.park_time += self.parked_since.take().map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
    }

    /// How long the thread has waited, including the present wait.
    pub fn park_time(&self) -> Duration {
        self.park_time + self.parked_since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// A poll has found so many completed operations.
    pub fn batch(&mut self, size: u64) {
        self.completed += size;
        self.batches += u64::from(size > 0);
        self.max_batch = self.max_batch.max(size);
    }
}
