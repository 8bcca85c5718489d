//! Time slices: which fiber gets the next one, what is to be done then, and when the current one ends.

use std::time::{Duration, Instant};

use heddle_core::explore::outside_wait::OutsideWait;
use heddle_core::queue::tick_spacing::SliceAge;

use super::State;
use super::observers::Event;
use crate::scheduler::record::FiberKey;
use crate::scheduler::state::fibers::Claimed;

impl State {
    /// Running → runnable: the fiber `starter` starts the fiber `key`, which becomes the current fiber and has its
    /// first time slice.
    pub fn start_first_slice(&mut self, starter: FiberKey, key: FiberKey, clock: fn() -> Instant) {
        let runs_next = self.exploration.as_mut().map(|exploration| exploration.continues_after_start());
        self.fibers.requeue_starter(starter, runs_next, clock);
        self.budget.renew();
        self.note(Event::Started(key));
        self.fibers.set_current(key);
    }

    /// The fiber runs although it was not picked: an exception was raised into it. It has a slice of its own, not what
    /// is left of that of the fiber before.
    pub fn run_unpicked(&mut self, key: FiberKey) {
        self.budget.renew();
        self.fibers.forget_slice();
        self.set_current(key);
    }

    /// Fibers have computed: woken fibers whose sleep has ended run next. Not in a test, where that would depend on the
    /// machine's speed.
    pub fn prefer_sleepers(&mut self) {
        if !self.is_tested() {
            self.fibers.prefer_sleepers();
        }
    }

    /// Whether the running fiber has to yield to another one.
    pub fn should_preempt(&mut self, now: Instant) -> bool {
        self.fibers.should_preempt(now) || self.has_deferred_raises()
    }

    /// For how long the running fiber has run at a tick. `short` is half of a tick's usual period.
    pub fn slice_age(&self, now: Instant, short: Duration) -> SliceAge {
        match self.fibers.queue().used(now) {
            Some(used) if used < short => SliceAge::Short,
            Some(_) => SliceAge::Long,
            None if self.budget.is_brief(now, short) => SliceAge::New,
            None => SliceAge::Unknown,
        }
    }

    /// The earliest time at which the running fiber may have to yield if nothing happens: when a timer expires, or
    /// when its time slice ends. `None` if that is unknown, since the kernel, a worker or a woken fiber may require it
    /// at any time.
    pub fn next_yield_at(&mut self, now: Instant) -> Option<Instant> {
        if !self.operations.is_empty() || self.fibers.queue().has_unpreempted() {
            return None;
        }
        let slice_ends = self.fibers.queue().slice_ends_at(now);
        Some(self.timers.next_deadline().map_or(slice_ends, |deadline| deadline.min(slice_ends)))
    }

    /// The next time slice begins. Returns whether timers and I/O have to be polled first: many slices have begun since
    /// the last poll, or the fibers in the queue compute, and will not poll for a while.
    #[inline(always)]
    pub fn begin_slice(&mut self) -> bool {
        let queue = self.fibers.queue();
        self.budget.start_slice(|| queue.len()) || queue.has_only_preempted()
    }

    /// What [`State::begin_slice`] has returned.
    pub fn should_poll(&self) -> bool {
        self.budget.should_poll(|| self.fibers.queue().len()) || self.fibers.queue().has_only_preempted()
    }

    /// Takes the first fiber off the run queue and makes it the current one.
    #[inline(always)]
    pub fn dequeue(&mut self) -> Option<Claimed> {
        self.budget.date_slice();
        if self.exploration.is_some() {
            self.choose_next();
        }
        let next = self.fibers.claim_next()?;
        self.note(Event::Dequeued(next.key));
        if self.has_many_fibers() {
            self.look_ahead();
        }
        self.fibers.set_claimed(&next);
        Some(next)
    }

    /// From now on the clock is a virtual one.
    pub fn stop_clock(&mut self, wait: OutsideWait) {
        self.clock.stop(wait);
        self.observers_mut();
    }

    /// Whether a test chooses the schedule, or commands the clock.
    pub fn is_tested(&self) -> bool {
        self.clock.is_virtual() || self.exploration.is_some()
    }

    /// The current fiber stops running, and no fiber was picked: the thread polls.
    pub fn end_slice(&mut self) {
        self.note(Event::Left);
    }

    /// The current fiber would have been preempted now if another one had been runnable.
    pub fn could_preempt(&mut self, now: Instant) {
        self.note(Event::Preemptible(now));
    }
}
