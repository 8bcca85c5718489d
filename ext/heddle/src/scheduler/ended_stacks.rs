//! The stacks of fibers that have ended. Ruby frees such a stack when it collects the fiber, and with a large heap it
//! collects seldom. But each stack takes two memory maps, of which a process may have 65,530 on Linux, and some 20 KiB
//! of memory.

use std::cell::Cell;

use magnus::Ruby;

use crate::ruby::gc;

/// The number of stacks at which garbage is collected: they take a quarter of the maps then.
const MAX_ENDED: u32 = 8192;

/// Counts the managed fibers that have ended since the last garbage collection.
#[derive(Default)]
pub struct EndedStacks {
    count: Cell<u32>,
    collections: Cell<u64>,
}

impl EndedStacks {
    /// Counts a fiber that is about to end. Collects garbage if too many have ended since the last collection.
    pub fn add(&self, ruby: &Ruby) {
        self.forget_collected();
        self.count.set(self.count.get() + 1);
        if self.count.get() >= MAX_ENDED {
            self.collect(ruby);
        }
    }

    /// Collects garbage, since there was no stack for a new fiber. False if that cannot free a stack.
    pub fn collect(&self, ruby: &Ruby) -> bool {
        self.forget_collected();
        let useful = self.count.get() > 0;
        if useful {
            ruby.gc_start();
            self.forget_collected();
        }
        useful
    }

    fn forget_collected(&self) {
        let collections = gc::collections();
        if self.collections.replace(collections) != collections {
            self.count.set(0);
        }
    }
}
