//! What the waits of fibers own: descriptors that hooks have opened, memory, and what `IO.select` waits on.
//!
//! A fiber that waits may never run again, and then nothing on its stack is dropped. So what its wait owns belongs to
//! the scheduler, and the fiber has only a key to it. The scheduler frees all of it when it is closed or freed, and the
//! descriptors also in a forked child in which the fiber does not exist.

use std::os::fd::{AsRawFd, RawFd};

use heddle_core::Interest;
use heddle_core::io::operations::Ticket;
use heddle_core::io::process_fd::ProcessFd;
use slab::Slab;

use crate::scheduler::record::FiberKey;

/// See the module. A key is valid until what it names is freed.
#[derive(Default)]
pub struct WaitResources {
    selections: Slab<Selection>,
    /// Memory that operations use instead of a program's `IO::Buffer`.
    memory: Slab<Vec<u8>>,
    descriptors: Slab<(FiberKey, ProcessFd)>,
}

/// Names a descriptor that the scheduler owns.
#[derive(Debug, Clone, Copy)]
pub struct OwnedDescriptor {
    index: usize,
    fiber: FiberKey,
}

impl WaitResources {
    /// Keeps the memory until [`WaitResources::free_memory`], which gets the key that this returns.
    pub fn keep_memory(&mut self, memory: Vec<u8>) -> usize {
        self.memory.insert(memory)
    }

    /// Frees the memory.
    pub fn free_memory(&mut self, key: usize) {
        self.memory.remove(key);
    }

    /// An empty selection, until [`WaitResources::end_selection`].
    pub fn begin_selection(&mut self) -> usize {
        self.selections.insert(Selection::default())
    }

    /// The selection.
    pub fn selection(&mut self, key: usize) -> &mut Selection {
        &mut self.selections[key]
    }

    /// The operations of the selection.
    pub fn selected(&self, key: usize) -> &[Ticket] {
        &self.selections[key].tickets
    }

    /// Frees the selection.
    pub fn end_selection(&mut self, key: usize) {
        self.selections.remove(key);
    }

    /// The scheduler owns the descriptor, which `fiber` waits on, until [`WaitResources::close_descriptor`].
    pub fn own_descriptor(&mut self, fiber: FiberKey, descriptor: ProcessFd) -> OwnedDescriptor {
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
            self.descriptors.remove(descriptor.index);
        }
    }

    /// Closes the descriptors of the fibers that do not stay.
    pub fn retain_descriptors(&mut self, stays: impl Fn(FiberKey) -> bool) {
        self.descriptors.retain(|_, (fiber, _)| stays(*fiber));
    }
}

/// What a fiber in `IO.select` waits on.
#[derive(Debug, Default)]
pub struct Selection {
    wanted: Vec<(RawFd, Interest)>,
    /// The tickets of the operations that wait for them, one for each number.
    pub tickets: Vec<Ticket>,
}

impl Selection {
    /// Adds an event to wait for.
    pub fn want(&mut self, fd: RawFd, interest: Interest) {
        self.wanted.push((fd, interest));
    }

    /// Merges the events of each descriptor, as there is one operation for each of them.
    pub fn merge(&mut self) {
        self.wanted.sort_unstable_by_key(|(fd, _)| *fd);
        self.wanted.dedup_by(|(fd, interest), (kept, all)| {
            let is_same = fd == kept;
            if is_same {
                *all = *all | *interest;
            }
            is_same
        });
    }

    /// The descriptor with this index, and all events that the fiber waits for on it.
    pub fn wanted(&self, index: usize) -> Option<(RawFd, Interest)> {
        self.wanted.get(index).copied()
    }
}
