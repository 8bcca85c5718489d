//! The stacks of fibers that have ended. A stack takes two memory maps, of which a process may have 65,530 on Linux,
//! and some 20 KiB of memory.
//!
//! Ruby 3.3, 3.4.9 and 4.0.1 take the stack of a fiber that was transferred to back when they collect the fiber, and
//! with a large heap they collect seldom. Later Rubies take it back when the fiber continues that has switched to it.
//!
//! A minor collection frees a fiber that no major one has marked. It takes a fraction of the time of a major one, which
//! marks all that the program holds.

use std::cell::Cell;

use heddle_core::observe::map_limit;
use magnus::Ruby;

use crate::ruby::gc;

/// The number of stacks at which garbage is collected: they take a quarter of the maps then.
const MAX_ENDED: u32 = 8192;
/// How many fibers must get the stack of the fiber that has ended last, without a collection meanwhile, until it is
/// certain that Ruby takes stacks back at once. A collection that is under way may free that very stack, but hardly
/// ever twice.
const MIN_REUSED: u32 = 16;

/// Counts the managed fibers whose stacks Ruby may still have to take back, and those that have stacks.
#[derive(Default)]
pub struct EndedStacks {
    /// Fibers that have begun and have not ended. A scheduler that was closed may forget fibers, which stay counted.
    alive: Cell<u32>,
    /// Those that a minor collection frees.
    young: Cell<u32>,
    /// Those that only a major collection frees.
    old: Cell<u32>,
    collections: Cell<u64>,
    major_collections: Cell<u64>,
    /// The stack of the fiber that has ended last.
    last: Cell<usize>,
    /// How many fibers have got the stack of the fiber that had ended last.
    reused: Cell<u32>,
}

/// A fiber that has begun.
#[derive(Debug, Clone, Copy, Default)]
pub struct Begun {
    /// The address of its stack.
    pub stack: usize,
    major_collections: u64,
}

/// The address of the stack of the current fiber, which has just started and uses little of it yet: the page above.
#[inline(always)]
pub fn current_stack() -> usize {
    const PAGE: usize = 4096;
    here().next_multiple_of(PAGE)
}

/// An address near the end of the current fiber's stack.
#[inline(always)]
pub fn here() -> usize {
    let local = 0_u8;
    std::ptr::from_ref(&local).addr()
}

impl EndedStacks {
    /// A fiber begins, on the stack with this address.
    pub fn begin(&self, stack: usize) -> Begun {
        if self.last.replace(0) == stack {
            self.reused.set(self.reused.get() + 1);
        }
        self.alive.set(self.alive.get() + 1);
        map_limit::warn_if_near(self.alive.get() as usize);
        Begun { stack, major_collections: self.major_collections.get() }
    }

    /// Counts a fiber that is about to end. Collects garbage if too many have ended since the last collection.
    pub fn add(&self, ruby: &Ruby, fiber: Begun) {
        self.forget_collected(ruby);
        self.alive.set(self.alive.get().saturating_sub(1));
        self.last.set(fiber.stack);
        let is_young = fiber.major_collections == self.major_collections.get();
        let count = if is_young { &self.young } else { &self.old };
        count.set(count.get() + 1);
        if count.get() >= MAX_ENDED && !self.are_taken_back() {
            gc::collect(ruby, !is_young);
            self.forget_collected(ruby);
        }
    }

    /// Collects garbage, since there was no stack for a new fiber. False if that cannot free a stack.
    pub fn collect(&self, ruby: &Ruby) -> bool {
        self.forget_collected(ruby);
        let useful = self.young.get() + self.old.get() > 0;
        if useful {
            gc::collect(ruby, true);
            self.forget_collected(ruby);
        }
        useful
    }

    fn are_taken_back(&self) -> bool {
        self.reused.get() >= MIN_REUSED
    }

    fn forget_collected(&self, ruby: &Ruby) {
        let collections = gc::collections(ruby);
        if self.collections.replace(collections) == collections {
            return;
        }
        self.young.set(0);
        let major_collections = gc::major_collections(ruby);
        if self.major_collections.replace(major_collections) != major_collections {
            self.old.set(0);
        }
        if !self.are_taken_back() {
            self.reused.set(0);
        }
    }
}
