//! The backend over readiness: epoll.
//!
//! A readiness interface transfers no data: a fiber waits here until its descriptor is ready, and then reads or writes
//! by itself. A file is always "ready" and may block nevertheless, so worker threads read and write files.

mod instance;
mod offload;
mod watch;

use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::Duration;

use nix::errno::Errno;

use self::instance::{EpollInstance, Event};
use self::offload::{FileTransfer, Offload};
use self::watch::{Waiter, Waiting, Watch};
use super::{Backend, Completion, Interest, Operation, Token};
use crate::error::Result;
use crate::io::files;
use crate::threads::waker::{Notify, Waker};
use crate::threads::workers::WorkerPool;

/// A backend over epoll.
///
/// A wait for readiness costs one system call to arm the descriptor and one to wait. Cancelling an operation disarms
/// nothing: at worst one later `wait` ends without a completion.
pub struct Epoll {
    epoll: Arc<EpollInstance>,
    waker: Waker,
    offload: Offload,
    /// By descriptor number.
    watches: Vec<Watch>,
    /// The descriptor number that each operation waits for, without the operations on worker threads.
    waiting: Waiting,
    /// Completions that `completions` has not returned yet, without those in the worker threads' mailbox.
    done: Vec<Completion>,
    /// A buffer for `dispatch`, kept to avoid allocations.
    events: Vec<Event>,
    /// The number of armings, which makes their keys distinct.
    armings: u32,
    /// Whether the backend belongs to the parent of this process.
    abandoned: bool,
}

impl Epoll {
    /// A backend whose `workers` read and write files.
    ///
    /// # Errors
    /// EMFILE, ENFILE or ENOMEM of the system calls that set it up.
    pub fn new(workers: Arc<WorkerPool>) -> Result<Self> {
        let epoll = Arc::new(EpollInstance::new()?);
        let waker = || Waker::new(Notification(Arc::clone(&epoll)));
        Ok(Epoll {
            waker: waker(),
            // A waker of its own, as the backend arms it in each `wait`, and the scheduler arms the other.
            offload: Offload::new(workers, waker()),
            epoll,
            watches: Vec::new(),
            waiting: Waiting::default(),
            done: Vec::new(),
            events: Vec::new(),
            armings: 0,
            abandoned: false,
        })
    }

    fn complete(&mut self, token: Token, errno: Errno) {
        self.done.push(Completion { token, result: -(errno as i32) });
    }

    /// Waits until `fd` is ready.
    fn watch(&mut self, token: Token, fd: RawFd, interest: Interest) {
        match self.make_room(fd).and_then(|()| self.arm(fd, interest)) {
            Ok(()) => {
                self.watches[fd as usize].push(Waiter { token, interest });
                self.waiting.insert(token, fd);
            }
            // A file, which is always ready.
            Err(Errno::EPERM) => self.done.push(Completion { token, result: interest.0.into() }),
            Err(errno) => self.complete(token, errno),
        }
    }

    fn make_room(&mut self, fd: RawFd) -> std::result::Result<(), Errno> {
        let index = usize::try_from(fd).map_err(|_| Errno::EBADF)?;
        if index >= self.watches.len() { self.make_more_room(fd, index) } else { Ok(()) }
    }

    #[cold]
    #[inline(never)]
    fn make_more_room(&mut self, fd: RawFd, index: usize) -> std::result::Result<(), Errno> {
        // Checked before the allocation, as a number that is not open may be as large as two thousand million.
        files::kind(fd).ok_or(Errno::EBADF)?;
        self.watches.resize_with(index + 1, Watch::default);
        Ok(())
    }

    /// Arms `fd` for `interest` and for all operations that already wait for it. EPERM says that the file is always
    /// ready.
    fn arm(&mut self, fd: RawFd, interest: Interest) -> std::result::Result<(), Errno> {
        let key = self.fresh_key(fd);
        let watch = &mut self.watches[fd as usize];
        if watch.registered {
            let armed = self.epoll.modify(fd, key, watch.interest() | interest);
            if says_file_is_gone(armed) {
                // The number was closed, and may name another file. No event for the old file can arrive.
                watch.registered = false;
                self.fail_all(fd, Errno::EBADF);
            } else {
                armed?;
                watch.key = key;
                return Ok(());
            }
        }
        match self.epoll.add(fd, key, interest) {
            // The number was closed, a duplicate kept the file open, and the number names the same file again.
            Err(Errno::EEXIST) => self.epoll.modify(fd, key, interest)?,
            other => other?,
        }
        let watch = &mut self.watches[fd as usize];
        (watch.key, watch.registered) = (key, true);
        Ok(())
    }

    /// Completes the operations whose descriptors have become ready.
    // Not inlined: most waits that only look have no events, and a fiber's stack is small.
    #[inline(never)]
    fn dispatch(&mut self) {
        let events = std::mem::take(&mut self.events);
        for event in &events {
            let fd = fd_of(event.key);
            let Some(watch) = self.watches.get_mut(fd as usize).filter(|watch| watch.key == event.key) else {
                continue;
            };
            let first = self.done.len();
            watch.serve(event.ready, &mut self.done);
            self.forget_from(first);
            self.rearm(event.key);
        }
        self.events = events;
    }

    /// Arms a descriptor again for the operations that its event did not complete, as an event disarms the descriptor.
    fn rearm(&mut self, key: usize) {
        let fd = fd_of(key);
        let fresh = self.fresh_key(fd);
        let Some(watch) = self.watches.get_mut(fd as usize).filter(|watch| watch.key == key) else { return };
        if watch.is_idle() {
            return;
        }
        watch.key = fresh;
        let armed = self.epoll.modify(fd, fresh, watch.interest());
        if says_file_is_gone(armed) {
            watch.registered = false;
            self.fail_all(fd, Errno::EBADF);
        } else if let Err(errno) = armed {
            self.fail_all(fd, errno);
        }
    }

    #[cold]
    #[inline(never)]
    fn fail_all(&mut self, fd: RawFd, errno: Errno) {
        let first = self.done.len();
        self.watches[fd as usize].fail(errno, &mut self.done);
        self.forget_from(first);
    }

    /// Removes the operations of the completions from `first` on from `waiting`.
    fn forget_from(&mut self, first: usize) {
        for completion in &self.done[first..] {
            self.waiting.remove(completion.token);
        }
    }

    fn fresh_key(&mut self, fd: RawFd) -> usize {
        self.armings = self.armings.wrapping_add(1);
        key(fd, self.armings)
    }
}

impl Backend for Epoll {
    fn name(&self) -> &'static str {
        "poll"
    }

    fn is_batching(&self) -> bool {
        false
    }

    unsafe fn submit(&mut self, token: Token, operation: Operation) {
        let (fd, transfer) = match operation {
            Operation::Ready { fd, interest } => return self.watch(token, fd, interest),
            Operation::Read { fd, buffer, length, offset, .. } => {
                // SAFETY: the caller keeps the buffer until `completions` has returned the completion. By then the
                // transfer no longer exists: it is done, or `cancel` has dropped it.
                (fd, unsafe { FileTransfer::read(buffer, length, offset) })
            }
            Operation::Write { fd, buffer, length, offset, .. } => {
                // SAFETY: as above.
                (fd, unsafe { FileTransfer::write(buffer, length, offset) })
            }
            Operation::Receive { .. } | Operation::Send { .. } => return self.complete(token, Errno::EOPNOTSUPP),
        };
        self.offload.start(token, fd, transfer);
    }

    fn cancel(&mut self, token: Token) {
        if let Some(fd) = self.waiting.remove(token) {
            self.watches[fd as usize].remove(token);
            self.complete(token, Errno::ECANCELED);
        } else {
            self.done.extend(self.offload.cancel(token));
        }
    }

    fn wait(&mut self, timeout: Option<Duration>) -> Result<()> {
        if timeout != Some(Duration::ZERO) && !self.offload.is_idle() {
            self.offload.run_stuck();
        }
        let has_completions = self.offload.arm() || !self.done.is_empty();
        self.events.clear();
        let waited = self.epoll.wait(if has_completions { Some(Duration::ZERO) } else { timeout }, &mut self.events);
        self.offload.disarm();
        if !self.events.is_empty() {
            self.dispatch();
        }
        waited
    }

    fn completions(&mut self, into: &mut Vec<Completion>) {
        self.offload.completions(into);
        into.append(&mut self.done);
    }

    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.offload.is_idle() && self.done.is_empty()
    }

    fn waker(&self) -> Waker {
        self.waker.clone()
    }

    fn abandon(mut self: Box<Self>) {
        self.abandoned = true;
        self.offload.abandon();
    }
}

impl Drop for Epoll {
    fn drop(&mut self) {
        if self.abandoned {
            // The worker threads are the parent's, and one of them may have held the mailbox's lock at the fork.
            return;
        }
        // From here on only worker threads may still use a buffer.
        self.watches.clear();
        self.waiting.clear();
        self.offload.drop_queued();
        loop {
            self.completions(&mut Vec::new());
            if self.offload.is_idle() {
                return;
            }
            if self.wait(None).is_err() {
                // Even without epoll the worker threads use their buffers until their transfers end.
                std::thread::yield_now();
            }
        }
    }
}

/// Ends epoll's wait.
struct Notification(Arc<EpollInstance>);

impl Notify for Notification {
    fn notify(&self) {
        self.0.notify();
    }
}

/// Whether the number no longer names the registered file: it is closed (EBADF), or it names a file that is not
/// registered (ENOENT) or cannot be registered (EPERM).
fn says_file_is_gone(armed: std::result::Result<(), Errno>) -> bool {
    matches!(armed, Err(Errno::ENOENT | Errno::EPERM | Errno::EBADF))
}

/// The bits of a key that hold the descriptor's number; the others hold the arming's. On a 32-bit system that is room
/// for numbers up to a million, which is Linux's own limit, and distinguishes 4096 successive armings.
const FD_BITS: u32 = if usize::BITS == 64 { 32 } else { 20 };

fn key(fd: RawFd, arming: u32) -> usize {
    (arming as usize) << FD_BITS | fd as usize
}

fn fd_of(key: usize) -> RawFd {
    (key & ((1 << FD_BITS) - 1)) as RawFd
}
