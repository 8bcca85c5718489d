//! Backends: submitting operations to the kernel, and collecting their completions.
//!
//! The scheduler gives each operation a [`Token`], and receives exactly one [`Completion`] with that token. That holds
//! for cancelled operations, bad descriptors and operations that finish immediately, too: errors are completions. So
//! there is one place where a wait ends.

use std::os::fd::RawFd;
use std::time::Duration;

use crate::error::Result;
use crate::threads::waker::Waker;

pub mod epoll;
pub mod uring;

/// Names an operation. The caller of `submit` chooses it, and may reuse it once the completion has arrived.
pub type Token = usize;

/// What to wait for on a descriptor, with the bit values of Ruby's `IO::READABLE`, `PRIORITY` and `WRITABLE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Interest(pub u8);

impl Interest {
    /// `IO::READABLE`
    pub const READABLE: Interest = Interest(1);
    /// `IO::PRIORITY`: out-of-band data.
    pub const PRIORITY: Interest = Interest(2);
    /// `IO::WRITABLE`
    pub const WRITABLE: Interest = Interest(4);
    /// All of them.
    pub const ALL: Interest = Interest(7);

    /// Whether any bit of `other` is set.
    pub fn intersects(self, other: Interest) -> bool {
        self.0 & other.0 != 0
    }
}

impl std::ops::BitOr for Interest {
    type Output = Interest;
    fn bitor(self, other: Interest) -> Interest {
        Interest(self.0 | other.0)
    }
}

impl std::ops::BitAnd for Interest {
    type Output = Interest;
    fn bitand(self, other: Interest) -> Interest {
        Interest(self.0 & other.0)
    }
}

/// A request to the kernel.
#[derive(Debug, Clone, Copy)]
pub enum Operation {
    /// Wait until the descriptor is ready for one of `interest`. Completes with the [`Interest`] bits that are ready.
    /// An error or a hang-up makes the descriptor ready for all of them. A regular file is always ready.
    Ready {
        /// The descriptor.
        fd: RawFd,
        /// What to wait for; not empty.
        interest: Interest,
    },
    /// Read up to `length` bytes from a file. Completes with their number; 0 is the end of the file.
    Read {
        /// The descriptor.
        fd: RawFd,
        /// Belongs to the kernel until the completion is there.
        buffer: *mut u8,
        /// The size of `buffer`.
        length: usize,
        /// The file offset, or None for the descriptor's own position. Only files have offsets.
        offset: Option<u64>,
        /// Whether to start may block the thread that does it, as with a file that another machine or another process
        /// stores. Another thread starts it then.
        may_block: bool,
    },
    /// Write up to `length` bytes to a file. Completes with their number.
    Write {
        /// The descriptor.
        fd: RawFd,
        /// Belongs to the kernel until the completion is there.
        buffer: *const u8,
        /// The size of `buffer`.
        length: usize,
        /// The file offset, or None for the descriptor's own position.
        offset: Option<u64>,
        /// As with `Read`.
        may_block: bool,
    },
    /// Read up to `length` bytes from a socket, once data has arrived. Completes as `Read` does. Only for a backend
    /// that [is batching](Backend::is_batching): others complete with `-EOPNOTSUPP`.
    Receive {
        /// The descriptor.
        fd: RawFd,
        /// Belongs to the kernel until the completion is there.
        buffer: *mut u8,
        /// The size of `buffer`.
        length: usize,
    },
    /// Write up to `length` bytes to a socket, once there is room. Completes as `Write` does. Only for a backend that
    /// [is batching](Backend::is_batching).
    Send {
        /// The descriptor.
        fd: RawFd,
        /// Belongs to the kernel until the completion is there.
        buffer: *const u8,
        /// The size of `buffer`.
        length: usize,
    },
}

impl Operation {
    /// The descriptor number that the operation names.
    pub fn fd(&self) -> RawFd {
        match *self {
            Operation::Ready { fd, .. }
            | Operation::Read { fd, .. }
            | Operation::Write { fd, .. }
            | Operation::Receive { fd, .. }
            | Operation::Send { fd, .. } => fd,
        }
    }
}

/// The end of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// Which operation has ended.
    pub token: Token,
    /// The result (see [`Operation`]), or a negated errno. `-ECANCELED` says that a cancel came first.
    pub result: i32,
}

/// A kernel interface. All methods are called on the scheduler's thread.
///
/// # Safety of buffers
/// `submit` takes raw pointers: the caller keeps a buffer alive, and neither reads nor writes it, until `completions`
/// has returned the completion with the operation's token. Dropping a backend cancels its operations and waits for
/// their ends, so no buffer is in use afterwards.
pub trait Backend: Send {
    /// As users spell it: `"io_uring"` or `"poll"`.
    fn name(&self) -> &'static str;

    /// Whether many operations are submitted with one system call. If so, trying a system call before submitting an
    /// operation saves nothing. Otherwise the caller waits for readiness, and transfers by itself.
    fn is_batching(&self) -> bool;

    /// Starts `operation`, with the next `wait` at the latest.
    ///
    /// # Safety
    /// See [the trait](Backend#safety-of-buffers).
    unsafe fn submit(&mut self, token: Token, operation: Operation);

    /// Requests an early end of the operation. Its completion still arrives: `-ECANCELED`, or its own result if that
    /// was quicker. Does nothing if no such operation is in flight.
    ///
    /// An operation that has not been submitted to the kernel is dropped immediately, so it never touches a file that
    /// gets its descriptor's number later. That makes no system call. So other threads may do this, too, while the
    /// scheduler's thread is neither in `wait` nor in another method.
    fn cancel(&mut self, token: Token);

    /// Submits pending operations to the kernel and waits for a completion, a wake-up, a signal or the end of `timeout`
    /// (None: no limit), whichever comes first. May return early, and a timeout of zero never blocks. Does not call
    /// Ruby, so it may be called without the GVL.
    ///
    /// What has completed by the end of the wait is among the completions then. The kernel ends the wait of a process
    /// that was stopped (SIGSTOP) without what came meanwhile. So a wait that may have ended like that asks once more,
    /// as the timeout may have passed, too.
    fn wait(&mut self, timeout: Option<Duration>) -> Result<()>;

    /// Moves the completions that have arrived into `into`. Never blocks.
    fn completions(&mut self, into: &mut Vec<Completion>);

    /// Whether no operation is in flight. If so, only a timer or a wake-up can end a `wait`.
    fn is_idle(&self) -> bool;

    /// The waker that ends a `wait` from another thread.
    fn waker(&self) -> Waker;

    /// Releases the backend in a forked child without disturbing the parent's operations. No completion arrives any
    /// more. The child has closed the backend's descriptors inside fork(2): see [`crate::io::process_fd`].
    fn abandon(self: Box<Self>);
}
