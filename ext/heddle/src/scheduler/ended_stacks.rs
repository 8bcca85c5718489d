//! The stacks of fibers that have ended. Ruby takes them back when it collects the fibers, and that is seldom where the
//! heap is large. But each has two memory maps, of which a process may have 65,530 on Linux, and some 20 KiB of memory.

use std::cell::Cell;

use magnus::Ruby;

use crate::ruby::gc;

/// How many there may be: they have a quarter of the maps then.
const MAX_ENDED: u32 = 8192;

/// How many fibers of the scheduler's have ended since the last garbage collection.
#[derive(Default)]
pub struct EndedStacks {
    count: Cell<u32>,
    collections: Cell<u64>,
}

impl EndedStacks {
    /// A fiber is about to end. Collects garbage if there has been none for too many of them.
    pub fn add(&self, ruby: &Ruby) {
        self.forget_collected();
        self.count.set(self.count.get() + 1);
        if self.count.get() >= MAX_ENDED {
            self.collect(ruby);
        }
    }

    /// Collects garbage, since there was no stack for a new fiber. False if that is of no use.
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
