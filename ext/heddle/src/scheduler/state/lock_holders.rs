//! Which fibers may hold a lock: see [`lock_handoff`](crate::scheduler::lock_handoff).

use std::collections::VecDeque;

use super::State;
use crate::scheduler::record::FiberKey;

/// How many fibers that yielded in the middle of an operation are remembered. A fiber that is forgotten keeps its
/// place in the run queue, and so do fibers that want its lock.
const MAX_REMEMBERED: usize = 8;

/// The fibers that yielded in the middle of an operation, or after releasing a lock. Each may hold a lock.
#[derive(Debug, Default)]
pub struct LockHolders {
    /// The fibers that have not run since.
    fibers: VecDeque<FiberKey>,
    /// The fibers that run early, to finish their operation and nothing else.
    boosted: Vec<FiberKey>,
}

impl LockHolders {
    /// Whether no fiber is remembered.
    pub fn is_empty(&self) -> bool {
        self.fibers.is_empty()
    }

    /// The fiber yields in the middle of an operation, or after releasing a lock.
    pub fn add(&mut self, key: FiberKey) {
        if self.fibers.len() == MAX_REMEMBERED {
            self.fibers.pop_front();
        }
        self.fibers.push_back(key);
    }

    /// The fiber runs again. Returns whether it was boosted.
    pub fn remove(&mut self, key: FiberKey) -> bool {
        self.fibers.retain(|yielded| *yielded != key);
        let position = self.boosted.iter().position(|boosted| *boosted == key);
        position.map(|position| self.boosted.swap_remove(position)).is_some()
    }
}

impl State {
    /// The remembered fibers run first.
    pub fn boost_lock_holders(&mut self) {
        // The last fiber in the list is moved last, and so runs first.
        while let Some(candidate) = self.lock_holders.fibers.pop_front() {
            if self.fibers.move_to_front(candidate) {
                self.lock_holders.boosted.push(candidate);
            }
        }
    }
}
