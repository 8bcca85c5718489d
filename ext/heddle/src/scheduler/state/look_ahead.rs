//! Fetches into the cache what the next fibers need, while another one has its turn.
//!
//! With thousands of fibers, nothing that belongs to a fiber is in a cache when it is picked, and most of a switch's
//! time goes into cache misses on its two stacks, one after the other. The next fiber is known one time slice before,
//! so all of them are fetched meanwhile, at the same time. Without this a wake-up among 10,000 sleepers takes 1.4 times
//! as long: see docs/internals/measurements.md.
//!
//! Nothing here is read. If a Ruby lays out its stacks in another way, this is of no use, and does no harm.

use heddle_core::queue::prefetch::prefetch;

use super::State;
use crate::scheduler::ended_stacks::{Begun, here};
use crate::scheduler::record::Record;

/// The memory of this many fibers fits into a core's own cache.
const FEW: usize = 256;
/// The frames on the C stack, of a switch and of a hook, that are entered before and after [`here`] is called.
const C_FRAMES: (usize, usize) = (128, 640);
/// The frames of a block that calls a method, and the values on their stack.
const METHOD_FRAMES: usize = 320;
const VALUES: usize = 256;

/// Where a fiber's stacks are in use.
#[derive(Debug, Default)]
pub struct LookAhead {
    /// The size of the stack of each fiber's methods, in bytes.
    vm_stack_size: usize,
}

impl LookAhead {
    /// Sets [`LookAhead::vm_stack_size`].
    pub fn set_vm_stack_size(&mut self, bytes: usize) {
        self.vm_stack_size = bytes;
    }

    /// Ruby has put the stack of the fiber's methods above the C stack. Its values are at its beginning, and its frames
    /// at its end.
    fn fetch_stacks(&self, Begun { stack, .. }: Begun, left_at: usize) {
        prefetch(left_at.wrapping_sub(C_FRAMES.1), C_FRAMES.0 + C_FRAMES.1);
        prefetch(stack, VALUES);
        prefetch(stack.wrapping_add(self.vm_stack_size).wrapping_sub(METHOD_FRAMES), METHOD_FRAMES);
    }
}

impl State {
    /// Whether there are so many fibers that [`State::look_ahead`] pays.
    #[inline(always)]
    pub(super) fn has_many_fibers(&self) -> bool {
        self.fibers.len() > FEW
    }

    /// The current fiber is about to be switched from. Fetches the stacks of the fiber that runs after the next one,
    /// and the record of a later one, for when it is that fiber's turn here.
    #[inline(never)]
    pub(super) fn look_ahead(&mut self) {
        if let Some((_, leaving)) = self.fibers.current()
            && let Some(record) = self.fibers.get_mut(leaving)
        {
            record.left_at = here();
        }
        if let Some(record) = self.fibers.queue().upcoming(0).and_then(|(key, _)| self.fibers.get(*key)) {
            self.look_ahead.fetch_stacks(record.begun, record.left_at);
        }
        if let Some(place) = self.fibers.queue().upcoming(2).and_then(|(key, _)| self.fibers.address(*key)) {
            prefetch(place, size_of::<Record>());
        }
    }
}
