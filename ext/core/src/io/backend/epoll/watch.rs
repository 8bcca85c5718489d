//! The operations that wait for a descriptor.

use std::os::fd::RawFd;

use nix::errno::Errno;

use crate::io::backend::{Completion, Interest, Token};

/// An operation that waits for a descriptor.
#[derive(Debug)]
pub struct Waiter {
    pub token: Token,
    /// What it waits for.
    pub interest: Interest,
}

/// The descriptor number that each operation waits for.
#[derive(Debug, Default)]
pub struct Waiting {
    /// By token. Tokens are slab indices, so this stays small.
    descriptors: Vec<Option<RawFd>>,
    count: usize,
}

impl Waiting {
    /// Records that the operation `token`, which must not be in here yet, waits for `fd`.
    pub fn insert(&mut self, token: Token, fd: RawFd) {
        if token >= self.descriptors.len() {
            self.descriptors.resize(token + 1, None);
        }
        let before = self.descriptors[token].replace(fd);
        debug_assert!(before.is_none(), "token {token} names a waiting operation");
        self.count += 1;
    }

    /// Removes an operation. None if it is not in here.
    pub fn remove(&mut self, token: Token) -> Option<RawFd> {
        let fd = self.descriptors.get_mut(token)?.take()?;
        self.count -= 1;
        Some(fd)
    }

    /// Whether no operation waits.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Removes all operations.
    pub fn clear(&mut self) {
        self.descriptors.clear();
        self.count = 0;
    }
}

/// The state of one descriptor number. epoll takes one registration per file and number, so all operations that
/// wait for the number share it.
#[derive(Debug, Default)]
pub struct Watch {
    /// The key of the latest arming. An event with another key belongs to an earlier arming, maybe of another file.
    pub key: usize,
    /// Whether epoll has a registration for this number, armed or not. Closing the file removes it.
    pub registered: bool,
    /// In order of submission.
    waiters: Vec<Waiter>,
    /// The interest of all waiters. After a removal it may have additional bits until the next event.
    interest: Interest,
}

impl Watch {
    /// What the descriptor is to be armed for.
    pub fn interest(&self) -> Interest {
        self.interest
    }

    /// Whether there are no waiters.
    pub fn is_idle(&self) -> bool {
        self.waiters.is_empty()
    }

    /// Adds a waiter.
    pub fn push(&mut self, waiter: Waiter) {
        self.interest = self.interest | waiter.interest;
        if self.waiters.capacity() == 0 {
            // Most descriptors have one waiter. A `Vec` would allocate for four, 170 bytes more for each idle
            // connection.
            self.waiters.reserve_exact(1);
        }
        self.waiters.push(waiter);
    }

    /// Removes a waiter.
    pub fn remove(&mut self, token: Token) {
        // A linear search, as there are hardly ever more waiters than a reader and a writer.
        if let Some(index) = self.waiters.iter().position(|waiter| waiter.token == token) {
            self.waiters.remove(index);
        }
        if self.waiters.is_empty() {
            self.interest = Interest::default();
        }
    }

    /// Completes the waiters that wait for any of `ready`.
    pub fn serve(&mut self, ready: Interest, done: &mut Vec<Completion>) {
        self.interest = Interest::default();
        self.waiters.retain(|waiter| {
            let served = waiter.interest.intersects(ready);
            if served {
                done.push(Completion { token: waiter.token, result: (waiter.interest & ready).0.into() });
            } else {
                self.interest = self.interest | waiter.interest;
            }
            !served
        });
    }

    /// Completes all waiters with an error.
    pub fn fail(&mut self, errno: Errno, done: &mut Vec<Completion>) {
        let failed = |waiter: Waiter| Completion { token: waiter.token, result: -(errno as i32) };
        done.extend(self.waiters.drain(..).map(failed));
        self.interest = Interest::default();
    }
}
