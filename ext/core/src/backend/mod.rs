//! How the kernel is asked to do something, and how its answer comes back.
//!
//! The scheduler gives each operation a [`Token`]; sooner or later exactly one [`Completion`] with that token comes
//! back, whatever happens in between. That holds for an operation that is cancelled, one whose descriptor is bad, and
//! one that finishes at once: errors are completions, too. So there is one place where a wait ends.

use std::os::fd::RawFd;
use std::time::Duration;

use crate::error::Result;
use crate::waker::Waker;

pub mod poll;
#[cfg(target_os = "linux")]
pub mod uring;

/// Names an operation under way. Chosen by who submits it; free for another operation once its completion is there.
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

/// Something that the kernel is asked to do.
#[derive(Debug, Clone, Copy)]
pub enum Operation {
    /// Wait until the descriptor is ready for one of `interest`. Completes with the [`Interest`] bits that are ready:
    /// an error or a hang-up counts as ready for all that was asked. A regular file is always ready.
    Ready {
        /// The descriptor.
        fd: RawFd,
        /// What to wait for; not empty.
        interest: Interest,
    },
    /// Read up to `length` bytes. Completes with their number; 0 is the end of the file.
    Read {
        /// The descriptor.
        fd: RawFd,
        /// Belongs to the kernel until the completion is there.
        buffer: *mut u8,
        /// The size of `buffer`.
        length: usize,
        /// Where in the file, or None for the descriptor's own position. Of use for files only.
        offset: Option<u64>,
    },
    /// Write up to `length` bytes. Completes with their number.
    Write {
        /// The descriptor.
        fd: RawFd,
        /// Belongs to the kernel until the completion is there.
        buffer: *const u8,
        /// The size of `buffer`.
        length: usize,
        /// Where in the file, or None for the descriptor's own position.
        offset: Option<u64>,
    },
    /// Read up to `length` bytes from a socket, once there are some. Completes as `Read` does.
    Receive {
        /// The descriptor.
        fd: RawFd,
        /// Belongs to the kernel until the completion is there.
        buffer: *mut u8,
        /// The size of `buffer`.
        length: usize,
    },
    /// Write up to `length` bytes to a socket, once there is room. Completes as `Write` does.
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
    /// The descriptor number that it names.
    pub fn fd(&self) -> RawFd {
        match *self {
            Operation::Ready { fd, .. }
            | Operation::Read { fd, .. }
            | Operation::Write { fd, .. }
            | Operation::Receive { fd, .. }
            | Operation::Send { fd, .. } => fd,
        }
    }

    /// What its descriptor has to be ready for.
    pub fn interest(&self) -> Interest {
        match *self {
            Operation::Ready { interest, .. } => interest,
            Operation::Read { .. } | Operation::Receive { .. } => Interest::READABLE,
            Operation::Write { .. } | Operation::Send { .. } => Interest::WRITABLE,
        }
    }
}

/// The end of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// Which operation has ended.
    pub token: Token,
    /// What it answers (see [`Operation`]), or a negated errno. `-ECANCELED` says that a cancel came first.
    pub result: i32,
}

/// A way of asking the kernel. All methods are called on one thread, the scheduler's.
///
/// # Safety of buffers
/// `submit` is given raw pointers: the caller keeps a buffer alive, and leaves it alone, until the completion with the
/// operation's token has been handed out by `completions`. A backend that is dropped gives all buffers back first:
/// it cancels what is under way and waits for the end of it.
pub trait Backend {
    /// As users spell it: `"io_uring"` or `"poll"`.
    fn name(&self) -> &'static str;

    /// Whether operations cost no system call each, as many are handed to the kernel at once. Then to try one before
    /// it is submitted saves nothing.
    fn is_batching(&self) -> bool;

    /// Starts `operation`, at the latest with the next `wait`.
    ///
    /// # Safety
    /// See [the trait](Backend#safety-of-buffers).
    unsafe fn submit(&mut self, token: Token, operation: Operation);

    /// Asks for an early end of the operation. Its completion still comes: `-ECANCELED`, or its own result if that was
    /// quicker. Does nothing if no such operation is under way.
    ///
    /// One that the kernel has not been told of yet is dropped at once: whatever file has its descriptor's number from
    /// then on, the operation does nothing to it. So does this on another thread than the scheduler's, as long as that
    /// one is neither in `wait` nor in another method: it makes no system call.
    fn cancel(&mut self, token: Token);

    /// Hands what was submitted to the kernel and waits for a completion, a wake-up, a signal or the end of `timeout`
    /// (None: for as long as it takes), whichever comes first; it may also return early. Zero never blocks. Calls no Ruby, so it may be called
    /// without the GVL.
    fn wait(&mut self, timeout: Option<Duration>) -> Result<()>;

    /// Moves the completions that are there into `into`. Never blocks.
    fn completions(&mut self, into: &mut Vec<Completion>);

    /// Whether nothing is under way: then only a timer or a wake-up can end a `wait`.
    fn is_idle(&self) -> bool;

    /// What ends a `wait` from another thread.
    fn waker(&self) -> Waker;

    /// In a forked child: gives up what is shared with the parent without disturbing the parent's operations. No
    /// completion comes any more.
    fn abandon(self: Box<Self>);
}
