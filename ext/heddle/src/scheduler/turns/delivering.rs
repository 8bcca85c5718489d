//! Exceptions on their way to fibers, and for how long they are meant.

use std::time::Instant;

use heddle_core::timers::TimerKey;

use super::{Alarm, Turns};
use crate::ruby::value::Held;
use crate::scheduler::fibers::{Delivery, FiberKey, Limit, Scope, State};
use crate::scheduler::pending_raises::Sighting;
use crate::scheduler::wait::Wait;

impl Turns {
    /// Brings an exception on its way.
    pub fn deliver(&mut self, key: FiberKey, delivery: Delivery) {
        let running = self.running.map(|(_, running)| running);
        let Some(record) = self.fibers.get_mut(key) else { return };
        if record.state() == State::Running && running != Some(key) {
            // It has resumed another fiber, or left in a way of its own. Only `Fiber#raise` finds the right place.
            let fiber = record.fiber;
            if delivery.scope.is_repeated() {
                record.deliveries.push_in_flight(delivery);
            }
            self.add_stray(fiber, delivery);
            if delivery.scope == Scope::End {
                self.note_end_raised(key);
            }
        } else {
            record.deliveries.push(delivery);
            if record.state() == State::Runnable && record.wait == Wait::Preempted {
                // It has waited for the others long enough: an exception is due in it.
                self.enqueue(key);
            } else {
                self.wake(key);
            }
        }
    }

    /// The next exception that is due in a fiber.
    #[inline]
    pub fn take_delivery(&mut self, key: FiberKey) -> Option<Delivery> {
        let record = self.fibers.get_mut(key)?;
        if record.deliveries.is_empty() && self.stop.is_none() {
            return None;
        }
        self.take_due_delivery(key)
    }

    #[cold]
    fn take_due_delivery(&mut self, key: FiberKey) -> Option<Delivery> {
        if let Some(stop) = self.stop.filter(|_| self.is_to_be_stopped(key)) {
            let end = Delivery { exception: stop, message: None, scope: Scope::End };
            self.end_is_raised(key, end);
            return Some(end);
        }
        let record = self.fibers.get_mut(key)?;
        let index = record.deliveries.next(record.structure.shield, record.is_waiting(), &self.timers)?;
        let delivery = record.deliveries.take(index);
        if delivery.scope == Scope::End {
            self.note_end_raised(key);
        }
        Some(delivery)
    }

    /// The next exception that is due in a fiber, unless it has been raised before.
    pub fn take_new_delivery(&mut self, key: FiberKey) -> Option<Delivery> {
        let record = self.fibers.get(key)?;
        let next = record.deliveries.next(record.structure.shield, record.is_waiting(), &self.timers);
        let is_new = self.is_to_be_stopped(key) || next.is_some_and(|index| record.deliveries.is_new(index));
        if is_new { self.take_due_delivery(key) } else { None }
    }

    /// The fiber could not be interrupted by it: it is due in its next wait, unless it was meant for the last one.
    pub fn put_back(&mut self, key: FiberKey, delivery: Delivery) {
        if delivery.scope == Scope::Wait {
            return;
        }
        let answerable = self.answerable(key);
        if delivery.scope == Scope::End && answerable != key {
            // What a generator was not interrupted by is for its next wait, or for that of the fiber that resumed it.
            for told in [key, answerable] {
                if let Some(record) = self.fibers.get_mut(told) {
                    record.stopped = false;
                    record.deliveries.retract(Scope::End, &mut self.timers);
                }
            }
        } else if let Some(record) = self.fibers.get_mut(key) {
            record.deliveries.push_first(delivery);
        }
    }

    /// The exception of that one, without taking it.
    pub fn due_exception(&self, key: FiberKey) -> Option<Held> {
        if self.is_to_be_stopped(key) {
            return self.stop;
        }
        let record = self.fibers.get(key)?;
        let next = record.deliveries.next(record.structure.shield, record.is_waiting(), &self.timers);
        next.map(|index| record.deliveries.exception(index))
    }

    /// From now on `exception` is raised in each fiber that waits, or will wait.
    pub fn stop_all(&mut self, exception: Held) {
        self.stop = Some(exception);
        let told: Vec<FiberKey> =
            self.fibers.iter().filter(|(_, record)| record.can_be_stopped()).map(|(key, _)| key).collect();
        told.into_iter().for_each(|key| self.begin_grace(key));
        let waiting: Vec<FiberKey> = self
            .fibers
            .iter()
            .filter(|(_, record)| record.state() == State::Waiting && record.wait != Wait::Drain)
            .map(|(key, _)| key)
            .collect();
        waiting.into_iter().for_each(|key| self.wake(key));
    }

    /// Whether all are being told to end.
    pub fn is_stopping(&self) -> bool {
        self.stop.is_some()
    }

    /// The end of [`Turns::stop_all`].
    pub fn end_stopping(&mut self) {
        self.stop = None;
    }

    /// An exception for a fiber that is suspended, but not by us.
    pub fn add_stray(&mut self, fiber: Held, delivery: Delivery) {
        self.strays.push((fiber, delivery));
    }

    /// The next exception for a fiber that is suspended, but not by us.
    pub fn take_stray(&mut self) -> Option<(Held, Delivery)> {
        self.strays.pop()
    }

    /// Whether there are such, or fibers whose grace is over: whichever fiber parks next sees to both.
    pub fn has_strays(&self) -> bool {
        !self.strays.is_empty() || !self.overdue.is_empty()
    }

    /// All of them, for the garbage collector.
    pub fn strays(&self) -> impl Iterator<Item = &(Held, Delivery)> {
        self.strays.iter()
    }

    /// Makes exceptions void that were meant for what is over now.
    pub fn retract(&mut self, key: FiberKey, scope: Scope) {
        if let Some(record) = self.fibers.get_mut(key) {
            record.deliveries.retract(scope, &mut self.timers);
        }
        self.strays.retain(|(_, delivery)| delivery.scope != scope);
    }

    /// See [`PendingRaises::update`](crate::scheduler::pending_raises::PendingRaises::update).
    pub fn update_raise(&mut self, key: FiberKey, scope: Scope, found: Sighting, alarm: Alarm) {
        if let Some(record) = self.fibers.get_mut(key) {
            record.deliveries.update(scope, found, &mut self.timers, alarm);
        }
    }

    /// Sets a timer for the block of a `timeout_after`. Returns what names it.
    pub fn set_deadline(&mut self, at: Instant, fiber: FiberKey, limit: Limit) -> (TimerKey, Scope) {
        let number = self.next_number();
        let (delivery, scope) = match limit {
            Limit::Once { exception, message } => {
                let scope = Scope::Deadline(number);
                (Delivery { exception, message, scope }, scope)
            }
            Limit::Repeated(exception) => {
                let scope = Scope::Limit(number);
                (Delivery { exception, message: None, scope }, scope)
            }
        };
        (self.timers.insert(at, Alarm::Deadline { fiber, delivery }), scope)
    }

    /// A number for a [`Scope`], higher than all before.
    pub fn next_number(&mut self) -> u64 {
        self.next_deadline += 1;
        self.next_deadline
    }

    /// The last of these.
    pub fn last_number(&self) -> u64 {
        self.next_deadline
    }
}
