//! Descriptors that hooks open for the time of a wait.
//!
//! A fiber that waits may never run again, and then nothing on its stack is dropped. So its descriptors belong to the
//! scheduler. The scheduler closes them when it is closed or freed, or in a forked child in which the fiber does not
//! exist.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use super::State;
use crate::scheduler::fibers::FiberKey;

/// Names a descriptor that the scheduler owns.
#[derive(Debug, Clone, Copy)]
pub struct OwnedDescriptor {
    index: usize,
    fiber: FiberKey,
}

impl State {
    /// The scheduler owns the descriptor, which `fiber` waits on, until [`State::close_descriptor`].
    pub fn own_descriptor(&mut self, fiber: FiberKey, descriptor: OwnedFd) -> OwnedDescriptor {
        OwnedDescriptor { index: self.descriptors.insert((fiber, descriptor)), fiber }
    }

    /// The descriptor's number, unless it has been closed.
    pub fn number_of(&self, descriptor: OwnedDescriptor) -> Option<RawFd> {
        let owned = self.descriptors.get(descriptor.index).filter(|(fiber, _)| *fiber == descriptor.fiber);
        owned.map(|(_, descriptor)| descriptor.as_raw_fd())
    }

    /// Closes the descriptor, unless it has been closed.
    pub fn close_descriptor(&mut self, descriptor: OwnedDescriptor) {
        if self.number_of(descriptor).is_some() {
            drop(self.descriptors.remove(descriptor.index));
        }
    }
}
