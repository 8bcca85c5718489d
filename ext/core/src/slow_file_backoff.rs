//! Which files may be written to at once.
//!
//! A write to a file ends in the page cache: two microseconds, a fiftieth of what it costs to have another thread do it.
//! But it may block: for a full disk's flusher, a server far away, `O_SYNC`. Few file systems can be asked not to
//! (`RWF_NOWAIT`), so it is found out. A file that was slow twice in a row is left to others, for so long that whoever
//! waits for this thread loses one hundredth of the time at most. Once is no proof: the CPU may have been taken away.
//!
//! Where a server that does not answer would make the first write last for ever, there is none: see [`crate::files`].

use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use crate::files::FileSystems;

/// More than this is never written at once: copying it takes as long as handing it over.
pub const MOST_AT_ONCE: usize = 64 * 1024;
/// What takes longer than this has blocked.
const LONG: Duration = Duration::from_millis(1);
/// For so many times as long as a write took nobody tries again.
const PAUSE_PER_DURATION: u32 = 100;
/// For so long a file that was found not to be remote is not asked about again. Its descriptor's number could be
/// another file's by then, but hardly with the same owner.
const STAYS_LOCAL: Duration = Duration::from_millis(10);
/// How many files are remembered not to be remote, by the last bits of their descriptors.
const LOCAL_PLACES: usize = 16;
/// Slow files that are remembered. Beyond that those whose time is over are forgotten.
const MOST_REMEMBERED: usize = 64;

/// What is known of the files that were slow, by descriptor. A number may mean another file by now: then that one is
/// taken for slow for a while, or the slow one for quick once.
#[derive(Debug, Default)]
pub struct SlowFileBackoff {
    slow: FxHashMap<RawFd, Slow>,
    file_systems: FileSystems,
    local: [Option<Local>; LOCAL_PLACES],
}

/// A file that is not remote.
#[derive(Debug, Clone, Copy)]
struct Local {
    fd: RawFd,
    owner: usize,
    until: Instant,
}

#[derive(Debug, Default)]
struct Slow {
    /// Nobody tries before this; `None` after the first time.
    until: Option<Instant>,
}

impl SlowFileBackoff {
    /// Whether `length` bytes may be written to the file at once. `owner` is a number for the object that the descriptor
    /// belongs to.
    pub fn allows(&mut self, fd: RawFd, owner: usize, length: usize, now: Instant) -> bool {
        let quick = || self.slow.get(&fd).and_then(|slow| slow.until).is_none_or(|until| now >= until);
        length <= MOST_AT_ONCE && (self.slow.is_empty() || quick()) && self.is_local(fd, owner, now)
    }

    fn is_local(&mut self, fd: RawFd, owner: usize, now: Instant) -> bool {
        let place = &mut self.local[fd as usize % LOCAL_PLACES];
        if place.is_some_and(|local| local.fd == fd && local.owner == owner && now < local.until) {
            return true;
        }
        let is_local = !self.file_systems.holds_remote(fd);
        *place = is_local.then(|| Local { fd, owner, until: now + STAYS_LOCAL });
        is_local
    }

    /// Whether the file is kept by another machine or another process, so that writing to it, or closing it, may take for
    /// ever.
    pub fn is_remote(&mut self, fd: RawFd) -> bool {
        self.file_systems.holds_remote(fd)
    }

    /// A write took from `begin` to `end`.
    pub fn note(&mut self, fd: RawFd, begin: Instant, end: Instant) {
        let took = end.saturating_duration_since(begin);
        if took <= LONG {
            if !self.slow.is_empty() {
                self.slow.remove(&fd);
            }
        } else if let Some(slow) = self.slow.get_mut(&fd) {
            slow.until = Some(end + took * PAUSE_PER_DURATION);
        } else {
            if self.slow.len() >= MOST_REMEMBERED {
                self.slow.retain(|_, slow| slow.until.is_some_and(|until| end < until));
            }
            self.slow.insert(fd, Slow::default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: RawFd = 7;
    const OWNER: usize = 1;

    const SLOW: Duration = Duration::from_millis(2);

    /// Returns when it ended.
    fn slow_once(slow_file_backoff: &mut SlowFileBackoff) -> Instant {
        let begin = Instant::now();
        slow_file_backoff.note(FILE, begin, begin + SLOW);
        begin + SLOW
    }

    fn slow_twice(slow_file_backoff: &mut SlowFileBackoff) -> Instant {
        slow_once(slow_file_backoff);
        slow_once(slow_file_backoff)
    }

    #[test]
    fn a_file_that_was_slow_once_may_have_had_bad_luck() {
        let mut slow_file_backoff = SlowFileBackoff::default();
        let end = slow_once(&mut slow_file_backoff);
        assert!(slow_file_backoff.allows(FILE, OWNER, 1, end));
    }

    #[test]
    fn a_file_that_was_slow_now_and_then_is_not_slow() {
        let mut slow_file_backoff = SlowFileBackoff::default();
        let mut end = slow_once(&mut slow_file_backoff);
        slow_file_backoff.note(FILE, end, end);
        end = slow_once(&mut slow_file_backoff);
        assert!(slow_file_backoff.allows(FILE, OWNER, 1, end));
    }

    #[test]
    fn a_file_is_taken_for_quick_at_first() {
        assert!(SlowFileBackoff::default().allows(FILE, OWNER, MOST_AT_ONCE, Instant::now()));
    }

    #[test]
    fn much_is_never_written_at_once() {
        assert!(!SlowFileBackoff::default().allows(FILE, OWNER, MOST_AT_ONCE + 1, Instant::now()));
    }

    #[test]
    fn a_file_that_was_slow_twice_is_left_to_others() {
        let mut slow_file_backoff = SlowFileBackoff::default();
        let end = slow_twice(&mut slow_file_backoff);
        assert!(!slow_file_backoff.allows(FILE, OWNER, 1, end + SLOW));
        assert!(slow_file_backoff.allows(FILE + 1, OWNER, 1, end + SLOW));
    }

    #[test]
    fn a_file_that_was_slow_twice_is_tried_again_after_a_hundred_times_as_long() {
        let mut slow_file_backoff = SlowFileBackoff::default();
        let end = slow_twice(&mut slow_file_backoff);
        assert!(slow_file_backoff.allows(FILE, OWNER, 1, end + SLOW * PAUSE_PER_DURATION));
    }

    #[test]
    fn a_file_that_is_quick_again_is_forgiven() {
        let mut slow_file_backoff = SlowFileBackoff::default();
        let end = slow_twice(&mut slow_file_backoff);
        slow_file_backoff.note(FILE, end, end);
        assert!(slow_file_backoff.allows(FILE, OWNER, 1, end));
    }

    #[test]
    fn not_every_slow_file_is_remembered_for_ever() {
        let mut slow_file_backoff = SlowFileBackoff::default();
        let begin = Instant::now();
        for fd in 0..10_000 {
            let begin = begin + SLOW * 2 * PAUSE_PER_DURATION * fd;
            slow_file_backoff.note(fd as RawFd, begin, begin + SLOW);
        }
        assert!(slow_file_backoff.slow.len() <= MOST_REMEMBERED);
    }
}
