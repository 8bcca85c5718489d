//! What a fiber can wait for.

use std::fmt;
use std::os::fd::RawFd;

use heddle_core::Interest;

use crate::ruby::value::PinnedValue;

/// What a fiber waits for. Decides what may wake the fiber, and is shown by `inspect`.
// With a tag of this size the value is copied as two words. With a smaller one it would be copied in overlapping
// parts, which stalls the processor.
#[repr(u64)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// It does not wait.
    Nothing,
    /// To run for the first time: it has not started.
    NotStarted,
    /// To run again, after it has yielded.
    Yielded,
    /// To run again, after it was preempted.
    Preempted,
    /// `sleep`, or a condition variable's `wait`.
    Sleep,
    /// What was passed to `block`: a Mutex, a Queue, a Thread.
    Block(PinnedValue),
    /// A descriptor's readiness.
    Ready(RawFd, Interest),
    /// Several descriptors' readiness.
    Select,
    /// A read or a write that the kernel or a worker performs.
    Transfer(RawFd, Interest),
    /// A child process.
    Process(i32),
    /// The addresses of this host name.
    Address(PinnedValue),
    /// Until another fiber schedules it.
    Suspended,
    /// The end of all other fibers.
    Drain,
    /// To run again, after it raised into another fiber, which runs now.
    Raiser,
}

impl Wait {
    /// Whether it is for descriptors.
    pub fn is_for_io(self) -> bool {
        matches!(self, Wait::Ready(..) | Wait::Select | Wait::Transfer(..))
    }

    /// Whether `unblock` ends it.
    pub fn is_unblockable(self) -> bool {
        matches!(self, Wait::Sleep | Wait::Block(_))
    }

    /// Whether a fiber that has waited like this yields after an unlock. `yields_already` says whether it would have
    /// without this wait. See [`super::lock_handoff`].
    pub fn keeps_yield_after_unlock(self, yields_already: bool) -> bool {
        matches!(self, Wait::Preempted | Wait::Ready(..) | Wait::Transfer(..))
            || yields_already && matches!(self, Wait::Yielded)
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wait::Nothing | Wait::NotStarted | Wait::Yielded | Wait::Preempted => f.write_str("runnable"),
            Wait::Sleep => f.write_str("sleep"),
            Wait::Block(_) => f.write_str("block"),
            Wait::Ready(..) => f.write_str("io_wait"),
            Wait::Select => f.write_str("io_select"),
            Wait::Transfer(..) => f.write_str("io"),
            Wait::Process(_) => f.write_str("process"),
            Wait::Address(_) => f.write_str("address"),
            Wait::Suspended => f.write_str("suspend"),
            Wait::Drain => f.write_str("close"),
            Wait::Raiser => f.write_str("raise"),
        }
    }
}
