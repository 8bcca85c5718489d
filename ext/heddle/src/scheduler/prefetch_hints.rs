//! Fetching what a fiber needs into the cache while another one still has the turn.
//!
//! With thousands of fibers nothing that belongs to one is in a cache when its turn comes, and most of a switch's time
//! goes into half a dozen misses, one after the other: Ruby's record of the fiber, both ends of its VM stack, and its C
//! stack. Who comes next is known a whole turn before, so they can be fetched all at once meanwhile.
//!
//! The addresses are guesses from how Ruby lays out its fibers today. Nothing is read from them, and a wrong one costs
//! some nanoseconds; nothing else depends on them.

use heddle_core::prefetch::{LINE, prefetch};

use crate::ruby::fiber;
use crate::ruby::value::PinnedValue;

/// So many fibers have a place in a core's own cache, and need no help.
const FEW: usize = 256;

/// Cache lines of Ruby's record of a fiber that a switch looks at, as offset and number: what it executes, and its state.
const EXECUTION: (usize, usize) = (64, 2);
const STATE: (usize, usize) = (448, 2);
/// The frames of a switch and of a hook on the C stack: those that are entered after the place that is noted, and all.
const FRAMES_BELOW: usize = 640;
const FRAMES: usize = 12;
/// The first values on a VM stack.
const VALUES: usize = 4;
/// Where a VM stack ends, at which there are the frames of its methods, unless somebody has set its size; and how far
/// from there the frames go of a block that calls a method.
const VM_STACK: usize = 128 * 1024;
const METHOD_FRAMES: usize = 320;
const PAGE: usize = 4096;

/// Where in memory the things are that belong to a fiber.
#[derive(Debug)]
pub struct PrefetchHints {
    object: usize,
    record: usize,
    vm_stack: usize,
    /// Where its C stack ended when it gave its turn away.
    stack: usize,
    /// Ruby's record of the fiber that it switched to then. Ruby looks at that once more when this one goes on.
    switched_to: usize,
}

impl PrefetchHints {
    /// What is known of a fiber that has not begun.
    pub fn of(fiber: PinnedValue) -> Self {
        let (object, record) = fiber::addresses(fiber);
        PrefetchHints { object, record, vm_stack: 0, stack: 0, switched_to: 0 }
    }

    /// The fiber begins: Ruby has put its VM stack right above its C stack, of which little is used as yet.
    pub fn begin(&mut self) {
        self.vm_stack = here().next_multiple_of(PAGE);
    }

    /// The fiber gives its turn to another one.
    pub fn leave(&mut self, next: usize) {
        self.stack = here();
        self.switched_to = next;
    }

    /// Ruby's record.
    pub fn record(&self) -> usize {
        self.record
    }

    /// Has all of it fetched.
    pub fn prefetch(&self) {
        prefetch(self.object, 1);
        prefetch(self.record.wrapping_add(EXECUTION.0), EXECUTION.1);
        prefetch(self.record.wrapping_add(STATE.0), STATE.1);
        prefetch(self.switched_to.wrapping_add(STATE.0), STATE.1);
        prefetch(self.stack.wrapping_sub(FRAMES_BELOW), FRAMES);
        prefetch(self.vm_stack, VALUES);
        prefetch(self.vm_stack.wrapping_add(VM_STACK - METHOD_FRAMES), METHOD_FRAMES / LINE);
    }
}

/// Whether it is worth the trouble.
pub fn are_many(fibers: usize) -> bool {
    fibers > FEW
}

/// An address near the end of the C stack.
#[inline(always)]
fn here() -> usize {
    let local = 0_u8;
    std::ptr::from_ref(&local).addr()
}
