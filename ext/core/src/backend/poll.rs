//! The backend over readiness: epoll on Linux, elsewhere what the `polling` crate finds.
//!
//! A readiness interface transfers no data. So the backend waits for readiness, and then reads or writes with a call
//! that cannot block. A file is always "ready" and may block nevertheless, so worker threads read and write files.

#[cfg(target_os = "linux")]
mod epoll;
mod offload;
mod portable;
mod selector;
mod transfer;
mod watch;

use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::Duration;

use nix::errno::Errno;

use self::offload::Offload;
use self::selector::{Event, Selector};
use self::transfer::{Kind, Transfer};
use self::watch::{Waiter, Waiting, Watch, Work};
use super::{Backend, Completion, Operation, Token};
use crate::error::Result;
use crate::waker::{Notify, Waker};
use crate::workers::WorkerPool;

/// A backend over the system's readiness interface.
///
/// A wait for readiness costs one system call to arm the descriptor and one to wait. Cancelling an operation disarms
/// nothing: at worst one later `wait` ends without a completion.
pub struct Poll {
    selector: Arc<dyn Selector>,
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

impl Poll {
    /// A backend whose `workers` read and write files.
    ///
    /// # Errors
    /// EMFILE, ENFILE or ENOMEM of the system calls that set it up.
    pub fn new(workers: Arc<WorkerPool>) -> Result<Self> {
        #[cfg(target_os = "linux")]
        return Ok(Self::over(Arc::new(epoll::Epoll::new()?), workers));
        #[cfg(not(target_os = "linux"))]
        return Self::portable(workers);
    }

    /// A backend over the `polling` crate, which is the one on other systems than Linux.
    ///
    /// # Errors
    /// As for [`Poll::new`].
    pub fn portable(workers: Arc<WorkerPool>) -> Result<Self> {
        Ok(Self::over(Arc::new(portable::Portable::new()?), workers))
    }

    fn over(selector: Arc<dyn Selector>, workers: Arc<WorkerPool>) -> Self {
        let waker = || Waker::new(Notification(Arc::clone(&selector)));
        Poll {
            waker: waker(),
            // A waker of its own, as the backend arms it in each `wait`, and the scheduler arms the other.
            offload: Offload::new(workers, waker()),
            selector,
            watches: Vec::new(),
            waiting: Waiting::default(),
            done: Vec::new(),
            events: Vec::new(),
            armings: 0,
            abandoned: false,
        }
    }

    fn complete(&mut self, token: Token, errno: Errno) {
        self.done.push(Completion { token, result: -(errno as i32) });
    }

    /// Waits until `fd` is ready, and then does `work`.
    fn watch(&mut self, token: Token, fd: RawFd, work: Work) {
        match self.make_room(fd).and_then(|()| self.arm(fd, &work)) {
            Ok(()) => {
                self.watches[fd as usize].push(Waiter { token, work });
                self.waiting.insert(token, fd);
            }
            Err(Errno::EPERM) => self.do_without_waiting(token, fd, work),
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
        Kind::of(fd)?;
        self.watches.resize_with(index + 1, Watch::default);
        Ok(())
    }

    /// Arms `fd` for `work` and for all operations that already wait for it. EPERM says that the file is always ready.
    fn arm(&mut self, fd: RawFd, work: &Work) -> std::result::Result<(), Errno> {
        let key = self.fresh_key(fd);
        let watch = &mut self.watches[fd as usize];
        if watch.registered {
            let armed = self.selector.modify(fd, key, watch.interest() | work.interest());
            if says_file_is_gone(armed) {
                // The number was closed, and may name another file. No event for the old file can arrive.
                watch.forget_file();
                self.fail_all(fd, Errno::EBADF);
            } else {
                armed?;
                watch.key = key;
            }
        }
        let watch = &mut self.watches[fd as usize];
        // The selector notices when another file replaces a registered one. So the kind is looked up once. epoll
        // refuses regular files by itself; kqueue would wait for a change of their length.
        let kind_matters = matches!(work, Work::Transfer(_)) || cfg!(not(target_os = "linux"));
        let kind = if kind_matters && watch.kind.is_none() { Some(Kind::of(fd)?) } else { watch.kind };
        if kind == Some(Kind::Storage) && kind_matters {
            return Err(Errno::EPERM);
        }
        if !watch.registered {
            match self.selector.add(fd, key, work.interest()) {
                // The number was closed, a duplicate kept the file open, and the number names the same file again.
                Err(Errno::EEXIST) => self.selector.modify(fd, key, work.interest())?,
                other => other?,
            }
        }
        (watch.key, watch.registered, watch.kind) = (key, true, kind);
        Ok(())
    }

    /// Does `work` on a file, which is always ready.
    #[cold]
    #[inline(never)]
    fn do_without_waiting(&mut self, token: Token, fd: RawFd, work: Work) {
        let completion = match work {
            Work::Report(interest) => Some(Completion { token, result: interest.0.into() }),
            Work::Transfer(transfer) => self.offload.start(token, fd, transfer),
        };
        self.done.extend(completion);
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
            watch.serve(fd, event.ready, &mut self.done);
            self.forget_from(first);
        }
        // Only after the last event, as kqueue has two events for one key.
        for event in &events {
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
        let armed = self.selector.modify(fd, fresh, watch.interest());
        if says_file_is_gone(armed) {
            watch.forget_file();
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

impl Backend for Poll {
    fn name(&self) -> &'static str {
        "poll"
    }

    fn is_batching(&self) -> bool {
        false
    }

    unsafe fn submit(&mut self, token: Token, operation: Operation) {
        // SAFETY: the caller keeps the buffer until `completions` has returned the completion. By then the transfer no
        // longer exists: it is done, or `cancel` has dropped it.
        let (fd, transfer) = unsafe {
            match operation {
                Operation::Ready { fd, interest } => return self.watch(token, fd, Work::Report(interest)),
                Operation::Read { fd, buffer, length, offset } => (fd, Transfer::read(buffer, length, offset)),
                Operation::Write { fd, buffer, length, offset } => (fd, Transfer::write(buffer, length, offset)),
                Operation::Receive { fd, buffer, length } => (fd, Transfer::read(buffer, length, None)),
                Operation::Send { fd, buffer, length } => (fd, Transfer::write(buffer, length, None)),
            }
        };
        self.watch(token, fd, Work::Transfer(transfer));
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
        let has_completions = self.offload.arm() || !self.done.is_empty();
        self.events.clear();
        let waited = self.selector.wait(if has_completions { Some(Duration::ZERO) } else { timeout }, &mut self.events);
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
        self.selector.abandon();
        self.offload.abandon();
    }
}

impl Drop for Poll {
    fn drop(&mut self) {
        if self.abandoned {
            // The worker threads are the parent's, and one of them may have held the mailbox's lock at the fork.
            return;
        }
        // From here on only worker threads may still use a buffer.
        self.watches.clear();
        self.waiting.clear();
        loop {
            self.completions(&mut Vec::new());
            if self.offload.is_idle() {
                return;
            }
            if self.wait(None).is_err() {
                // Even without the selector the worker threads use their buffers until their transfers end.
                std::thread::yield_now();
            }
        }
    }
}

/// Ends the selector's wait.
struct Notification(Arc<dyn Selector>);

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
