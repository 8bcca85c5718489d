//! Reads and writes that block, on threads that may be blocked.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;
use rustc_hash::FxHashMap;

use super::transfer::Transfer;
use crate::backend::{Completion, Token};
use crate::mailbox::Mailbox;
use crate::waker::Waker;
use crate::workers::WorkerPool;

/// How many transfers may wait for a thread or be on one. Each holds a descriptor, and the process needs some for other
/// things; who comes later is served in place.
const MOST_UNDER_WAY: usize = 256;

/// The way to the worker pool and back.
pub struct Offload {
    workers: Arc<WorkerPool>,
    mailbox: Arc<Mailbox>,
    waker: Waker,
    /// Transfers whose completion has not been handed out, by token. The value says whether a thread has begun the
    /// transfer, or it was cancelled: whichever sets it first decides.
    under_way: FxHashMap<Token, Arc<AtomicBool>>,
}

impl Offload {
    /// `waker` ends the backend's wait, and is nobody else's.
    pub fn new(workers: Arc<WorkerPool>, waker: Waker) -> Self {
        Offload { workers, mailbox: Arc::new(Mailbox::new(waker.clone())), waker, under_way: FxHashMap::default() }
    }

    /// Starts a transfer. Answers its completion if that is there at once.
    pub fn start(&mut self, token: Token, fd: RawFd, transfer: Transfer) -> Option<Completion> {
        // The number may be closed and given to another file before a thread gets to it; so the thread has its own.
        // (When that is closed, POSIX ends the process's fcntl locks on the file. flock's stay.)
        let own = match self.has_room().then(|| duplicate(fd)) {
            Some(Ok(own)) => own,
            Some(Err(Errno::EBADF)) => return Some(Completion { token, result: -(Errno::EBADF as i32) }),
            None | Some(Err(_)) => return Some(Completion { token, result: transfer.block(fd) }),
        };
        let mailbox = Arc::clone(&self.mailbox);
        let decided = Arc::new(AtomicBool::new(false));
        self.under_way.insert(token, Arc::clone(&decided));
        let job = move || {
            if decided.swap(true, Ordering::Relaxed) {
                return;
            }
            let result = transfer.block(own.as_raw_fd());
            // Before anybody knows of the result: then the file is as closed as they left it.
            drop(own);
            mailbox.post(Completion { token, result });
        };
        if let Err(job) = self.workers.submit(job) {
            job();
        }
        None
    }

    /// Ends a transfer that no thread has begun, and answers its completion. One that a thread has begun goes on to its
    /// end.
    pub fn cancel(&mut self, token: Token) -> Option<Completion> {
        if self.under_way.get(&token)?.swap(true, Ordering::Relaxed) {
            return None;
        }
        self.under_way.remove(&token);
        Some(Completion { token, result: -(Errno::ECANCELED as i32) })
    }

    /// Whether nothing is on the threads, or in the mailbox.
    pub fn is_idle(&self) -> bool {
        self.under_way.is_empty()
    }

    /// From now on a result ends the wait. Answers whether one is there already.
    pub fn arm(&self) -> bool {
        if self.is_idle() {
            return false;
        }
        self.waker.arm();
        !self.mailbox.is_empty()
    }

    /// The wait has ended.
    pub fn disarm(&self) {
        if !self.is_idle() {
            self.waker.disarm();
        }
    }

    /// Moves the results that are there into `into`.
    pub fn completions(&mut self, into: &mut Vec<Completion>) {
        let before = into.len();
        self.mailbox.drain(into);
        for completion in &into[before..] {
            self.under_way.remove(&completion.token);
        }
    }

    /// In a forked child, where no thread is left to finish anything.
    pub fn abandon(&mut self) {
        self.under_way.clear();
        Arc::clone(&self.workers).abandon();
    }

    fn has_room(&self) -> bool {
        self.under_way.len() < MOST_UNDER_WAY
    }
}

fn duplicate(fd: RawFd) -> nix::Result<OwnedFd> {
    // SAFETY: takes no pointers.
    let own = Errno::result(unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 0) })?;
    // SAFETY: the kernel has just opened it, and nobody else knows of it.
    Ok(unsafe { OwnedFd::from_raw_fd(own) })
}
