//! Who waits for a descriptor.

use std::os::fd::RawFd;

use nix::errno::Errno;

use super::transfer::{Kind, Transfer};
use crate::backend::{Completion, Interest, Token};

/// One operation that waits for a descriptor.
#[derive(Debug)]
pub struct Waiter {
    pub token: Token,
    pub work: Work,
}

/// What is done when the descriptor is ready.
#[derive(Debug)]
pub enum Work {
    /// Say so.
    Tell(Interest),
    /// Read or write.
    Transfer(Transfer),
}

impl Work {
    pub fn interest(&self) -> Interest {
        match self {
            Work::Tell(interest) => *interest,
            Work::Transfer(transfer) => transfer.interest(),
        }
    }
}

/// Which descriptor number an operation waits for.
#[derive(Debug, Default)]
pub struct Waiting {
    /// By token. Tokens are small, so this stays small.
    descriptors: Vec<Option<RawFd>>,
    count: usize,
}

impl Waiting {
    /// The operation `token`, of which there is none at present, waits for `fd`.
    pub fn insert(&mut self, token: Token, fd: RawFd) {
        if token >= self.descriptors.len() {
            self.descriptors.resize(token + 1, None);
        }
        let before = self.descriptors[token].replace(fd);
        debug_assert!(before.is_none(), "token {token} names an operation under way");
        self.count += 1;
    }

    /// The operation does not wait any longer. None if it did not.
    pub fn remove(&mut self, token: Token) -> Option<RawFd> {
        let fd = self.descriptors.get_mut(token)?.take()?;
        self.count -= 1;
        Some(fd)
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Forgets all operations.
    pub fn clear(&mut self) {
        self.descriptors.clear();
        self.count = 0;
    }
}

/// All that is known of one descriptor number. The selector takes one registration per file and number, so everybody
/// who waits for the number shares it.
#[derive(Debug, Default)]
pub struct Watch {
    /// Of the latest registration. Each arming has a fresh one: an event that has another key is of an earlier one,
    /// maybe of another file.
    pub key: usize,
    /// Whether the selector knows a file by this number, armed or not. It forgets by itself when the file is closed.
    pub registered: bool,
    /// Of the registered file, once it was needed.
    pub kind: Option<Kind>,
    /// In order of submission.
    waiters: Vec<Waiter>,
    /// What they wait for, all together. May be more after one was removed, until the next event.
    interest: Interest,
}

impl Watch {
    /// What there is to wait for.
    pub fn interest(&self) -> Interest {
        self.interest
    }

    /// Whether nobody waits.
    pub fn is_idle(&self) -> bool {
        self.waiters.is_empty()
    }

    /// Adds a waiter.
    pub fn push(&mut self, waiter: Waiter) {
        self.interest = self.interest | waiter.work.interest();
        self.waiters.push(waiter);
    }

    /// Forgets a waiter.
    pub fn remove(&mut self, token: Token) {
        // Hardly ever more than a few: a reader, a writer.
        if let Some(index) = self.waiters.iter().position(|waiter| waiter.token == token) {
            self.waiters.remove(index);
        }
        if self.waiters.is_empty() {
            self.interest = Interest::default();
        }
    }

    /// Completes whom `ready` concerns.
    pub fn serve(&mut self, fd: RawFd, ready: Interest, done: &mut Vec<Completion>) {
        let kind = self.kind;
        // When there is nothing left for one reader, there is nothing for the readers behind it.
        let mut exhausted = Interest::default();
        self.waiters.retain(|waiter| {
            let result = match &waiter.work {
                work if !work.interest().intersects(ready) => None,
                Work::Tell(interest) => Some((*interest & ready).0.into()),
                Work::Transfer(transfer) if transfer.interest().intersects(exhausted) => None,
                Work::Transfer(transfer) => transfer.attempt(fd, kind.unwrap_or(Kind::Stream)),
            };
            match result {
                Some(result) => done.push(Completion { token: waiter.token, result }),
                None => exhausted = exhausted | waiter.work.interest() & ready,
            }
            result.is_none()
        });
        self.interest = self.waiters.iter().fold(Interest::default(), |all, waiter| all | waiter.work.interest());
    }

    /// Completes everybody with an error.
    pub fn fail(&mut self, errno: Errno, done: &mut Vec<Completion>) {
        let failed = |waiter: Waiter| Completion { token: waiter.token, result: -(errno as i32) };
        done.extend(self.waiters.drain(..).map(failed));
        self.interest = Interest::default();
    }

    /// The file is gone from this number, and so is all that was known of it.
    pub fn forget_file(&mut self) {
        self.registered = false;
        self.kind = None;
    }
}
