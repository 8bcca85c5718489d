//! When somebody who never has to wait must let the others have a turn.
//!
//! Two things starve a scheduler: a fiber whose operations always finish at once never gives up its turn, and a run
//! queue that is never empty never looks at timers and I/O. Each has a bound here. The first is the budget of tokio's
//! cooperative scheduling, the second the tick that Go's and Polyphony's schedulers look at the network by.

use std::time::{Duration, Instant};

/// How many operations in a row may succeed at once in one turn.
pub const OPERATIONS_PER_TURN: u32 = 32;
/// After how many switches the clock is looked at: often enough for [`LONGEST_WITHOUT_POLL`], too seldom to be felt.
const SWITCHES_PER_CLOCK_CHECK: u32 = 16;
/// The run queue is served at most this long before timers and I/O are looked at.
const LONGEST_WITHOUT_POLL: Duration = Duration::from_micros(200);
/// The run queue gets at least so many switches between two looks, so that looking never becomes the main work.
const SWITCHES_PER_POLL: u32 = 256;

/// The same while an operation has not been handed to the kernel yet.
const SWITCHES_PER_SUBMISSION: u32 = 16;

/// Counts what would be unfair without a bound.
pub struct Budget {
    operations_left: u32,
    /// The turn is there to end an operation that was begun in the last one.
    is_short: bool,
    switches_since_poll: u32,
    last_poll: Instant,
    /// An operation waits to be handed to the kernel.
    submitted: bool,
}

impl Default for Budget {
    fn default() -> Self {
        let (operations_left, last_poll) = (OPERATIONS_PER_TURN, Instant::now());
        Budget { operations_left, is_short: false, switches_since_poll: 0, last_poll, submitted: false }
    }
}

impl Budget {
    /// An operation is about to be tried. False says that the fiber has had its share and is to give up its turn.
    pub fn consume(&mut self) -> bool {
        let allowed = self.operations_left > 0;
        self.operations_left = self.operations_left.saturating_sub(1);
        allowed
    }

    /// The fiber that has the turn got it before its time. It may go on with what it has begun, and nothing else.
    pub fn boost(&mut self) {
        self.operations_left = 0;
        self.is_short = true;
    }

    /// Whether that is so.
    pub fn is_boosted(&self) -> bool {
        self.is_short
    }

    /// A fiber gets its turn. True says that timers and I/O must be looked at first, although the run queue, which
    /// has `queued` entries, is not empty.
    #[inline]
    pub fn start_slice(&mut self, queued: usize) -> bool {
        self.operations_left = OPERATIONS_PER_TURN;
        self.is_short = false;
        self.switches_since_poll += 1;
        if !self.switches_since_poll.is_multiple_of(SWITCHES_PER_CLOCK_CHECK) {
            return false;
        }
        let least = if self.submitted { SWITCHES_PER_SUBMISSION } else { SWITCHES_PER_POLL };
        let whole_round = u32::try_from(queued).unwrap_or(u32::MAX).max(least);
        self.switches_since_poll >= whole_round || self.last_poll.elapsed() >= LONGEST_WITHOUT_POLL
    }

    /// An operation was given to the backend, which hands it on with the next look.
    pub fn submitted(&mut self) {
        self.submitted = true;
    }

    /// Timers and I/O have been looked at.
    pub fn polled(&mut self, now: Instant) {
        self.submitted = false;
        self.switches_since_poll = 0;
        self.last_poll = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_allows_a_bounded_number_of_operations() {
        let mut budget = Budget::default();
        let allowed = (0..1000).filter(|_| budget.consume()).count();
        assert_eq!(allowed, OPERATIONS_PER_TURN as usize);
    }

    #[test]
    fn a_new_turn_renews_the_budget() {
        let mut budget = Budget::default();
        while budget.consume() {}
        budget.start_slice(1);
        assert!(budget.consume());
    }

    #[test]
    fn a_turn_that_is_cut_short_allows_no_further_operation() {
        let mut budget = Budget::default();
        budget.start_slice(1);
        budget.boost();
        assert!(!budget.consume());
        budget.start_slice(1);
        assert!(budget.consume() && !budget.is_boosted());
    }

    #[test]
    fn a_run_queue_that_is_never_empty_does_not_keep_io_waiting_for_ever() {
        let mut budget = Budget::default();
        let turns = (1..).find(|_| budget.start_slice(2)).unwrap();
        assert!(turns <= SWITCHES_PER_POLL);
    }

    #[test]
    fn an_operation_that_was_submitted_waits_for_one_round_only() {
        let mut budget = Budget::default();
        budget.submitted();
        let turns = (1..).find(|_| budget.start_slice(2)).unwrap();
        assert_eq!(turns, SWITCHES_PER_SUBMISSION);
        budget.polled(Instant::now() + Duration::from_secs(1));
        let turns = (1..).find(|_| budget.start_slice(2)).unwrap();
        assert_eq!(turns, SWITCHES_PER_POLL);
    }

    #[test]
    fn looking_at_io_starts_the_count_anew() {
        let mut budget = Budget::default();
        while !budget.start_slice(2) {}
        budget.polled(Instant::now() + Duration::from_secs(1));
        assert!(!budget.start_slice(2));
    }
}
