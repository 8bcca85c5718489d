//! Time slices: which fiber gets the next one, what is to be done then, and when the current one ends.

use std::sync::Arc;
use std::time::Instant;

use heddle_core::stall_watch::StallWatch;
use heddle_core::timing::Timing;

use super::State;
use crate::scheduler::fibers::{Claimed, FiberKey};
use crate::scheduler::prefetch_hints;

impl State {
    /// A new fiber starts: it becomes the current fiber, with a new time slice.
    pub fn start_first_slice(&mut self, key: FiberKey) {
        self.queue.reset_slice();
        self.note_stall();
        if let Some(trace) = &self.trace {
            trace.wake(key);
        }
        self.set_current(key);
    }

    /// Whether the running fiber has to yield to another one.
    pub fn should_preempt(&mut self, now: Instant) -> bool {
        self.queue.should_preempt(now) || self.has_deferred_raises()
    }

    /// The earliest time at which the running fiber may have to yield if nothing happens: when a timer expires, or
    /// when its time slice ends. `None` if that is unknown, since the kernel, a worker or a woken fiber may require it
    /// at any time.
    pub fn next_due_at(&mut self, now: Instant) -> Option<Instant> {
        if self.operations.len() > 0 || self.queue.has_woken() {
            return None;
        }
        let slice_ends = self.queue.slice_ends_at(now);
        Some(self.timers.next_deadline().map_or(slice_ends, |deadline| deadline.min(slice_ends)))
    }

    /// Takes the first fiber off the run queue and makes it the current one.
    #[inline(always)]
    pub fn dequeue(&mut self) -> Option<Claimed> {
        let fibers = &mut self.fibers;
        let next = self.queue.pop(
            #[inline(always)]
            |(key, epoch)| fibers.claim(*key, *epoch),
        )?;
        // A timed queue and a trace set the number to zero, so that this costs no second comparison.
        if self.fibers.len() > self.few_fibers {
            self.attend(next.key);
        }
        self.current = Some((next.fiber, next.key));
        Some(next)
    }

    /// What is to be done at a switch if there are many fibers, or if slices are timed or traced.
    #[inline(never)]
    fn attend(&mut self, next: FiberKey) {
        self.note_stall();
        self.tell_name(next);
        if self.trace.is_some() {
            self.trace_switch(next);
        }
        if prefetch_hints::are_many(self.fibers.len()) {
            self.look_ahead(next);
        }
    }

    /// Times waits and slices from now on, and reports long slices to `watch`.
    pub fn time_slices(&mut self, watch: Option<Arc<StallWatch>>) {
        if self.queue.timing().is_none() {
            self.queue.set_timed(true);
        }
        self.few_fibers = 0;
        if let Some(timing) = self.queue.timing_mut() {
            timing.watch(watch);
        }
    }

    /// A fiber has got a name, or lost it.
    pub fn name(&mut self, key: FiberKey, name: Option<Arc<str>>) {
        if let Some(record) = self.fibers.get_mut(key) {
            record.name = name;
        }
        if self.current.is_some_and(|(_, current)| current == key) {
            self.tell_name(key);
        }
    }

    /// Tells the watching thread, which cannot ask Ruby, what the fiber is called that runs now.
    pub(super) fn tell_name(&self, key: FiberKey) {
        if let Some(watch) = self.queue.timing().and_then(Timing::watching) {
            watch.set_fiber_name(self.fibers.get(key).and_then(|record| record.name.clone()));
        }
    }

    /// The current fiber stops running, and no fiber was picked: the thread polls.
    pub fn end_slice(&mut self) {
        if self.few_fibers == 0 {
            self.queue.end_slice();
            self.note_stall();
            self.trace_leave();
        }
    }

    /// The current fiber would have been preempted now if another one had been due.
    pub fn could_preempt(&mut self, now: Instant) {
        if let Some(timing) = self.queue.timing_mut() {
            timing.could_preempt(now);
            self.note_stall();
        }
    }

    /// Reports a stall that has just ended, with the fibers that it has delayed: those in the queue, and those whose
    /// timers have expired.
    fn note_stall(&mut self) {
        let Some(timing) = self.queue.timing_mut() else { return };
        if let Some(mut long) = timing.take_long_slice() {
            self.timers.due(long.at()).for_each(|deadline| long.delayed(deadline));
            if let Some(trace) = &self.trace {
                trace.stall(&long);
            }
            timing.post(long);
        }
    }

    /// Prefetches the memory of the fibers that run after `next`.
    fn look_ahead(&mut self, next: FiberKey) {
        let leaving = self.current.map(|(_, leaving)| leaving);
        if let Some(record) = self.fibers.get(next).map(|record| record.prefetch_hints.record())
            && let Some(leaving) = leaving.and_then(|leaving| self.fibers.get_mut(leaving))
        {
            leaving.prefetch_hints.leave(record);
        }
        if let Some(record) = self.queue.upcoming(0).and_then(|(key, _)| self.fibers.get(*key)) {
            record.prefetch_hints.prefetch(record.begun.stack);
        }
        // The line above reads that record two switches later.
        if let Some((key, _)) = self.queue.upcoming(2) {
            self.fibers.prefetch(*key);
        }
    }
}
