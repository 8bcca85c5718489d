//! What a fiber can wait for.

use std::os::fd::RawFd;

use heddle_core::Interest;
use magnus::Value;
use magnus::gc::Marker;

use crate::ruby::value::PinnedValue;

/// The object that a fiber waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Awaited(PinnedValue);

impl Awaited {
    /// The object.
    pub fn get(self) -> Value {
        self.0.get()
    }
}

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
    Block(Awaited),
    /// A descriptor's readiness.
    Ready(RawFd, Interest),
    /// Several descriptors' readiness.
    Select,
    /// A read or a write that the kernel or a worker performs.
    Transfer(RawFd, Interest),
    /// A child process.
    Process(i32),
    /// The addresses of this host name.
    Address(Awaited),
    /// Until another fiber schedules it.
    Suspended,
    /// The end of all other fibers.
    Drain,
    /// To run again, after it raised into another fiber, which runs now.
    Raiser,
}

impl Wait {
    /// [`Wait::Block`].
    pub fn block(blocker: Value) -> Self {
        // SAFETY: on the stack, or in a fiber's record, where `Record::mark` calls `Wait::mark`.
        Wait::Block(Awaited(unsafe { PinnedValue::assume_marked(blocker) }))
    }

    /// [`Wait::Address`].
    pub fn address(host_name: Value) -> Self {
        // SAFETY: as in `Wait::block`.
        Wait::Address(Awaited(unsafe { PinnedValue::assume_marked(host_name) }))
    }

    /// Tells the garbage collector what is held.
    pub fn mark(self, marker: &Marker) {
        if let Wait::Block(object) | Wait::Address(object) = self {
            object.0.mark(marker);
        }
    }

    /// The kind of event, for users.
    pub fn kind(self) -> &'static str {
        match self {
            Wait::Nothing | Wait::NotStarted | Wait::Yielded | Wait::Preempted => "runnable",
            Wait::Sleep => "sleep",
            Wait::Block(_) => "block",
            Wait::Ready(..) => "io_wait",
            Wait::Select => "io_select",
            Wait::Transfer(..) => "io",
            Wait::Process(_) => "process",
            Wait::Address(_) => "address",
            Wait::Suspended => "suspend",
            Wait::Drain => "close",
            Wait::Raiser => "raise",
        }
    }

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
