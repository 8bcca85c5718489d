//! The beginning, the end and the events of a fiber's wait.

use std::time::{Duration, Instant};

use heddle_core::observe::trace::WakeSource;
use magnus::Value;

use super::{State, TimerAction};
use crate::scheduler::record::{FiberKey, FiberState};
use crate::scheduler::wait::Wait;

impl State {
    /// Running → waiting. A fiber that is being killed only yields: when it is picked again, Ruby continues to kill
    /// it.
    #[inline(always)]
    pub fn set_waiting(&mut self, key: FiberKey) {
        if !self.fibers.set_waiting(key) {
            self.enqueue(key);
            self.clock.pass_killed_wait();
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
    pub fn unblock(&mut self, fiber: Value) -> Option<bool> {
        let key = self.fibers.find(fiber)?;
        let record = self.fibers.get_mut(key)?;
        record.unblocks = record.unblocks.wrapping_add(1);
        let unblockable = record.wait.is_unblockable();
        if unblockable {
            self.wake(key);
        }
        Some(unblockable)
    }

    /// A fiber is about to wait. Returns what it waited for until then (a trap handler may wait within a wait), and
    /// whether exceptions may have been sent to it, or to a fiber that has resumed it.
    #[inline]
    pub fn begin_wait(&mut self, key: FiberKey, wait: Wait) -> Option<(Wait, bool)> {
        let record = self.fibers.get_mut(key)?;
        Some((record.begin_wait(wait), !record.managed || !record.pending_raises.is_empty()))
    }

    /// A fiber whose wait was ended early keeps waiting, for the end of the operation that it began. For a fiber that
    /// waits for it to leave the IO this is the same wait.
    pub fn continue_wait(&mut self, key: FiberKey, wait: Wait) -> Option<Wait> {
        self.fibers.get_mut(key).map(|record| std::mem::replace(&mut record.wait, wait))
    }

    /// A fiber's wait has ended. Exceptions that were meant for this wait alone are dropped.
    #[inline]
    pub fn end_wait(&mut self, key: FiberKey, outer: Option<Wait>) {
        if let (Some(outer), Some(record)) = (outer, self.fibers.get_mut(key)) {
            record.wait = outer;
            if !record.pending_raises.is_empty() {
                record.pending_raises.drop_for_wait();
            }
        }
        if self.closings.has_waiters() {
            self.wake_close_waiters();
        }
    }

    /// Ends a yield or a continued wait: the fiber waits for what it waited for before. Returns whether an exception
    /// may be pending in it.
    #[inline]
    pub fn restore_wait(&mut self, key: FiberKey, outer: Option<Wait>) -> bool {
        let mut may_have_raise = self.raises.is_stopping();
        if let (Some(outer), Some(record)) = (outer, self.fibers.get_mut(key)) {
            record.wait = outer;
            may_have_raise |= !record.pending_raises.is_empty();
        }
        if self.closings.has_waiters() {
            self.wake_close_waiters();
        }
        may_have_raise
    }

    /// [`State::restore_wait`] and the end of the hook in one, for a fiber that has yielded. False, with nothing done,
    /// if the fiber needs more than that.
    #[inline(always)]
    pub fn finish_yield(&mut self, key: FiberKey, outer: Wait) -> bool {
        if !self.fibers.is_chosen(key) || self.raises.is_stopping() || self.closings.has_waiters() {
            return false;
        }
        self.fibers.get_mut(key).is_some_and(|record| record.finish_yield(outer))
    }

    /// Timers and I/O are polled at the real time `now`. The states of fibers begin at the timers' time.
    #[inline]
    pub fn note_poll(&mut self, now: Instant, parking: Option<FiberKey>) {
        self.fibers.polled(self.clock.at(now), parking);
    }

    /// How long to wait in real time before the next jump, at the real time `now`. `None` if the clock is real, or has
    /// no timer to jump to.
    pub fn wait_before_jump(&mut self, now: Instant) -> Option<Duration> {
        if !self.clock.is_virtual() || self.timers.next_deadline().is_none() {
            return None;
        }
        self.clock.wait_before_jump(now, !self.operations.is_empty())
    }

    /// No fiber is runnable: the virtual clock jumps to the next timer, unless an event may still come at the real time
    /// `now`.
    #[cold]
    pub fn jump(&mut self, now: Instant) {
        if self.wait_before_jump(now) != Some(Duration::ZERO) {
            return;
        }
        let Some(deadline) = self.timers.next_deadline() else { return };
        self.clock.jump_to(deadline, !self.operations.is_empty());
        self.note_poll(now, None);
        self.expire(now);
    }

    /// Performs the actions of the timers that have expired.
    #[inline]
    pub fn expire(&mut self, now: Instant) {
        if self.has_expired_timer(now) {
            self.perform_expired(self.clock.at(now));
        }
    }

    /// Whether a timer has expired, and its action is still to be performed.
    #[inline]
    pub fn has_expired_timer(&mut self, now: Instant) -> bool {
        let now = self.clock.at(now);
        self.timers.next_deadline().is_some_and(|deadline| deadline <= now)
    }

    #[inline(never)]
    fn perform_expired(&mut self, now: Instant) {
        let mut expired = std::mem::take(&mut self.expired);
        expired.extend(std::iter::from_fn(|| self.timers.pop_expired(now)));
        self.counters.expired += expired.len() as u64;
        self.trace_source(Some(WakeSource::Timer));
        for action in expired.drain(..) {
            match action {
                TimerAction::Wake(key) => self.wake_by_timer(key),
                TimerAction::Deadline { fiber, pending_raise } => self.send_raise(fiber, pending_raise),
                TimerAction::Grace(key) => self.end_grace(key, now),
            }
        }
        self.trace_source(None);
        self.expired = expired;
    }
}
