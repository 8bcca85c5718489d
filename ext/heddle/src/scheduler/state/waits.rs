//! The beginning, the end and the events of a fiber's wait.

use std::time::Instant;

use super::{State, TimerAction};
use crate::ruby::value::PinnedValue;
use crate::scheduler::fibers::FiberKey;
use crate::scheduler::record::FiberState;
use crate::scheduler::wait::Wait;

impl State {
    /// Running → waiting. A fiber that is being killed only yields: when it is picked again, Ruby continues to kill
    /// it.
    #[inline]
    pub fn set_waiting(&mut self, key: FiberKey) {
        if self.fibers.get(key).is_some_and(|record| record.is_being_killed()) {
            self.enqueue(key);
        } else if !self.is_lost(key) {
            self.fibers.set_state(key, FiberState::Waiting);
        }
    }

    /// What a fiber waits for may have come: the fiber checks that when it is picked. Does nothing if the fiber is not
    /// waiting.
    pub fn wake(&mut self, key: FiberKey) {
        if self.fibers.get(key).is_some_and(|record| record.state() == FiberState::Waiting) {
            self.enqueue(key);
        }
    }

    /// Ruby's `unblock`. Returns whether the fiber was in a wait that `unblock` ends; `None` if the fiber is unknown.
    pub fn unblock(&mut self, fiber: PinnedValue) -> Option<bool> {
        let key = self.fibers.find(fiber)?;
        let record = self.fibers.get_mut(key)?;
        record.unblocks = record.unblocks.wrapping_add(1);
        let unblockable = record.wait.is_unblockable();
        if unblockable {
            self.wake(key);
        }
        Some(unblockable)
    }

    /// A fiber is about to wait. Returns what it waited for until then: a trap handler may wait within a wait.
    pub fn begin_wait(&mut self, key: FiberKey, wait: Wait) -> Option<Wait> {
        self.fibers.get_mut(key).map(|record| record.begin_wait(wait))
    }

    /// A fiber whose wait was ended early keeps waiting, for the end of the operation that it began. For a fiber that
    /// waits for it to leave the IO this is the same wait.
    pub fn continue_wait(&mut self, key: FiberKey, wait: Wait) -> Option<Wait> {
        self.fibers.get_mut(key).map(|record| std::mem::replace(&mut record.wait, wait))
    }

    /// A fiber's wait has ended. Exceptions that were meant for this wait alone are dropped.
    #[inline]
    pub fn end_wait(&mut self, key: FiberKey, outer: Option<Wait>) {
        if self.restore_wait(key, outer)
            && let Some(record) = self.fibers.get_mut(key)
        {
            record.pending_raises.drop_for_wait();
        }
    }

    /// Ends a yield or a continued wait: the fiber waits for what it waited for before. Returns whether an exception
    /// may be due in it.
    #[inline]
    pub fn restore_wait(&mut self, key: FiberKey, outer: Option<Wait>) -> bool {
        let mut may_be_due = self.stop.is_some();
        if let (Some(outer), Some(record)) = (outer, self.fibers.get_mut(key)) {
            record.wait = outer;
            may_be_due |= !record.pending_raises.is_empty();
        }
        if self.has_close_waiters() {
            self.wake_close_waiters();
        }
        may_be_due
    }

    /// [`State::restore_wait`] and the end of the hook in one, for a fiber that has yielded. False, with nothing done,
    /// if the fiber needs more than that.
    #[inline(always)]
    pub fn finish_yield(&mut self, key: FiberKey, outer: Wait) -> bool {
        let is_current = self.current.is_some_and(|(_, current)| current == key);
        if !is_current || self.stop.is_some() || self.has_close_waiters() {
            return false;
        }
        self.fibers.get_mut(key).is_some_and(|record| record.finish_yield(outer))
    }

    /// Performs the actions of the timers that have expired.
    pub fn expire(&mut self, now: Instant) {
        // First all are taken, then all are handled: meanwhile the fibers' records come into the cache, all at the
        // same time.
        let mut due = std::mem::take(&mut self.due);
        while let Some(action) = self.timers.pop_expired(now) {
            if let TimerAction::Wake(key) = &action {
                self.fibers.prefetch(*key);
            }
            due.push(action);
        }
        for action in due.drain(..) {
            match action {
                TimerAction::Wake(key) => self.wake(key),
                TimerAction::Deadline { fiber, pending_raise } => self.send_raise(fiber, pending_raise),
                TimerAction::Grace(key) => self.end_grace(key, now),
            }
        }
        self.due = due;
    }
}
