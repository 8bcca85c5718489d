//! Prefetches into the cache what a fiber needs, while another fiber still runs.
//!
//! With thousands of fibers, none of a fiber's memory is in a cache when it is picked. Most of a switch's time goes
//! into half a dozen cache misses, one after the other: Ruby's record of the fiber, both ends of its VM stack, and its
//! C stack. The next fiber is known one time slice before, so all of these can be fetched meanwhile, at the same time.
//!
//! The addresses are guesses from how Ruby lays out its fibers today. They are never dereferenced: a wrong address
//! costs some nanoseconds, and has no other effect.

use heddle_core::prefetch::{LINE, prefetch};

use crate::ruby::fiber;
use crate::ruby::value::PinnedValue;

/// The memory of this many fibers fits into a core's own cache, and needs no prefetching.
pub const FEW: usize = 256;

/// The cache lines of Ruby's record of a fiber that a switch reads, as offset and number: the execution context, and
/// the state.
const EXECUTION: (usize, usize) = (64, 2);
const STATE: (usize, usize) = (448, 2);
/// The frames of a switch and of a hook on the C stack. `FRAMES_BELOW` is the size of the frames that are entered
/// after the address is noted; `FRAMES` is the number of cache lines of all.
const FRAMES_BELOW: usize = 640;
const FRAMES: usize = 12;
/// The first values on a VM stack.
const VALUES: usize = 4;
/// The size of a VM stack, unless the program has set it: the frames of its methods are at its end. `METHOD_FRAMES` is
/// the size of the frames of a block that calls a method.
const VM_STACK: usize = 128 * 1024;
const METHOD_FRAMES: usize = 320;
const PAGE: usize = 4096;

/// The addresses of a fiber's memory.
#[derive(Debug)]
pub struct PrefetchHints {
    object: usize,
    record: usize,
    /// Where its C stack ended when it was last switched from.
    stack: usize,
    /// Ruby's record of the fiber that it switched to then. Ruby reads that record once more when this fiber
    /// continues.
    switched_to: usize,
}

impl PrefetchHints {
    /// The addresses that are known of a fiber that has not started.
    pub fn of(fiber: PinnedValue) -> Self {
        let (object, record) = fiber::addresses(fiber);
        PrefetchHints { object, record, stack: 0, switched_to: 0 }
    }

    /// The scheduler switches from the fiber to another one, whose record is at `next`.
    pub fn leave(&mut self, next: usize) {
        self.stack = here();
        self.switched_to = next;
    }

    /// The address of Ruby's record of the fiber.
    pub fn record(&self) -> usize {
        self.record
    }

    /// Prefetches all of it. `vm_stack` is the [`stack`] on which the fiber has begun.
    pub fn prefetch(&self, vm_stack: usize) {
        prefetch(self.object, 1);
        prefetch(self.record.wrapping_add(EXECUTION.0), EXECUTION.1);
        prefetch(self.record.wrapping_add(STATE.0), STATE.1);
        prefetch(self.switched_to.wrapping_add(STATE.0), STATE.1);
        prefetch(self.stack.wrapping_sub(FRAMES_BELOW), FRAMES);
        prefetch(vm_stack, VALUES);
        prefetch(vm_stack.wrapping_add(VM_STACK - METHOD_FRAMES), METHOD_FRAMES / LINE);
    }
}

/// Whether so many fibers need prefetching.
pub fn are_many(fibers: usize) -> bool {
    fibers > FEW
}

/// The address of the VM stack of the current fiber, which has just started: Ruby has put it right above the C stack,
/// of which little is in use yet.
#[inline(always)]
pub fn stack() -> usize {
    here().next_multiple_of(PAGE)
}

/// An address near the end of the C stack.
#[inline(always)]
fn here() -> usize {
    let local = 0_u8;
    std::ptr::from_ref(&local).addr()
}
