//! Whether to poll repeatedly before sleeping in the kernel.
//!
//! Falling asleep in the kernel and waking up takes some ten microseconds. In a virtual machine it takes several times
//! as long, because the idle processor halts. A client that sends its next request after each answer, or a database on
//! the same machine, often responds in less time. So while waits are short, the scheduler's thread polls repeatedly,
//! for up to [`BUSY_POLL_TIME`], before it sleeps. KVM's halt polling does the same for virtual processors.
//!
//! A busy poll occupies a processor that another thread or process may need. So it backs off: each busy poll that finds
//! no event doubles the number of short waits in a row that must precede the next one. A successful one halves that
//! number.

use std::thread;
use std::time::Duration;

/// How long a busy poll lasts at most: a bit longer than a client in a virtual machine takes to wake up and to send its
/// next request. If the scheduler's thread sleeps meanwhile, its own wake-up comes on top, and the wait takes about
/// 120 µs.
pub const BUSY_POLL_TIME: Duration = Duration::from_micros(100);
/// A longer wait in the kernel, including the wake-up, is not short.
const SHORT_WAIT: Duration = Duration::from_micros(200);
/// In a shorter wait the thread has not slept: the operation completed when it was submitted, as a send does.
const LEAST_SLEEP: Duration = Duration::from_micros(5);
/// The least and the greatest number of short waits in a row that precede a busy poll.
const LEAST_NEEDED: u32 = 8;
const MOST_NEEDED: u32 = 4096;

/// Decides by the last waits whether the next one begins with a busy poll.
#[derive(Debug)]
pub struct BusyPoll {
    may_poll: bool,
    short_waits: u32,
    needed: u32,
}

impl BusyPoll {
    /// The busy polls of a thread of this process. A process with a single processor makes none: a busy poll would
    /// delay the thread or process that produces the event.
    pub fn for_process() -> Self {
        Self::new(thread::available_parallelism().map_or(1, usize::from))
    }

    /// No busy poll.
    pub fn never() -> Self {
        Self::new(1)
    }

    fn new(processors: usize) -> Self {
        BusyPoll { may_poll: processors > 1, short_waits: 0, needed: LEAST_NEEDED }
    }

    /// Whether to begin the next wait with a busy poll. `timeout` is the wait's limit.
    #[inline]
    pub fn is_worthwhile(&self, timeout: Option<Duration>) -> bool {
        let fits = timeout.is_none_or(|timeout| timeout > BUSY_POLL_TIME);
        self.may_poll && self.short_waits >= self.needed && fits
    }

    /// A busy poll has ended, with or without an event.
    pub fn ended(&mut self, found: bool) {
        if found {
            self.needed = (self.needed / 2).max(LEAST_NEEDED);
        } else {
            self.needed = (self.needed * 2).min(MOST_NEEDED);
            self.short_waits = 0;
        }
    }

    /// The thread has waited in the kernel for `time`. `timeout` was the wait's limit: a short wait that reached it
    /// says nothing about how soon an event comes.
    pub fn waited(&mut self, time: Duration, timeout: Option<Duration>) {
        if time > SHORT_WAIT {
            self.short_waits = 0;
        } else if time >= LEAST_SLEEP && timeout.is_none_or(|timeout| time < timeout) {
            self.short_waits = self.short_waits.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after_short_waits(count: u32) -> BusyPoll {
        let mut busy_poll = BusyPoll::new(2);
        (0..count).for_each(|_| busy_poll.waited(SHORT_WAIT, None));
        busy_poll
    }

    #[test]
    fn a_busy_poll_takes_short_waits_in_a_row() {
        assert!(!after_short_waits(LEAST_NEEDED - 1).is_worthwhile(None));
        let mut busy_poll = after_short_waits(LEAST_NEEDED);
        assert!(busy_poll.is_worthwhile(None));
        busy_poll.waited(SHORT_WAIT * 2, None);
        assert!(!busy_poll.is_worthwhile(None));
    }

    #[test]
    fn a_process_with_one_processor_and_a_program_that_wants_none_make_no_busy_poll() {
        for mut busy_poll in [BusyPoll::new(1), BusyPoll::never()] {
            (0..LEAST_NEEDED).for_each(|_| busy_poll.waited(SHORT_WAIT, None));
            assert!(!busy_poll.is_worthwhile(None));
        }
    }

    #[test]
    fn a_timer_that_expires_soon_is_not_missed() {
        let busy_poll = after_short_waits(LEAST_NEEDED);
        assert!(busy_poll.is_worthwhile(Some(BUSY_POLL_TIME * 2)));
        assert!(!busy_poll.is_worthwhile(Some(BUSY_POLL_TIME)));
    }

    #[test]
    fn a_wait_that_a_timer_ends_is_not_short() {
        let mut busy_poll = BusyPoll::new(2);
        (0..LEAST_NEEDED).for_each(|_| busy_poll.waited(SHORT_WAIT, Some(SHORT_WAIT)));
        assert!(!busy_poll.is_worthwhile(None));
    }

    #[test]
    fn busy_polls_continue_while_they_succeed() {
        let mut busy_poll = after_short_waits(LEAST_NEEDED);
        busy_poll.ended(true);
        assert!(busy_poll.is_worthwhile(None));
    }

    #[test]
    fn failed_busy_polls_become_rare() {
        let mut busy_poll = BusyPoll::new(2);
        let mut tries = 0;
        for _ in 0..100_000 {
            if busy_poll.is_worthwhile(None) {
                tries += 1;
                busy_poll.ended(false);
            }
            busy_poll.waited(SHORT_WAIT, None);
        }
        assert!(tries < 40, "{tries} tries");
    }

    #[test]
    fn a_success_makes_up_for_a_failure() {
        let mut busy_poll = after_short_waits(LEAST_NEEDED);
        busy_poll.ended(false);
        (0..2 * LEAST_NEEDED).for_each(|_| busy_poll.waited(SHORT_WAIT, None));
        busy_poll.ended(true);
        busy_poll.waited(SHORT_WAIT * 2, None);
        (0..LEAST_NEEDED).for_each(|_| busy_poll.waited(SHORT_WAIT, None));
        assert!(busy_poll.is_worthwhile(None));
    }

    #[test]
    fn a_wait_without_sleep_says_nothing() {
        let mut busy_poll = BusyPoll::new(2);
        (0..LEAST_NEEDED).for_each(|_| busy_poll.waited(LEAST_SLEEP / 2, None));
        assert!(!busy_poll.is_worthwhile(None));
        (0..LEAST_NEEDED).for_each(|_| busy_poll.waited(LEAST_SLEEP, None));
        busy_poll.waited(LEAST_SLEEP / 2, None);
        assert!(busy_poll.is_worthwhile(None));
    }
}
