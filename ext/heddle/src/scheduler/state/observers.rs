//! What observes the fibers: the timing of waits and slices, the times by name, a trace, and the clock of a test. Each
//! change of what a fiber does is told once, as an [`Event`]. Where nothing observes, that is one check.

use std::sync::Arc;
use std::time::Instant;

use heddle_core::observe::stall_watch::StallWatch;
use heddle_core::observe::timing::{LongSlice, SliceTiming};

use super::State;
use super::accounts::Accounts;
use super::tracing::Tracing;
use crate::scheduler::record::{FiberKey, FiberState, Record};
use crate::scheduler::state::fibers::Fibers;
use crate::scheduler::wait::Wait;

/// A change of what a fiber does. The current fiber is the one before the change.
#[derive(Debug, Clone, Copy)]
pub enum Event {
    /// The fiber, which has waited, is runnable.
    Woken(FiberKey),
    /// The fiber was dequeued, and runs.
    Dequeued(FiberKey),
    /// The current fiber starts this one, which runs.
    Started(FiberKey),
    /// The fiber runs without a slice of its own, or continues.
    Continued(FiberKey),
    /// The current fiber is preempted: it leaves next.
    Preempted(FiberKey),
    /// No fiber runs until the next one is dequeued: the thread polls.
    Left,
    /// A tick has found that the current fiber would have been preempted if another one had been runnable.
    Preemptible(Instant),
    /// The fiber's record goes.
    Gone(FiberKey),
}

/// See the module.
#[derive(Default)]
pub struct Observers {
    /// How long fibers wait for their turn and run, if that is timed. It is while there are [`Observers::accounts`].
    pub(super) timing: Option<SliceTiming>,
    /// What the fibers spend their time on, if that is counted.
    pub(super) accounts: Option<Accounts>,
    /// Where the records of a trace go, while there is one.
    pub(super) trace: Option<Tracing>,
}

/// A fiber that yields, or starts another one, waits for its turn from now on. One that is preempted does not: the
/// waits from a wake-up on are timed.
fn begin_turn_wait(record: &mut Record, now: Instant) {
    // One that has yielded may be running already, as no other fiber was runnable.
    let is_queued = record.state() == FiberState::Runnable && record.wait != Wait::Preempted;
    if is_queued || record.wait == Wait::Yielded {
        record.runnable_since.get_or_insert(now);
    }
}

impl Observers {
    fn observe(&mut self, event: Event, state: &mut State) {
        match event {
            Event::Woken(key) => self.woken(key, &mut state.fibers),
            Event::Dequeued(next) => {
                state.clock.end_idle_time();
                self.replace(next, true, state);
            }
            Event::Started(next) => {
                if let Some(trace) = &self.trace {
                    trace.wake(next);
                }
                self.replace(next, true, state);
            }
            Event::Continued(next) => self.replace(next, false, state),
            Event::Preempted(key) => {
                if let Some(accounts) = &mut self.accounts {
                    accounts.preempted(&state.fibers, key);
                }
            }
            Event::Left => self.left(state),
            Event::Preemptible(now) => {
                let long = self.timing.as_mut().and_then(|timing| timing.could_preempt(now));
                long.inspect(|long| self.report(*long, state));
            }
            Event::Gone(key) => {
                if let Some(accounts) = &mut self.accounts {
                    accounts.end(key);
                }
                if let Some(trace) = &mut self.trace {
                    trace.end(key);
                }
            }
        }
    }

    fn woken(&mut self, key: FiberKey, fibers: &mut Fibers) {
        if let Some(trace) = &self.trace {
            trace.wake(key);
        }
        if self.timing.is_some()
            && let Some(record) = fibers.get_mut(key)
        {
            let now = Instant::now();
            record.runnable_since = Some(now);
            if let Some(accounts) = &mut self.accounts {
                accounts.woken(record.account, now);
            }
        }
    }

    /// `next` takes the place of the current fiber, with a slice of its own or within the present one.
    fn replace(&mut self, next: FiberKey, has_slice: bool, state: &mut State) {
        let now = Instant::now();
        if has_slice {
            self.end_slice(now, state);
        }
        let since = state.fibers.get_mut(next).and_then(|record| record.runnable_since.take());
        if let Some(timing) = self.timing.as_mut().filter(|_| has_slice) {
            since.inspect(|since| timing.waited(*since, now));
            timing.begin_slice(now);
        }
        let left = state.fibers.current().and_then(|(_, left)| state.fibers.get(left));
        if let Some(accounts) = &mut self.accounts {
            let began = self.timing.as_ref().and_then(SliceTiming::slice_began);
            accounts.switch(&state.fibers, left, next, began.unwrap_or(now));
        }
        if let Some(trace) = self.trace.as_mut().filter(|trace| has_slice || !trace.runs(next)) {
            trace.switch(left, next);
        }
    }

    fn left(&mut self, state: &mut State) {
        let now = Instant::now();
        self.end_slice(now, state);
        if self.accounts.as_ref().is_some_and(|accounts| accounts.until.is_some_and(|until| until < now)) {
            self.end_accounts();
        }
        let Some(left) = state.fibers.current().and_then(|(_, left)| state.fibers.get(left)) else { return };
        if let Some(accounts) = &mut self.accounts {
            accounts.left(&state.fibers, left, None, now);
        }
        if let Some(trace) = &mut self.trace {
            trace.leave(left);
        }
    }

    /// Counts no times any more, and forgets what was counted.
    pub(super) fn end_accounts(&mut self) {
        if self.accounts.take().is_some_and(|accounts| accounts.times_slices) {
            self.timing = None;
        }
    }

    fn end_slice(&mut self, now: Instant, state: &mut State) {
        let Some(timing) = &mut self.timing else { return };
        if let Some(record) = state.fibers.current().and_then(|(_, left)| state.fibers.get_mut(left)) {
            begin_turn_wait(record, now);
        }
        if let Some(long) = timing.end_slice(now) {
            self.report(long, state);
        }
    }

    /// Reports a stall that has just ended, with the fibers that it has delayed: those that were woken or have yielded,
    /// and those whose timers have expired.
    fn report(&self, mut long: LongSlice, state: &State) {
        let is_delayed = |record: &Record| record.wait != Wait::Nothing && record.state() != FiberState::Lost;
        let delayed = state.fibers.iter().filter(|(_, record)| is_delayed(record));
        delayed.filter_map(|(_, record)| record.runnable_since).for_each(|since| long.delayed(since));
        state.timers.expired(long.at()).for_each(|deadline| long.delayed(deadline));
        if let Some(trace) = &self.trace {
            trace.stall(&long);
        }
        self.timing.iter().for_each(|timing| timing.post(long));
    }
}

impl State {
    /// Tells the observers, if there are any.
    #[inline(always)]
    pub(super) fn note(&mut self, event: Event) {
        if self.observers.is_some() {
            self.tell_observers(event);
        }
    }

    #[inline(never)]
    fn tell_observers(&mut self, event: Event) {
        if let Some(mut observers) = self.observers.take() {
            observers.observe(event, self);
            self.observers = Some(observers);
            self.release_observers();
        }
    }

    /// What observes. From now on it is told of events.
    pub(super) fn observers_mut(&mut self) -> &mut Observers {
        self.observers.get_or_insert_default()
    }

    /// An observer has ended. If it was the last one, events are not told any more.
    pub(super) fn release_observers(&mut self) {
        let idle = matches!(self.observers.as_deref(), Some(Observers { timing: None, accounts: None, trace: None }));
        if idle && !self.clock.is_virtual() {
            self.observers = None;
        }
    }

    /// How long fibers wait for their turn, and run, if that is timed.
    pub fn timing(&self) -> Option<&SliceTiming> {
        self.observers.as_ref()?.timing.as_ref()
    }

    /// Where the records of a trace go, while there is one.
    #[inline]
    pub fn trace(&self) -> Option<&Tracing> {
        self.observers.as_ref()?.trace.as_ref()
    }

    /// Times waits and slices from now on, unless they are timed. Returns whether they were not.
    pub(super) fn begin_timing(&mut self) -> bool {
        let begins = self.timing().is_none();
        if begins {
            self.observers_mut().timing = Some(SliceTiming::default());
            let now = Instant::now();
            for record in self.fibers.iter_mut() {
                record.runnable_since = None;
                begin_turn_wait(record, now);
            }
        }
        begins
    }

    /// Times waits and slices from now on, and reports long slices to `watch`.
    pub fn time_slices(&mut self, watch: Option<Arc<StallWatch>>) {
        self.begin_timing();
        self.keep_timing();
        self.timing_mut().into_iter().for_each(|timing| timing.watch(watch.clone()));
    }

    pub(super) fn timing_mut(&mut self) -> Option<&mut SliceTiming> {
        self.observers.as_mut()?.timing.as_mut()
    }
}
