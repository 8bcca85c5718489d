//! Exceptions on their way to fibers, and for how long they are meant.

use std::time::Instant;

use heddle_core::timers::TimerKey;

use super::{Alarm, Turns};
use crate::ruby::value::Held;
use crate::scheduler::fibers::{Delivery, FiberKey, Scope, State};
use crate::scheduler::wait::Wait;

impl Turns {
    /// Brings an exception on its way.
    pub fn deliver(&mut self, key: FiberKey, delivery: Delivery) {
        let running = self.running.map(|(_, running)| running);
        let Some(record) = self.fibers.get_mut(key) else { return };
        if record.state() == State::Running && running != Some(key) {
            // It has resumed another fiber, or left in a way of its own. Only `Fiber#raise` finds the right place.
            let fiber = record.fiber;
            self.add_stray(fiber, delivery);
        } else {
            record.deliveries.push(delivery);
            if record.state() == State::Runnable && record.wait == Wait::Preempted {
                // It has waited for the others long enough: somebody wants something of it.
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
        let record = self.fibers.get_mut(key)?;
        if let Some(stop) = self.stop.filter(|_| record.can_be_stopped()) {
            record.stopped = true;
            return Some(Delivery { exception: stop, message: None, scope: Scope::Fiber });
        }
        record.structure.shield.next(&record.deliveries).map(|index| record.deliveries.remove(index))
    }

    /// The fiber could not be interrupted by it: it is due in its next wait, unless it was meant for the last one.
    pub fn put_back(&mut self, key: FiberKey, delivery: Delivery) {
        if let Some(record) = self.fibers.get_mut(key).filter(|_| delivery.scope != Scope::Wait) {
            record.deliveries.insert(0, delivery);
        }
    }

    /// The exception of that one, without taking it.
    pub fn due_exception(&self, key: FiberKey) -> Option<Held> {
        let record = self.fibers.get(key)?;
        let next = || record.structure.shield.next(&record.deliveries).map(|index| record.deliveries[index].exception);
        self.stop.filter(|_| record.can_be_stopped()).or_else(next)
    }

    /// From now on `exception` is raised once in each fiber that waits, or will wait.
    pub fn stop_all(&mut self, exception: Held) {
        self.stop = Some(exception);
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

    /// Whether there are such.
    pub fn has_strays(&self) -> bool {
        !self.strays.is_empty()
    }

    /// All of them, for the garbage collector.
    pub fn strays(&self) -> impl Iterator<Item = &(Held, Delivery)> {
        self.strays.iter()
    }

    /// Makes exceptions void that were meant for what is over now.
    pub fn retract(&mut self, key: FiberKey, scope: Scope) {
        if let Some(record) = self.fibers.get_mut(key) {
            record.deliveries.retain(|delivery| delivery.scope != scope);
        }
        self.strays.retain(|(_, delivery)| delivery.scope != scope);
    }

    /// Sets a timer for the block of a `timeout_after`. Returns what names it.
    pub fn set_deadline(
        &mut self,
        at: Instant,
        fiber: FiberKey,
        exception: Held,
        message: Option<Held>,
    ) -> (TimerKey, Scope) {
        let scope = Scope::Deadline(self.next_number());
        let delivery = Delivery { exception, message, scope };
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
