//! Reads and writes that may block, on worker threads.

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;
use rustc_hash::FxHashMap;

use crate::io::backend::{Completion, Token};
use crate::io::process_fd::ProcessFd;
use crate::threads::mailbox::Mailbox;
use crate::threads::waker::Waker;
use crate::threads::workers::WorkerPool;

/// The largest transfer that Linux makes at once.
const MAX_LENGTH: usize = 0x7fff_f000;

/// How many transfers may be queued or run on worker threads. Each holds a descriptor of its own, and the process needs
/// descriptors for other uses. Further transfers are queued.
const MAX_IN_FLIGHT: usize = 256;

/// Transfers on the worker pool, and their results.
pub struct Offload {
    workers: Arc<WorkerPool>,
    mailbox: Arc<Mailbox<Completion>>,
    waker: Waker,
    /// Transfers whose completion has not been returned, by token. A worker thread sets the flag when it starts the
    /// transfer, and `cancel` to cancel it. The first of both decides.
    in_flight: FxHashMap<Token, Arc<AtomicBool>>,
    /// Transfers for which there was no room, no descriptor or no thread. They name a number, so closing the number
    /// must cancel them first, as any operation that is not in flight.
    queued: FxHashMap<Token, (RawFd, FileTransfer)>,
    /// The tokens of `queued` in order of submission, and tokens of transfers that were started or cancelled.
    order: VecDeque<Token>,
    /// Completions without a thread that have not been returned.
    ended: Vec<Completion>,
}

impl Offload {
    /// `waker` ends the backend's wait, and must have no other user.
    pub fn new(workers: Arc<WorkerPool>, waker: Waker) -> Self {
        Offload {
            workers,
            mailbox: Arc::new(Mailbox::new(waker.clone())),
            waker,
            in_flight: FxHashMap::default(),
            queued: FxHashMap::default(),
            order: VecDeque::new(),
            ended: Vec::new(),
        }
    }

    /// Starts a transfer, or queues it.
    pub fn start(&mut self, token: Token, fd: RawFd, transfer: FileTransfer) {
        self.order.push_back(token);
        self.queued.insert(token, (fd, transfer));
        self.start_queued();
    }

    /// Starts queued transfers, as many as possible.
    fn start_queued(&mut self) {
        while self.in_flight.len() < MAX_IN_FLIGHT
            && let Some((token, (fd, transfer))) = self.first_queued()
        {
            // The number may be closed and reused before a thread starts the transfer, so the thread has a duplicate.
            // (Closing the duplicate releases the process's fcntl locks on the file, says POSIX. Those of flock stay.)
            let has_started = match duplicate(fd) {
                Ok(own) => self.pass_to_worker(token, own, transfer),
                Err(Errno::EBADF) => {
                    self.ended.push(Completion { token, result: -(Errno::EBADF as i32) });
                    true
                }
                Err(_) => false,
            };
            if !has_started {
                // Descriptors or threads have run out.
                return;
            }
            self.queued.remove(&token);
        }
    }

    /// Does the first queued transfer in place if no transfer in flight will make room for it. The caller may block,
    /// and so must not hold the GVL.
    pub fn run_stuck(&mut self) {
        self.start_queued();
        if self.in_flight.is_empty()
            && let Some((token, (fd, transfer))) = self.first_queued()
        {
            self.queued.remove(&token);
            self.ended.push(Completion { token, result: transfer.block(fd) });
        }
    }

    fn first_queued(&mut self) -> Option<(Token, (RawFd, FileTransfer))> {
        loop {
            let token = *self.order.front()?;
            match self.queued.get(&token) {
                Some(queued) => return Some((token, *queued)),
                // It was started or cancelled.
                None => self.order.pop_front(),
            };
        }
    }

    /// Returns false if the pool has no thread and cannot start one.
    fn pass_to_worker(&mut self, token: Token, own: ProcessFd, transfer: FileTransfer) -> bool {
        let mailbox = Arc::clone(&self.mailbox);
        let decided = Arc::new(AtomicBool::new(false));
        let is_decided = Arc::clone(&decided);
        let job = move || {
            if is_decided.swap(true, Ordering::Relaxed) {
                return;
            }
            let result = transfer.block(own.as_raw_fd());
            // Before the result is posted: a fiber that then closes the file has closed its last descriptor.
            drop(own);
            mailbox.post(Completion { token, result });
        };
        let passed = self.workers.submit(job).is_ok();
        if passed {
            self.in_flight.insert(token, decided);
        }
        passed
    }

    /// Cancels a transfer that no thread has started, and returns its completion. A started transfer runs to its end.
    pub fn cancel(&mut self, token: Token) -> Option<Completion> {
        if self.queued.remove(&token).is_none() {
            if self.in_flight.get(&token)?.swap(true, Ordering::Relaxed) {
                return None;
            }
            self.in_flight.remove(&token);
        }
        Some(Completion { token, result: -(Errno::ECANCELED as i32) })
    }

    /// Whether there are neither transfers nor results.
    pub fn is_idle(&self) -> bool {
        self.in_flight.is_empty() && self.queued.is_empty() && self.ended.is_empty()
    }

    /// Lets a result end the wait from now on. Returns whether a result has arrived already.
    pub fn arm(&self) -> bool {
        if self.is_idle() {
            return false;
        }
        self.waker.arm();
        !self.mailbox.is_empty() || !self.ended.is_empty()
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
        if !self.queued.is_empty() {
            self.start_queued();
        }
        into.append(&mut self.ended);
    }

    /// Drops the transfers that no thread has. Their completions never arrive.
    pub fn drop_queued(&mut self) {
        self.queued.clear();
        self.order.clear();
    }

    /// Drops the transfers in a forked child, where the worker threads do not exist.
    pub fn abandon(&mut self) {
        self.in_flight.clear();
        self.drop_queued();
        self.ended.clear();
        Arc::clone(&self.workers).abandon();
    }
}

fn duplicate(fd: RawFd) -> nix::Result<ProcessFd> {
    // SAFETY: takes no pointers.
    let own = Errno::result(unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 0) })?;
    // SAFETY: the kernel has just opened the descriptor, and nothing else owns it.
    Ok(unsafe { ProcessFd::from_raw_fd(own) })
}

#[derive(Debug, Clone, Copy)]
enum Direction {
    Read,
    Write,
}

/// A read or write that may block.
#[derive(Debug, Clone, Copy)]
pub struct FileTransfer {
    direction: Direction,
    buffer: *mut u8,
    length: usize,
    offset: Option<u64>,
}

// SAFETY: by the contract of `FileTransfer::read` and `FileTransfer::write` nothing else uses the buffer until the
// transfer's last use, so any thread may do the transfer.
unsafe impl Send for FileTransfer {}

impl FileTransfer {
    /// # Safety
    /// `buffer` is valid for writes of `length` bytes, and nothing else uses it, until the last use of this transfer or
    /// a copy of it.
    pub unsafe fn read(buffer: *mut u8, length: usize, offset: Option<u64>) -> Self {
        FileTransfer { direction: Direction::Read, buffer, length: length.min(MAX_LENGTH), offset }
    }

    /// # Safety
    /// `buffer` is valid for reads of `length` bytes, and nothing writes to it, until the last use of this transfer or
    /// a copy of it.
    pub unsafe fn write(buffer: *const u8, length: usize, offset: Option<u64>) -> Self {
        FileTransfer { direction: Direction::Write, buffer: buffer.cast_mut(), length: length.min(MAX_LENGTH), offset }
    }

    /// Transfers with a blocking call, on a worker thread.
    pub fn block(&self, fd: RawFd) -> i32 {
        let Ok(offset) = self.offset.map(libc::off_t::try_from).transpose() else {
            return completion(Err(Errno::EINVAL));
        };
        loop {
            // SAFETY: the buffer has `length` bytes, and they are the transfer's.
            let transferred = unsafe {
                match (self.direction, offset) {
                    (Direction::Read, None) => libc::read(fd, self.buffer.cast(), self.length),
                    (Direction::Read, Some(offset)) => libc::pread(fd, self.buffer.cast(), self.length, offset),
                    (Direction::Write, None) => libc::write(fd, self.buffer.cast(), self.length),
                    (Direction::Write, Some(offset)) => libc::pwrite(fd, self.buffer.cast(), self.length, offset),
                }
            };
            match Errno::result(transferred) {
                Err(Errno::EINTR) => {}
                other => return completion(other.map(|count| count as usize)),
            }
        }
    }
}

fn completion(outcome: Result<usize, Errno>) -> i32 {
    // The count is at most `MAX_LENGTH`, so it fits.
    outcome.map_or_else(|errno| -(errno as i32), |count| count as i32)
}
