//! Fibers that will never run again: their process forked, or their scheduler was closed.

use super::State;
use crate::scheduler::fibers::FiberKey;
use crate::scheduler::record::{FiberState, Record};

/// Why fibers are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossCause {
    /// The process forked. Ruby has made the fiber that forked the thread's root, and the process ends with it.
    Fork,
    /// The scheduler was closed. Blocking fibers stay, since the root gets control when the current fiber ends.
    Close,
}

impl LossCause {
    fn loses(self, record: &Record) -> bool {
        self == LossCause::Fork || !record.blocking
    }
}

impl State {
    /// Whether the fiber waits for an event that will never come: its process forked and the fiber stayed in the
    /// parent, or its scheduler was closed.
    pub fn is_lost(&self, key: FiberKey) -> bool {
        self.has_lost_fibers && self.fibers.get(key).is_none_or(|record| record.state() == FiberState::Lost)
    }

    /// Called in a forked child, and when the scheduler is closed. `survivor` is the current fiber. It stays as it is,
    /// and so do the fibers that have resumed it. All others are lost, with their timers and operations.
    pub fn forget_other_fibers(&mut self, survivor: Option<FiberKey>, cause: LossCause) {
        self.has_lost_fibers = true;
        let others: Vec<FiberKey> = self
            .fibers
            .iter()
            .filter(|(key, record)| Some(*key) != survivor && record.is_parked() && cause.loses(record))
            .map(|(key, _)| key)
            .collect();
        for key in others {
            self.fibers.set_state(key, FiberState::Lost);
        }
        self.operations.clear();
        self.deferred_raises.clear();
        let fibers = &self.fibers;
        let stays = |key: FiberKey| {
            let runs = |record: &Record| record.state() == FiberState::Running && !record.blocking;
            Some(key) == survivor || fibers.get(key).is_some_and(runs)
        };
        self.close_waiters.retain(stays);
        self.descriptors.retain(|_, (key, _)| stays(*key));
        self.overdue.clear();
        self.timers.retain(|action| stays(action.fiber()));
    }
}
