//! Which files the scheduler's thread writes to itself.
//!
//! A write to a file usually ends in the page cache: that takes two microseconds, a fiftieth of the cost of a worker
//! thread's write. But it may block: for write-back, a remote server, `O_SYNC`. Few file systems support `RWF_NOWAIT`,
//! so the time of each write is measured. After two slow writes in a row a file is left to the backend for a while, so
//! long that slow writes cost the other fibers one hundredth of the time at most. One slow write proves nothing, as the
//! kernel may have preempted the thread.
//!
//! A remote file is never written to here, as a server that does not answer would block the first write without limit:
//! see [`crate::io::files`].

use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use crate::io::files::FileSystems;

/// The longest write that the scheduler's thread does itself. Copying more takes as long as a switch to a worker
/// thread.
pub const MAX_LENGTH: usize = 64 * 1024;
/// A write that takes longer than this has blocked.
const SLOW_WRITE: Duration = Duration::from_millis(1);
/// The length of a file's backoff, as a multiple of its last write's duration.
const BACKOFF_FACTOR: u32 = 100;
/// How long a file is taken for local without a system call. Its descriptor's number may name another file by then, but
/// hardly with the same owner.
const LOCAL_TTL: Duration = Duration::from_millis(10);
/// The number of cached local files, which are indexed by the last bits of their descriptors.
const LOCAL_SLOTS: usize = 16;
/// The number of slow files that are remembered. At the limit, files whose backoff is over are removed.
const MAX_SLOW_FILES: usize = 64;

/// The backoff of each slow file, by descriptor. The kernel may have reused a number for another file: then that file
/// is treated as slow for a while, or a slow file as quick once.
#[derive(Debug, Default)]
pub struct SlowFileBackoff {
    slow: FxHashMap<RawFd, Slow>,
    file_systems: FileSystems,
    local: [Option<Local>; LOCAL_SLOTS],
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
    /// The end of the backoff; `None` after the first slow write.
    until: Option<Instant>,
}

impl SlowFileBackoff {
    /// Whether the scheduler's thread may write `length` bytes to the file. `owner` identifies the object that the
    /// descriptor belongs to.
    pub fn allows(&mut self, fd: RawFd, owner: usize, length: usize, now: Instant) -> bool {
        let quick = || self.slow.get(&fd).and_then(|slow| slow.until).is_none_or(|until| now >= until);
        length <= MAX_LENGTH && (self.slow.is_empty() || quick()) && self.is_local(fd, owner, now)
    }

    fn is_local(&mut self, fd: RawFd, owner: usize, now: Instant) -> bool {
        let slot = &mut self.local[fd as usize % LOCAL_SLOTS];
        if slot.is_some_and(|local| local.fd == fd && local.owner == owner && now < local.until) {
            return true;
        }
        let is_local = !self.file_systems.holds_remote(fd);
        *slot = is_local.then(|| Local { fd, owner, until: now + LOCAL_TTL });
        is_local
    }

    /// Whether another machine or another process stores the file, so that writing to it or closing it may block
    /// without limit.
    pub fn is_remote(&mut self, fd: RawFd) -> bool {
        self.file_systems.holds_remote(fd)
    }

    /// Records a write that took from `begin` to `end`.
    pub fn record_write(&mut self, fd: RawFd, begin: Instant, end: Instant) {
        let took = end.saturating_duration_since(begin);
        if took <= SLOW_WRITE {
            if !self.slow.is_empty() {
                self.slow.remove(&fd);
            }
        } else if let Some(slow) = self.slow.get_mut(&fd) {
            slow.until = Some(end + took * BACKOFF_FACTOR);
        } else {
            if self.slow.len() >= MAX_SLOW_FILES {
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

    /// Records a slow write and returns when it ended.
    fn slow_once(backoff: &mut SlowFileBackoff) -> Instant {
        let begin = Instant::now();
        backoff.record_write(FILE, begin, begin + SLOW);
        begin + SLOW
    }

    fn slow_twice(backoff: &mut SlowFileBackoff) -> Instant {
        slow_once(backoff);
        slow_once(backoff)
    }

    #[test]
    fn one_slow_write_does_not_start_a_backoff() {
        let mut backoff = SlowFileBackoff::default();
        let end = slow_once(&mut backoff);
        assert!(backoff.allows(FILE, OWNER, 1, end));
    }

    #[test]
    fn slow_writes_that_are_not_consecutive_do_not_start_a_backoff() {
        let mut backoff = SlowFileBackoff::default();
        let mut end = slow_once(&mut backoff);
        backoff.record_write(FILE, end, end);
        end = slow_once(&mut backoff);
        assert!(backoff.allows(FILE, OWNER, 1, end));
    }

    #[test]
    fn a_new_file_is_allowed() {
        assert!(SlowFileBackoff::default().allows(FILE, OWNER, MAX_LENGTH, Instant::now()));
    }

    #[test]
    fn a_long_write_is_never_allowed() {
        assert!(!SlowFileBackoff::default().allows(FILE, OWNER, MAX_LENGTH + 1, Instant::now()));
    }

    #[test]
    fn two_slow_writes_start_a_backoff() {
        let mut backoff = SlowFileBackoff::default();
        let end = slow_twice(&mut backoff);
        assert!(!backoff.allows(FILE, OWNER, 1, end + SLOW));
        assert!(backoff.allows(FILE + 1, OWNER, 1, end + SLOW));
    }

    #[test]
    fn a_backoff_lasts_a_hundred_times_as_long_as_the_write() {
        let mut backoff = SlowFileBackoff::default();
        let end = slow_twice(&mut backoff);
        assert!(backoff.allows(FILE, OWNER, 1, end + SLOW * BACKOFF_FACTOR));
    }

    #[test]
    fn a_quick_write_ends_the_backoff() {
        let mut backoff = SlowFileBackoff::default();
        let end = slow_twice(&mut backoff);
        backoff.record_write(FILE, end, end);
        assert!(backoff.allows(FILE, OWNER, 1, end));
    }

    #[test]
    fn slow_files_whose_backoff_is_over_are_removed() {
        let mut backoff = SlowFileBackoff::default();
        let begin = Instant::now();
        for fd in 0..10_000 {
            let begin = begin + SLOW * 2 * BACKOFF_FACTOR * fd;
            backoff.record_write(fd as RawFd, begin, begin + SLOW);
        }
        assert!(backoff.slow.len() <= MAX_SLOW_FILES);
    }
}
