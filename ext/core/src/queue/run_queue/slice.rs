//! The time slice of the current fiber.

use std::time::{Duration, Instant};

/// The class of a preempted fiber.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    Fresh,
    Spent,
}

/// The current fiber's time slice, and the part of its quantum that it has used in earlier ones.
#[derive(Debug, Clone, Copy)]
pub struct Slice {
    pub since: Instant,
    pub used: Duration,
    /// The class from which the fiber was dequeued, if it had been preempted, and since when it was in that class.
    pub class: Option<(Class, Instant)>,
    /// Fibers in the queue do not preempt the fiber before this time: it was dequeued although woken fibers were in the
    /// queue, or has just started, or has started another fiber.
    pub protected_until: Option<Instant>,
    /// When the fiber continued, if it had started another one.
    pub continued_at: Option<Instant>,
}

impl Slice {
    /// The first slice of a quantum.
    pub fn start(now: Instant) -> Self {
        Slice { since: now, used: Duration::ZERO, class: None, protected_until: None, continued_at: None }
    }

    pub fn used_at(&self, now: Instant) -> Duration {
        self.used + now.saturating_duration_since(self.since)
    }
}
