//! Reads and writes that may block, on worker threads.

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

/// How many transfers may be queued or run on worker threads. Each holds a descriptor of its own, and the process needs
/// descriptors for other uses. Further transfers block the scheduler's thread.
const MAX_IN_FLIGHT: usize = 256;

/// Transfers on the worker pool, and their results.
pub struct Offload {
    workers: Arc<WorkerPool>,
    mailbox: Arc<Mailbox>,
    waker: Waker,
    /// Transfers whose completion has not been returned, by token. A worker thread sets the flag when it starts the
    /// transfer, and `cancel` to cancel it. The first of both decides.
    in_flight: FxHashMap<Token, Arc<AtomicBool>>,
}

impl Offload {
    /// `waker` ends the backend's wait, and must have no other user.
    pub fn new(workers: Arc<WorkerPool>, waker: Waker) -> Self {
        Offload { workers, mailbox: Arc::new(Mailbox::new(waker.clone())), waker, in_flight: FxHashMap::default() }
    }

    /// Starts a transfer. Returns its completion if it has ended already.
    pub fn start(&mut self, token: Token, fd: RawFd, transfer: Transfer) -> Option<Completion> {
        // The number may be closed and reused before a thread starts the transfer, so the thread has a duplicate.
        // (Closing the duplicate releases the process's fcntl locks on the file, says POSIX. Those of flock stay.)
        let own = match self.has_room().then(|| duplicate(fd)) {
            Some(Ok(own)) => own,
            Some(Err(Errno::EBADF)) => return Some(Completion { token, result: -(Errno::EBADF as i32) }),
            None | Some(Err(_)) => return Some(Completion { token, result: transfer.block(fd) }),
        };
        let mailbox = Arc::clone(&self.mailbox);
        let decided = Arc::new(AtomicBool::new(false));
        self.in_flight.insert(token, Arc::clone(&decided));
        let job = move || {
            if decided.swap(true, Ordering::Relaxed) {
                return;
            }
            let result = transfer.block(own.as_raw_fd());
            // Before the result is posted: a fiber that then closes the file has closed its last descriptor.
            drop(own);
            mailbox.post(Completion { token, result });
        };
        if let Err(job) = self.workers.submit(job) {
            job();
        }
        None
    }

    /// Cancels a transfer that no thread has started, and returns its completion. A started transfer runs to its end.
    pub fn cancel(&mut self, token: Token) -> Option<Completion> {
        if self.in_flight.get(&token)?.swap(true, Ordering::Relaxed) {
            return None;
        }
        self.in_flight.remove(&token);
        Some(Completion { token, result: -(Errno::ECANCELED as i32) })
    }

    /// Whether there are neither transfers nor results.
    pub fn is_idle(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// Lets a result end the wait from now on. Returns whether a result has arrived already.
    pub fn arm(&self) -> bool {
        if self.is_idle() {
            return false;
        }
        self.waker.arm();
        !self.mailbox.is_empty()
    }

    /// Notes the end of the wait.
    pub fn disarm(&self) {
        if !self.is_idle() {
            self.waker.disarm();
        }
    }

    /// Moves the results that have arrived into `into`.
    pub fn completions(&mut self, into: &mut Vec<Completion>) {
        let before = into.len();
        self.mailbox.drain(into);
        for completion in &into[before..] {
            self.in_flight.remove(&completion.token);
        }
    }

    /// Drops the transfers in a forked child, where the worker threads do not exist.
    pub fn abandon(&mut self) {
        self.in_flight.clear();
        Arc::clone(&self.workers).abandon();
    }

    fn has_room(&self) -> bool {
        self.in_flight.len() < MAX_IN_FLIGHT
    }
}

fn duplicate(fd: RawFd) -> nix::Result<OwnedFd> {
    // SAFETY: takes no pointers.
    let own = Errno::result(unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 0) })?;
    // SAFETY: the kernel has just opened the descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(own) })
}
