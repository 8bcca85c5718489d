//! What a fiber can wait for.

use std::fmt;
use std::os::fd::RawFd;

use heddle_core::Interest;

use crate::ruby::value::PinnedValue;

/// What a fiber waits for. For `inspect`, and to know what may wake it.
// With a tag of that size it is copied as two words; else in parts that overlap, for which the processor has to wait.
#[repr(u64)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// It does not wait.
    Nothing,
    /// Its first turn: it has not begun.
    NotStarted,
    /// Its next turn, which is sure to come.
    Yielded,
    /// Its next turn, since it was preempted.
    Preempted,
    /// `sleep`, or a condition variable's `wait`.
    Sleep,
    /// A Mutex, a Queue, a Thread: what `block` was given.
    Block(PinnedValue),
    /// A descriptor's readiness.
    Ready(RawFd, Interest),
    /// Several descriptors' readiness.
    Select,
    /// A read or a write that the kernel or a worker does.
    Transfer(RawFd, Interest),
    /// A child process.
    Process(i32),
    /// A host name's addresses.
    Address,
    /// Until somebody schedules it.
    Suspended,
    /// The end of all other fibers.
    Drain,
    /// It raised into another fiber, which now goes on in its stead.
    Raiser,
}

impl Wait {
    /// Whether `unblock` ends it.
    pub fn is_unblockable(self) -> bool {
        matches!(self, Wait::Sleep | Wait::Block(_))
    }

    /// Whether who has waited like this owes its turn to those that wait for a lock of its; `yields_already` if it did before.
    /// See [`super::lock_handoff`].
    pub fn keeps_yield_after_unlock(self, yields_already: bool) -> bool {
        match self {
            Wait::Preempted | Wait::Ready(..) | Wait::Transfer(..) => true,
            Wait::Yielded => yields_already,
            _ => false,
        }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wait::Nothing | Wait::NotStarted | Wait::Yielded | Wait::Preempted => f.write_str("turn"),
            Wait::Sleep => f.write_str("sleep"),
            Wait::Block(_) => f.write_str("block"),
            Wait::Ready(..) => f.write_str("io_wait"),
            Wait::Select => f.write_str("io_select"),
            Wait::Transfer(..) => f.write_str("io"),
            Wait::Process(_) => f.write_str("process"),
            Wait::Address => f.write_str("address"),
            Wait::Suspended => f.write_str("suspend"),
            Wait::Drain => f.write_str("close"),
            Wait::Raiser => f.write_str("raise"),
        }
    }
}
