//! What a fiber can wait for.

use std::os::fd::RawFd;

use heddle_core::Interest;
use magnus::Value;
use magnus::gc::Marker;

use crate::ruby::value::PinnedValue;

/// The names under which the time of waits is counted, for users.
pub const COUNTED_WAITS: [&str; heddle_core::observe::accounting::WAIT_KINDS] =
    ["sleep", "block", "io", "process", "address", "suspend", "close", "resume", "raise"];
const IO: usize = 2;
const RESUME: usize = 7;

/// The kinds of waits, each with its name, and the index in [`COUNTED_WAITS`] of the name under which its time is
/// counted. [`Wait::kind`] says which kind a wait is of. A trace records the index, and has the last two kinds besides.
pub const WAIT_KINDS: [(&str, usize); 16] = [
    // A running fiber that waits for nothing, and one of the next three, can only have resumed another fiber.
    ("nothing", RESUME),
    ("start", RESUME),
    ("yield", RESUME),
    ("preempted", RESUME),
    ("sleep", 0),
    ("block", 1),
    ("io_wait", IO),
    ("io_select", IO),
    ("io", IO),
    ("process", 3),
    ("address", 4),
    ("suspend", 5),
    ("close", 6),
    ("raise", 8),
    ("resume", RESUME),
    ("woken", RESUME),
];
/// The kind of a wait for a fiber that the waiting one has resumed.
pub const RESUMED: usize = 14;
/// The kind of a fiber that was woken before the trace began.
pub const WOKEN: usize = 15;

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

    /// The index of its kind in [`WAIT_KINDS`].
    pub fn kind(self) -> usize {
        match self {
            Wait::Nothing => 0,
            Wait::NotStarted => 1,
            Wait::Yielded => 2,
            Wait::Preempted => 3,
            Wait::Sleep => 4,
            Wait::Block(_) => 5,
            Wait::Ready(..) => 6,
            Wait::Select => 7,
            Wait::Transfer(..) => 8,
            Wait::Process(_) => 9,
            Wait::Address(_) => 10,
            Wait::Suspended => 11,
            Wait::Drain => 12,
            Wait::Raiser => 13,
        }
    }

    /// The kind's name: in `stats`, in `inspect`, and in a snapshot.
    pub fn name(self) -> &'static str {
        WAIT_KINDS[self.kind()].0
    }

    /// The index in [`COUNTED_WAITS`] of the name under which its time is counted.
    pub fn counted(self) -> usize {
        WAIT_KINDS[self.kind()].1
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
