//! What a fiber in `IO.select` waits on.

use std::os::fd::RawFd;

use heddle_core::{Interest, Token};

/// What a fiber in `IO.select` waits on.
#[derive(Debug, Default)]
pub struct Selection {
    wanted: Vec<(RawFd, Interest)>,
    /// The tokens of the operations that wait for them, one for each number.
    pub tokens: Vec<Token>,
}

impl Selection {
    /// Adds an event to wait for.
    pub fn want(&mut self, fd: RawFd, interest: Interest) {
        self.wanted.push((fd, interest));
    }

    /// Merges the events of each descriptor, as there is one operation for each of them.
    pub fn merge(&mut self) {
        self.wanted.sort_unstable_by_key(|(fd, _)| *fd);
        self.wanted.dedup_by(|(fd, interest), (kept, all)| {
            let is_same = fd == kept;
            if is_same {
                *all = *all | *interest;
            }
            is_same
        });
    }

    /// The descriptor with this index, and all events that the fiber waits for on it.
    pub fn wanted(&self, index: usize) -> Option<(RawFd, Interest)> {
        self.wanted.get(index).copied()
    }
}
