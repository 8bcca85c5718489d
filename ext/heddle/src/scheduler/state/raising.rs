//! Exceptions that are to be raised in fibers, and until when they are valid.

use std::time::Instant;

use heddle_core::timers::TimerKey;

use super::{State, TimerAction};
use crate::ruby::value::PinnedValue;
use crate::scheduler::fibers::FiberKey;
use crate::scheduler::pending_raises::Observation;
use crate::scheduler::raise::{Limit, PendingRaise, RaiseScope};
use crate::scheduler::record::FiberState;
use crate::scheduler::wait::Wait;

impl State {
    /// Sends an exception to a fiber: the fiber raises it in its next wait, or at a tick.
    pub fn send_raise(&mut self, key: FiberKey, pending_raise: PendingRaise) {
        let running = self.current.map(|(_, running)| running);
        let Some(record) = self.fibers.get_mut(key) else { return };
        if record.state() == FiberState::Running && running != Some(key) {
            // The fiber has resumed another fiber, or has switched to one by itself. Only `Fiber#raise` finds the
            // right place.
            let fiber = record.fiber;
            if pending_raise.scope.is_repeated() {
                record.pending_raises.push_in_flight(pending_raise);
            }
            self.defer_raise(fiber, pending_raise);
            if pending_raise.scope == RaiseScope::End {
                self.note_end_raised(key);
            }
        } else {
            record.pending_raises.push(pending_raise);
            if record.state() == FiberState::Runnable && record.wait == Wait::Preempted {
                // An exception is due in the fiber, so it no longer waits among the preempted fibers.
                self.enqueue(key);
            } else {
                self.wake(key);
            }
        }
    }

    /// Whether an exception may be due in a fiber: exceptions have been sent to it, or all fibers are asked to end.
    #[inline]
    pub fn may_be_due(&self, key: FiberKey) -> bool {
        self.fibers.get(key).is_some_and(|record| !record.pending_raises.is_empty() || self.stop.is_some())
    }

    /// Takes the next exception that is due in a fiber.
    #[inline]
    pub fn take_pending_raise(&mut self, key: FiberKey) -> Option<PendingRaise> {
        if self.may_be_due(key) { self.take_due_raise(key) } else { None }
    }

    #[cold]
    fn take_due_raise(&mut self, key: FiberKey) -> Option<PendingRaise> {
        if let Some(stop) = self.stop.filter(|_| self.must_be_stopped(key)) {
            let end = PendingRaise { exception: stop, message: None, scope: RaiseScope::End };
            self.end_is_raised(key, end);
            return Some(end);
        }
        let record = self.fibers.get_mut(key)?;
        let index = record.pending_raises.next(record.task.shield, record.is_waiting(), &self.timers)?;
        let pending_raise = record.pending_raises.take(index);
        if pending_raise.scope == RaiseScope::End {
            self.note_end_raised(key);
        }
        Some(pending_raise)
    }

    /// Takes the next exception that is due in a fiber, unless it has been raised before.
    pub fn take_new_raise(&mut self, key: FiberKey) -> Option<PendingRaise> {
        let record = self.fibers.get(key)?;
        let next = record.pending_raises.next(record.task.shield, record.is_waiting(), &self.timers);
        let is_new = self.must_be_stopped(key) || next.is_some_and(|index| record.pending_raises.is_new(index));
        if is_new { self.take_due_raise(key) } else { None }
    }

    /// The exception could not be raised in the fiber: it is due in the fiber's next wait, unless it was meant for the
    /// last one.
    pub fn put_back_raise(&mut self, key: FiberKey, pending_raise: PendingRaise) {
        if pending_raise.scope == RaiseScope::Wait {
            return;
        }
        let responsible_fiber = self.responsible_fiber(key);
        if pending_raise.scope == RaiseScope::End && responsible_fiber != key {
            // The request to end is made again in the generator's next wait, or in the next wait of the fiber that has
            // resumed it.
            for fiber in [key, responsible_fiber] {
                if let Some(record) = self.fibers.get_mut(fiber) {
                    record.end_requested = false;
                    record.pending_raises.retract(RaiseScope::End, &mut self.timers);
                }
            }
        } else if let Some(record) = self.fibers.get_mut(key) {
            record.pending_raises.push_first(pending_raise);
        }
    }

    /// The next exception that is due in a fiber, without taking it.
    pub fn due_exception(&self, key: FiberKey) -> Option<PinnedValue> {
        if self.must_be_stopped(key) {
            return self.stop;
        }
        let record = self.fibers.get(key)?;
        let next = record.pending_raises.next(record.task.shield, record.is_waiting(), &self.timers);
        next.map(|index| record.pending_raises.exception(index))
    }

    /// Asks all fibers to end: from now on `exception` is raised in each fiber that waits, or will wait.
    pub fn stop_all(&mut self, exception: PinnedValue) {
        self.stop = Some(exception);
        let stoppable: Vec<FiberKey> =
            self.fibers.iter().filter(|(_, record)| record.is_stoppable()).map(|(key, _)| key).collect();
        stoppable.into_iter().for_each(|key| self.begin_grace(key));
        let waiting: Vec<FiberKey> = self
            .fibers
            .iter()
            .filter(|(_, record)| record.state() == FiberState::Waiting && record.wait != Wait::Drain)
            .map(|(key, _)| key)
            .collect();
        waiting.into_iter().for_each(|key| self.wake(key));
    }

    /// Whether all fibers are being asked to end.
    pub fn is_stopping(&self) -> bool {
        self.stop.is_some()
    }

    /// The end of [`State::stop_all`].
    pub fn end_stopping(&mut self) {
        self.stop = None;
    }

    /// Adds an exception for a fiber that is suspended, but not parked by the scheduler.
    pub fn defer_raise(&mut self, fiber: PinnedValue, pending_raise: PendingRaise) {
        self.deferred_raises.push((fiber, pending_raise));
    }

    /// Takes the last exception that was added by [`State::defer_raise`].
    pub fn take_deferred_raise(&mut self) -> Option<(PinnedValue, PendingRaise)> {
        self.deferred_raises.pop()
    }

    /// Whether there are deferred raises, or fibers whose grace period is over. The next fiber that parks handles
    /// both.
    pub fn has_deferred_raises(&self) -> bool {
        !self.deferred_raises.is_empty() || !self.overdue.is_empty()
    }

    /// Removes the exceptions with this scope, which has ended.
    pub fn retract(&mut self, key: FiberKey, scope: RaiseScope) {
        if let Some(record) = self.fibers.get_mut(key) {
            record.pending_raises.retract(scope, &mut self.timers);
        }
        self.deferred_raises.retain(|(_, pending_raise)| pending_raise.scope != scope);
    }

    /// See [`PendingRaises::update`](crate::scheduler::pending_raises::PendingRaises::update).
    pub fn update_raise(&mut self, key: FiberKey, scope: RaiseScope, observed: Observation, action: TimerAction) {
        if let Some(record) = self.fibers.get_mut(key) {
            record.pending_raises.update(scope, observed, &mut self.timers, action);
        }
    }

    /// Sets a timer for the block of a `timeout_after`. Returns the timer's key and the scope of what it raises.
    pub fn set_deadline(&mut self, at: Instant, fiber: FiberKey, limit: Limit) -> (TimerKey, RaiseScope) {
        let number = self.next_number();
        let (pending_raise, scope) = match limit {
            Limit::Once { exception, message } => {
                let scope = RaiseScope::Deadline(number);
                (PendingRaise { exception, message, scope }, scope)
            }
            Limit::Repeated(exception) => {
                let scope = RaiseScope::Limit(number);
                (PendingRaise { exception, message: None, scope }, scope)
            }
        };
        (self.timers.insert(at, TimerAction::Deadline { fiber, pending_raise }), scope)
    }

    /// Makes the limit of a block movable. Returns a number for [`State::move_limit`].
    pub fn keep_limit(&mut self, fiber: FiberKey, timer: TimerKey, scope: RaiseScope) -> Option<u64> {
        let number = scope.deadline()?;
        self.limits.insert(number, (fiber, timer));
        Some(number)
    }

    /// Moves the limit of a block to another time. False if the block has ended, or the exception has been raised in
    /// it.
    pub fn move_limit(&mut self, number: u64, at: Instant, exception: PinnedValue) -> bool {
        let Some((fiber, timer)) = self.limits.get(&number).copied() else { return false };
        let scope = RaiseScope::Limit(number);
        let Some(record) = self.fibers.get(fiber) else { return false };
        let sent = record.pending_raises.iter().any(|sent| sent.scope == scope);
        if sent && !record.pending_raises.is_unraised(scope) {
            return false;
        }
        self.timers.cancel(timer);
        self.retract(fiber, scope);
        let pending_raise = PendingRaise { exception, message: None, scope };
        let moved = self.timers.insert(at, TimerAction::Deadline { fiber, pending_raise });
        self.limits.insert(number, (fiber, moved));
        true
    }

    /// The block of a limit has ended: the limit raises nothing any more.
    pub fn drop_limit(&mut self, key: FiberKey, timer: TimerKey, scope: RaiseScope) {
        let kept = scope.deadline().and_then(|number| self.limits.remove(&number));
        self.timers.cancel(kept.map_or(timer, |(_, moved)| moved));
        self.retract(key, scope);
    }

    /// A number for a [`RaiseScope`], higher than all earlier ones.
    pub fn next_number(&mut self) -> u64 {
        self.next_deadline += 1;
        self.next_deadline
    }

    /// The last number that [`State::next_number`] has returned.
    pub fn last_number(&self) -> u64 {
        self.next_deadline
    }
}
