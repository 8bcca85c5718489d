//! Exceptions that are to be raised in fibers, and until when they are valid.

use heddle_core::queue::raise_phase::Observation;
use magnus::Value;

use super::{State, TimerAction};
use crate::ruby::error;
use crate::ruby::value::{Identity, PinnedValue};
use crate::scheduler::raise::{PendingRaise, RaisePoint, RaiseScope, Shield};
use crate::scheduler::record::{FiberKey, FiberState, Record};
use crate::scheduler::wait::Wait;

/// What is to be raised in a fiber next.
#[derive(Debug, Clone, Copy)]
pub enum Pending {
    /// The exception by which all fibers are asked to end.
    Stop,
    /// What was sent to the fiber, by its index in [`Record::pending_raises`].
    Sent(usize),
}

/// Where a fiber is that is at `point` unless it waits.
fn point_of(record: &Record, point: RaisePoint) -> RaisePoint {
    if record.is_waiting() { RaisePoint::Wait } else { point }
}

impl State {
    /// Sends an exception to a fiber: the fiber raises it in its next wait, or at a tick.
    pub fn send_raise(&mut self, key: FiberKey, pending_raise: PendingRaise) {
        if let Some(record) = self.fibers.get_mut(key) {
            record.pending_raises.push(pending_raise);
            self.raise_soon(key, pending_raise.scope);
        }
    }

    /// An exception with this scope is pending in the fiber, which is to raise it soon.
    fn raise_soon(&mut self, key: FiberKey, scope: RaiseScope) {
        let Some(record) = self.fibers.get(key) else { return };
        if self.is_elsewhere(key) {
            self.raises.add_elsewhere(key);
        } else if record.state() == FiberState::Runnable && record.wait == Wait::Preempted {
            // An exception is pending in the fiber, so it no longer waits among the preempted fibers.
            if scope.is_raised_at(RaisePoint::Program) {
                self.enqueue(key);
            }
        } else {
            self.wake(key);
        }
    }

    /// A timer wakes the fiber, perhaps since an exception that it has swallowed is pending again.
    pub fn wake_by_timer(&mut self, key: FiberKey) {
        if self.is_elsewhere(key) {
            self.raises.add_elsewhere(key);
        } else {
            self.wake(key);
        }
    }

    /// A fiber that is not managed enters a hook, and is not the fiber that the scheduler switched to last. So that
    /// one has resumed it, unless it has yielded to this one, which has resumed it before.
    pub fn note_resumer(&mut self, key: FiberKey) {
        if self.fibers.get(key).is_none_or(|record| record.managed || record.blocking) {
            return;
        }
        if let Some(resumer) = self.fibers.resumer()
            && !self.resumers(resumer).any(|other| other == key)
            && let Some(record) = self.fibers.get_mut(key)
        {
            record.resumed_by = Some(resumer);
        }
        let outermost = self.outermost(key);
        if let Some(record) = self.fibers.get_mut(outermost).filter(|_| outermost != key) {
            record.generator = Some(key);
        }
        self.raise_in_generator(key, RaisePoint::Program);
    }

    /// A fiber that is not managed is at `point`. What is pending in the fiber that has resumed it is raised in this
    /// one, if it parks.
    pub fn raise_in_generator(&mut self, key: FiberKey, point: RaisePoint) {
        let outermost = self.outermost(key);
        let is_raised_here =
            |record: &Record| record.pending_raises.next(record.task.shield, point, &self.timers).is_some();
        if outermost != key && self.fibers.get(outermost).is_some_and(is_raised_here) {
            self.raises.add_elsewhere(outermost);
        }
    }

    /// Whether the fiber has resumed another fiber, or has switched to one by itself.
    fn is_elsewhere(&self, key: FiberKey) -> bool {
        self.fibers.get(key).is_some_and(|record| record.state() == FiberState::Running) && !self.fibers.is_chosen(key)
    }

    /// The fiber that the scheduler has parked in place of this one: it is the last of the fibers that each have
    /// resumed the next one, and this one is among those.
    fn parked_generator(&self, key: FiberKey) -> Option<FiberKey> {
        let generator = self.fibers.get(self.outermost(key))?.generator?;
        let is_parked = self.fibers.get(generator)?.is_parked();
        (is_parked && self.resumers(generator).any(|resumer| resumer == key)).then_some(generator)
    }

    /// Passes what is pending in a fiber that has resumed another one on to the one that is parked instead. That raises
    /// it as what was sent to it, and so not before it can. Returns an exception that is pending in a fiber which has
    /// switched to another one by itself, and that fiber: only `Fiber#raise` finds the right place for it.
    #[cold]
    pub fn pass_on_raises(&mut self) -> Option<(PinnedValue, PendingRaise)> {
        while let Some(key) = self.raises.take_elsewhere() {
            // A fiber that has come back by now raises it itself.
            if !self.is_elsewhere(key) {
                continue;
            }
            if let Some(generator) = self.parked_generator(key) {
                self.pass_on(key, generator);
            } else if self.has_yielded(key) {
                // It raises it when it is resumed. Until then the fiber runs to which it has yielded.
            } else if let Some(taken) = self.take_to_pass_on(key, RaisePoint::Program)
                && let Some(record) = self.fibers.get(key)
            {
                // There may be others.
                self.raises.add_elsewhere(key);
                return Some((record.fiber, taken));
            }
        }
        None
    }

    fn pass_on(&mut self, key: FiberKey, generator: FiberKey) {
        let is_waiting = self.fibers.get(generator).is_some_and(Record::is_waiting);
        let point = if is_waiting { RaisePoint::Hook } else { RaisePoint::Program };
        while let Some(taken) = self.take_to_pass_on(key, point) {
            self.send_raise(generator, taken);
        }
    }

    fn take_to_pass_on(&mut self, key: FiberKey, point: RaisePoint) -> Option<PendingRaise> {
        let mut taken = self.take_from_record(key, point)?;
        taken.sent_to = Some(key);
        Some(taken)
    }

    /// Whether the fiber, which does not run, has yielded to the fiber that has resumed it: that one can run, or has
    /// resumed another one.
    fn has_yielded(&self, key: FiberKey) -> bool {
        let outermost = self.outermost(key);
        outermost != key && (!self.is_elsewhere(outermost) || self.parked_generator(outermost).is_some())
    }

    /// A hook of the fiber ends. What the fiber could not raise in it, and was sent to a fiber that has resumed this
    /// one, is pending in that fiber again. That fiber alone knows whether the block has ended that it is meant for.
    #[cold]
    pub fn return_raises(&mut self, key: FiberKey) {
        while let Some(held) = self.fibers.get_mut(key).and_then(|record| record.pending_raises.take_last_for_resumer())
        {
            self.send_back(held);
        }
    }

    fn send_back(&mut self, pending_raise: PendingRaise) {
        if let Some(key) = self.restore_raise(pending_raise) {
            self.raise_soon(key, pending_raise.scope);
        }
    }

    /// An exception is pending again in the fiber that it was sent to, unless its scope has ended. Returns the fiber.
    pub fn restore_raise(&mut self, mut pending_raise: PendingRaise) -> Option<FiberKey> {
        let key = pending_raise.sent_to.take()?;
        let record = self.fibers.get_mut(key)?;
        let has_ended = if pending_raise.is_repeated() {
            !record.pending_raises.repeats(pending_raise.scope)
        } else {
            pending_raise.scope == RaiseScope::Wait
        };
        if has_ended {
            return None;
        }
        record.pending_raises.push_first(pending_raise);
        Some(key)
    }

    /// Whether an exception may be pending in a fiber: exceptions have been sent to it, or all fibers are asked to end.
    #[inline]
    pub fn may_have_raise(&self, key: FiberKey) -> bool {
        self.fibers.get(key).is_some_and(|record| !record.pending_raises.is_empty() || self.raises.is_stopping())
    }

    /// Takes the next exception that is pending in a fiber, which is at `point` unless it waits.
    #[cold]
    pub fn take_pending_raise_at(&mut self, key: FiberKey, point: RaisePoint) -> Option<PendingRaise> {
        let taken = if let Some(stop) = self.raises.stop().filter(|_| self.must_be_stopped(key)) {
            let end = PendingRaise::new(stop, None, RaiseScope::End);
            self.end_is_raised(key, end);
            end
        } else {
            self.take_from_record(key, point)?
        };
        self.note_raise(key);
        Some(taken)
    }

    /// An exception is raised in a fiber.
    pub fn note_raise(&mut self, key: FiberKey) {
        let outermost = self.outermost(key);
        if let Some(record) = self.fibers.get_mut(outermost) {
            record.may_unwind = true;
        }
    }

    /// Whether an exception may unwind the running fiber, since one has been raised in it, or in its generators, after
    /// the last tick outside of hooks. Ruby checks interrupts while it raises an exception, at the end of a call of its
    /// `exception`, and before it leaves each frame: if a tick raised another one there, the first one would be lost.
    pub fn take_unwinding(&mut self, running: Value) -> bool {
        let outermost = self.fibers.find_running(running).map(|key| self.outermost(key));
        let record = outermost.and_then(|key| self.fibers.get_mut(key));
        record.is_some_and(|record| std::mem::take(&mut record.may_unwind))
    }

    /// What is to be raised next in a fiber, which computes, but for exceptions of classes that are `masked`. Returns the
    /// exception, too, or its class.
    pub fn find_pending(&self, key: FiberKey, masked: &[Identity]) -> Option<(Pending, Value)> {
        let is_masked = |exception| masked.contains(&error::class_of(exception).into());
        let stop = self.raises.stop().filter(|stop| self.must_be_stopped(key) && !is_masked(*stop));
        if let Some(stop) = stop {
            return Some((Pending::Stop, stop));
        }
        let record = self.fibers.get(key)?;
        let (shield, point) = (record.task.shield, point_of(record, RaisePoint::Program));
        let is_let_through = |index| !is_masked(record.pending_raises.exception(index));
        let index = record.pending_raises.next_that(shield, point, &self.timers, is_let_through)?;
        Some((Pending::Sent(index), record.pending_raises.exception(index)))
    }

    /// Takes what [`State::find_pending`] has found.
    pub fn take_found(&mut self, key: FiberKey, found: Pending) -> Option<PendingRaise> {
        match found {
            Pending::Stop => self.take_pending_raise_at(key, RaisePoint::Program),
            Pending::Sent(index) => {
                self.note_raise(key);
                self.take_at(key, index)
            }
        }
    }

    fn take_from_record(&mut self, key: FiberKey, point: RaisePoint) -> Option<PendingRaise> {
        let record = self.fibers.get(key)?;
        let index = record.pending_raises.next(record.task.shield, point_of(record, point), &self.timers)?;
        self.take_at(key, index)
    }

    fn take_at(&mut self, key: FiberKey, index: usize) -> Option<PendingRaise> {
        let pending_raise = self.fibers.get_mut(key)?.pending_raises.take(index);
        if pending_raise.is_repeated_as(RaiseScope::End) {
            self.note_end_raised(key);
        }
        Some(pending_raise)
    }

    /// Like [`State::take_pending_raise_at`], unless the exception has been raised before.
    pub fn take_new_raise(&mut self, key: FiberKey, point: RaisePoint) -> Option<PendingRaise> {
        let record = self.fibers.get(key)?;
        let next = record.pending_raises.next(record.task.shield, point_of(record, point), &self.timers);
        let is_new = self.must_be_stopped(key) || next.is_some_and(|index| record.pending_raises.is_new(index));
        if is_new { self.take_pending_raise_at(key, point) } else { None }
    }

    /// The exception could not be raised in the fiber: it is raised in the fiber's next wait, unless it was meant for
    /// the last one.
    pub fn put_back_raise(&mut self, key: FiberKey, pending_raise: PendingRaise) {
        if pending_raise.scope == RaiseScope::Wait {
            return;
        }
        let responsible_fiber = self.responsible_fiber(key);
        if pending_raise.is_repeated_as(RaiseScope::End) && responsible_fiber != key {
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

    /// The next exception that is pending in a fiber, without taking it.
    pub fn pending_exception(&self, key: FiberKey) -> Option<Value> {
        self.find_pending(key, &[]).map(|(_, exception)| exception)
    }

    /// Asks all fibers to end: from now on `exception` is raised in each fiber that waits, or will wait.
    pub fn stop_all(&mut self, exception: Value) {
        self.raises.begin_stopping(exception);
        let stoppable: Vec<FiberKey> =
            self.fibers.iter().filter(|(_, record)| record.has_grace()).map(|(key, _)| key).collect();
        stoppable.into_iter().for_each(|key| self.begin_grace(key));
        let waiting: Vec<FiberKey> = self
            .fibers
            .iter()
            .filter(|(_, record)| record.state() == FiberState::Waiting && record.wait != Wait::Drain)
            .map(|(key, _)| key)
            .collect();
        waiting.into_iter().for_each(|key| self.wake(key));
    }

    /// Gives the fiber another shield, and returns the one that it had.
    pub fn replace_shield(&mut self, key: FiberKey, shield: Shield) -> Shield {
        match self.fibers.get_mut(key) {
            Some(record) => std::mem::replace(&mut record.task.shield, shield),
            None => Shield::default(),
        }
    }

    /// Whether there are deferred raises, or fibers whose grace period is over. The next fiber that parks handles
    /// both.
    pub fn has_deferred_raises(&self) -> bool {
        self.raises.has_deferred() || self.endings.has_overdue()
    }

    /// Removes the exceptions with this scope, which has ended.
    pub fn retract(&mut self, key: FiberKey, scope: RaiseScope) {
        if let Some(record) = self.fibers.get_mut(key) {
            record.pending_raises.retract(scope, &mut self.timers);
        }
    }

    /// See [`RaisePhase::observe`](heddle_core::queue::raise_phase::RaisePhase::observe).
    pub fn observe_raise(&mut self, key: FiberKey, scope: RaiseScope, observed: Observation, action: TimerAction) {
        let now = self.clock.now();
        if let Some(record) = self.fibers.get_mut(key) {
            record.pending_raises.observe(scope, observed, (&mut self.timers, now), action);
        }
    }
}
