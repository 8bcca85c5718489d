//! The backend that asks for readiness: epoll on Linux, elsewhere what the `polling` crate finds.
//!
//! A kernel that only tells readiness does none of the work. So a read or write waits for readiness and is then done
//! here, in a way that cannot block; and what is always "ready" and blocks all the same, a file, goes to the worker
//! pool.

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
/// A wait costs one system call to arm it and one to wait. Nothing is disarmed when an operation is cancelled: at worst
/// that ends one `wait` without a completion.
pub struct Poll {
    selector: Arc<dyn Selector>,
    waker: Waker,
    offload: Offload,
    /// By descriptor number.
    watches: Vec<Watch>,
    /// Which number an operation waits for. Those on worker threads are not here: they cannot be cancelled.
    waiting: Waiting,
    /// Not handed out yet. The worker threads' are in their mailbox.
    done: Vec<Completion>,
    /// Kept for its memory.
    events: Vec<Event>,
    /// Counts armings, for their keys.
    armings: u32,
    /// It belongs to the parent of this process.
    abandoned: bool,
}

impl Poll {
    /// A backend that has `workers` read and write files.
    ///
    /// # Errors
    /// EMFILE, ENFILE or ENOMEM of the system calls that set it up.
    pub fn new(workers: Arc<WorkerPool>) -> Result<Self> {
        #[cfg(target_os = "linux")]
        return Ok(Self::over(Arc::new(epoll::Epoll::new()?), workers));
        #[cfg(not(target_os = "linux"))]
        return Self::portable(workers);
    }

    /// The same over the `polling` crate, as it is everywhere but on Linux.
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
            // Its own, because it is armed when the backend waits, and the other when the scheduler does.
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

    /// Has `work` done when `fd` is ready.
    fn watch(&mut self, token: Token, fd: RawFd, work: Work) {
        match self.make_room(fd).and_then(|()| self.arm(fd, &work)) {
            Ok(()) => {
                self.watches[fd as usize].push(Waiter { token, work });
                self.waiting.insert(token, fd);
            }
            Err(Errno::EPERM) => self.do_at_once(token, fd, work),
            Err(errno) => self.complete(token, errno),
        }
    }

    fn make_room(&mut self, fd: RawFd) -> std::result::Result<(), Errno> {
        let index = usize::try_from(fd).map_err(|_| Errno::EBADF)?;
        if index >= self.watches.len() {
            // Before there is memory for two thousand million of them: open descriptors are small numbers.
            Kind::of(fd)?;
            self.watches.resize_with(index + 1, Watch::default);
        }
        Ok(())
    }

    /// Arms `fd` for `work` and for all who wait for it already. EPERM says that there is nothing to wait for.
    fn arm(&mut self, fd: RawFd, work: &Work) -> std::result::Result<(), Errno> {
        let key = self.fresh_key(fd);
        let watch = &mut self.watches[fd as usize];
        if watch.registered {
            let armed = self.selector.modify(fd, key, watch.interest() | work.interest());
            if says_file_is_gone(armed) {
                // The number was closed, and maybe given to another file. Who waited for the old one cannot get it.
                watch.forget_file();
                self.fail_all(fd, Errno::EBADF);
            } else {
                armed?;
                watch.key = key;
            }
        }
        let watch = &mut self.watches[fd as usize];
        // While a file is registered it cannot give its place to another one without the selector's noticing. So its
        // kind is found out once. epoll refuses files by itself; kqueue waits for their end to move.
        let kind_matters = matches!(work, Work::Transfer(_)) || cfg!(not(target_os = "linux"));
        let kind = if kind_matters && watch.kind.is_none() { Some(Kind::of(fd)?) } else { watch.kind };
        if kind == Some(Kind::Storage) && kind_matters {
            return Err(Errno::EPERM);
        }
        if !watch.registered {
            match self.selector.add(fd, key, work.interest()) {
                // It was closed here and came back, by way of a duplicate that kept the file open.
                Err(Errno::EEXIST) => self.selector.modify(fd, key, work.interest())?,
                other => other?,
            }
        }
        (watch.key, watch.registered, watch.kind) = (key, true, kind);
        Ok(())
    }

    /// What is always ready.
    fn do_at_once(&mut self, token: Token, fd: RawFd, work: Work) {
        let completion = match work {
            Work::Tell(interest) => Some(Completion { token, result: interest.0.into() }),
            Work::Transfer(transfer) => self.offload.start(token, fd, transfer),
        };
        self.done.extend(completion);
    }

    /// Serves who waits for what has become ready.
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
        // Only after the last event: kqueue has two for one key.
        for event in &events {
            self.arm_again(event.key);
        }
        self.events = events;
    }

    /// An event disarms its descriptor, for those, too, whom it did not concern.
    fn arm_again(&mut self, key: usize) {
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

    fn fail_all(&mut self, fd: RawFd, errno: Errno) {
        let first = self.done.len();
        self.watches[fd as usize].fail(errno, &mut self.done);
        self.forget_from(first);
    }

    /// The operations that are done from the `first` on no longer wait.
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
        // SAFETY: the caller keeps the buffer until the completion is handed out, and the transfer is gone by then: it is
        // done, or dropped by `cancel`.
        let (fd, transfer) = unsafe {
            match operation {
                Operation::Ready { fd, interest } => return self.watch(token, fd, Work::Tell(interest)),
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
        let at_hand = self.offload.arm() || !self.done.is_empty();
        self.events.clear();
        let waited = self.selector.wait(if at_hand { Some(Duration::ZERO) } else { timeout }, &mut self.events);
        self.offload.disarm();
        self.dispatch();
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
            // The threads are the parent's, and one of them may have held the mailbox's lock when the process forked.
            return;
        }
        // Nobody else may read into a buffer from now on.
        self.watches.clear();
        self.waiting.clear();
        loop {
            self.completions(&mut Vec::new());
            if self.offload.is_idle() {
                return;
            }
            if self.wait(None).is_err() {
                // Even without the selector the threads own their buffers until they are done.
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

/// Whether the number no longer belongs to the file that was registered: it is closed (EBADF), or now that of a file
/// that is not registered (ENOENT), or that of one that cannot be (EPERM).
fn says_file_is_gone(armed: std::result::Result<(), Errno>) -> bool {
    matches!(armed, Err(Errno::ENOENT | Errno::EPERM | Errno::EBADF))
}

/// Half of a key is the descriptor's number. A system of 32 bits has room for fewer of both: numbers up to a million
/// (Linux's own limit), and each arming's key is told from 4095 others before it.
const FD_BITS: u32 = if usize::BITS == 64 { 32 } else { 20 };

fn key(fd: RawFd, arming: u32) -> usize {
    (arming as usize) << FD_BITS | fd as usize
}

fn fd_of(key: usize) -> RawFd {
    (key & ((1 << FD_BITS) - 1)) as RawFd
}
