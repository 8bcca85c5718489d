//! Whether to ask the kernel for a moment before sleeping in it.
//!
//! A client that sends its next request when it has the answer, or a database on the same machine, needs some ten
//! microseconds. Falling asleep and being woken takes the thread longer than that, and in a virtual machine several
//! times as long, as its processor halts meanwhile. So while waits are short, the thread asks again and again instead,
//! for [`MOMENT`]: KVM's halt polling does the same for virtual processors.
//!
//! Asking uses a processor that others may need, perhaps the one that would answer. So it must pay: each time that it
//! was in vain, it takes twice as many short waits in a row until the next try, and each time that it was not, half as
//! many.

use std::thread;
use std::time::Duration;

/// How long to ask. As long as a sleep and a wake-up take, so that asking in vain costs no more than twice as much.
pub const MOMENT: Duration = Duration::from_micros(50);
/// A wait in the kernel that took longer, with the wake-up, has not been short.
const SHORT_WAIT: Duration = Duration::from_micros(100);
/// In a shorter wait the thread has not slept: the operation ended at its submission, as a send does.
const LEAST_SLEEP: Duration = Duration::from_micros(5);
/// How many short waits in a row it takes at least, and at most.
const LEAST_NEEDED: u32 = 8;
const MOST_NEEDED: u32 = 4096;

/// What the last waits were like.
#[derive(Debug)]
pub struct BusyPoll {
    has_processors: bool,
    short_waits: u32,
    needed: u32,
    found: u64,
}

impl BusyPoll {
    /// For a thread of this process. With one processor, asking only delays who would answer.
    pub fn for_process() -> Self {
        Self::new(thread::available_parallelism().map_or(1, usize::from))
    }

    fn new(processors: usize) -> Self {
        BusyPoll { has_processors: processors > 1, short_waits: 0, needed: LEAST_NEEDED, found: 0 }
    }

    /// Whether to ask before the next wait, which ends after `timeout` at the latest.
    #[inline]
    pub fn is_worthwhile(&self, timeout: Option<Duration>) -> bool {
        self.has_processors && self.short_waits >= self.needed && timeout.is_none_or(|timeout| timeout > MOMENT)
    }

    /// The thread has asked more than once: for [`MOMENT`], or until the event has come.
    pub fn asked(&mut self, found: bool) {
        if found {
            self.needed = (self.needed / 2).max(LEAST_NEEDED);
            self.found += 1;
        } else {
            self.needed = (self.needed * 2).min(MOST_NEEDED);
            self.short_waits = 0;
        }
    }

    /// The thread has waited in the kernel for so long.
    pub fn waited(&mut self, time: Duration) {
        if time > SHORT_WAIT {
            self.short_waits = 0;
        } else if time >= LEAST_SLEEP {
            self.short_waits = self.short_waits.saturating_add(1);
        }
    }

    /// How many times asking has found the event.
    pub fn found(&self) -> u64 {
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after_short_waits(count: u32) -> BusyPoll {
        let mut busy_poll = BusyPoll::new(2);
        (0..count).for_each(|_| busy_poll.waited(SHORT_WAIT));
        busy_poll
    }

    #[test]
    fn asking_takes_short_waits_in_a_row() {
        assert!(!after_short_waits(LEAST_NEEDED - 1).is_worthwhile(None));
        let mut busy_poll = after_short_waits(LEAST_NEEDED);
        assert!(busy_poll.is_worthwhile(None));
        busy_poll.waited(SHORT_WAIT * 2);
        assert!(!busy_poll.is_worthwhile(None));
    }

    #[test]
    fn a_process_with_one_processor_does_not_ask() {
        let mut busy_poll = BusyPoll::new(1);
        (0..LEAST_NEEDED).for_each(|_| busy_poll.waited(SHORT_WAIT));
        assert!(!busy_poll.is_worthwhile(None));
    }

    #[test]
    fn a_timer_that_is_due_soon_is_not_missed() {
        let busy_poll = after_short_waits(LEAST_NEEDED);
        assert!(busy_poll.is_worthwhile(Some(MOMENT * 2)));
        assert!(!busy_poll.is_worthwhile(Some(MOMENT)));
    }

    #[test]
    fn asking_goes_on_while_it_pays() {
        let mut busy_poll = after_short_waits(LEAST_NEEDED);
        busy_poll.asked(true);
        assert!(busy_poll.is_worthwhile(None));
        assert_eq!(busy_poll.found(), 1);
    }

    #[test]
    fn asking_in_vain_becomes_rare() {
        let mut busy_poll = BusyPoll::new(2);
        let mut tries = 0;
        for _ in 0..100_000 {
            if busy_poll.is_worthwhile(None) {
                tries += 1;
                busy_poll.asked(false);
            }
            busy_poll.waited(SHORT_WAIT);
        }
        assert!(tries < 40, "{tries} tries");
    }

    #[test]
    fn a_success_makes_up_for_a_failure() {
        let mut busy_poll = after_short_waits(LEAST_NEEDED);
        busy_poll.asked(false);
        (0..2 * LEAST_NEEDED).for_each(|_| busy_poll.waited(SHORT_WAIT));
        busy_poll.asked(true);
        busy_poll.waited(SHORT_WAIT * 2);
        (0..LEAST_NEEDED).for_each(|_| busy_poll.waited(SHORT_WAIT));
        assert!(busy_poll.is_worthwhile(None));
    }

    #[test]
    fn a_wait_without_sleep_says_nothing() {
        let mut busy_poll = BusyPoll::new(2);
        (0..LEAST_NEEDED).for_each(|_| busy_poll.waited(LEAST_SLEEP / 2));
        assert!(!busy_poll.is_worthwhile(None));
        (0..LEAST_NEEDED).for_each(|_| busy_poll.waited(LEAST_SLEEP));
        busy_poll.waited(LEAST_SLEEP / 2);
        assert!(busy_poll.is_worthwhile(None));
    }
}
