//! How a hook waits for an event, and leaves the wait whatever happens meanwhile.

use std::time::{Duration, Instant};

use heddle_core::queue::raise_phase::Observation;
use heddle_core::queue::timers::TimerKey;
use magnus::{Error, RClass, Ruby, Value, prelude::*};

use super::Scheduler;
use super::raise::{Limit, RaisePoint, RaiseScope};
use super::record::FiberKey;
use super::state::{State, TimerAction};
use super::wait::Wait;
use crate::ruby::constant::Constant;
use crate::ruby::value::same;
use crate::ruby::{error, fiber, time};

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome<T> {
    /// The event has come.
    Done(T),
    /// The deadline has passed before that.
    TimedOut,
}

/// The run of a test that chooses the schedule.
pub static EXPLORED_RUN: Constant = Constant::new(&["Heddle", "Testing", "Run"]);

/// A duration that is longer than any program runs.
pub const FOR_EVER: Duration = Duration::from_secs(60 * 60 * 24 * 365 * 100);

impl Scheduler {
    /// When a wait of `timeout` that begins now ends; `None` for a wait without end.
    pub fn deadline_after(&self, timeout: Option<Duration>) -> Option<Instant> {
        timeout.filter(|timeout| *timeout < FOR_EVER).map(|timeout| self.state.borrow().clock.now() + timeout)
    }

    /// When a wait for an IO with this timeout, which may be nil, ends, if it begins now.
    ///
    /// # Errors
    /// As [`time::interval`].
    #[inline]
    pub fn deadline_of(&self, timeout: Value) -> Result<Option<Instant>, Error> {
        if timeout.is_nil() { Ok(None) } else { time::interval(timeout).map(|limit| self.deadline_after(Some(limit))) }
    }

    /// Waits until `done` returns a value. `done` is called each time before the fiber parks, and must not call Ruby.
    ///
    /// # Errors
    /// The error that was raised into the fiber. `done` is checked first: a wake-up that Ruby has passed to this fiber
    /// alone (a mutex, an element of a queue) must not get lost because a timeout came right after it.
    #[inline(always)]
    pub fn wait<T>(
        &self,
        ruby: &Ruby,
        key: FiberKey,
        wait: Wait,
        deadline: Option<Instant>,
        mut done: impl FnMut(&mut State) -> Option<T>,
    ) -> Result<Outcome<T>, Error> {
        let mut value = None;
        self.wait_until(ruby, key, wait, deadline, &mut |state| {
            value = done(state);
            value.is_some()
        })?;
        Ok(value.map_or(Outcome::TimedOut, Outcome::Done))
    }

    /// [`Scheduler::wait`], until `done` returns true or the deadline has passed. Each waiting fiber has this
    /// function's frame on its stack, so it holds little, and [`Scheduler::park_with`] is inlined.
    #[inline(never)]
    pub fn wait_until(
        &self,
        ruby: &Ruby,
        key: FiberKey,
        wait: Wait,
        deadline: Option<Instant>,
        done: &mut dyn FnMut(&mut State) -> bool,
    ) -> Result<(), Error> {
        let (outer, timer) = self.begin_wait(ruby, key, wait, deadline);
        let result = loop {
            let next = {
                let mut state = self.state.borrow_mut();
                if done(&mut state) {
                    break Ok(());
                }
                if state.may_have_raise(key) && state.pending_exception(key).is_some() {
                    drop(state);
                    break self.raise_pending_at(key, RaisePoint::Program);
                }
                if timer.is_some_and(|timer| !state.timers.is_pending(timer)) {
                    break Ok(());
                }
                state.set_waiting(key);
                self.pick_next(&mut state, key)
            };
            let parked = self.park_with(ruby, key, next);
            if let Err(error) = parked {
                break Err(error);
            }
        };
        let mut state = self.state.borrow_mut();
        if let Some(timer) = timer {
            state.timers.cancel(timer);
        }
        state.end_wait(key, outer);
        result
    }

    /// Returns what the fiber waited for until then, and the timer of the deadline.
    #[inline]
    fn begin_wait(
        &self,
        ruby: &Ruby,
        key: FiberKey,
        wait: Wait,
        deadline: Option<Instant>,
    ) -> (Option<Wait>, Option<TimerKey>) {
        let (begun, timer) = {
            let mut state = self.state.borrow_mut();
            let begun = state.begin_wait(key, wait);
            (begun, deadline.map(|deadline| state.timers.insert(deadline, TimerAction::Wake(key))))
        };
        if begun.is_some_and(|(_, may_have_raises)| may_have_raises) || self.may_have_own() {
            self.collect_raises(ruby, key);
        }
        (begun.map(|(outer, _)| outer), timer)
    }

    /// What the fiber has raised in its thread, and what is pending in the fiber that has resumed it, is raised in this
    /// wait, too.
    #[cold]
    #[inline(never)]
    fn collect_raises(&self, ruby: &Ruby, key: FiberKey) {
        self.send_own(ruby, key);
        self.state.borrow_mut().raise_in_generator(key, RaisePoint::Hook);
        self.detect_swallowed(key);
    }

    /// Raises the next exception that is pending in the fiber, which is in a hook, if there is one.
    #[inline]
    pub fn raise_pending(&self, key: FiberKey) -> Result<(), Error> {
        if self.state.borrow().may_have_raise(key) { self.raise_next_pending(key) } else { Ok(()) }
    }

    #[cold]
    fn raise_next_pending(&self, key: FiberKey) -> Result<(), Error> {
        self.detect_swallowed(key);
        self.raise_pending_at(key, RaisePoint::Hook)
    }

    /// Not inlined: the exception has no place in the frame of each fiber that waits.
    #[cold]
    #[inline(never)]
    fn raise_pending_at(&self, key: FiberKey, point: RaisePoint) -> Result<(), Error> {
        let pending_raise = self.state.borrow_mut().take_pending_raise_at(key, point);
        pending_raise.map_or(Ok(()), |pending_raise| Err(pending_raise.to_error()))
    }

    /// Runs a block of the program's, with `argument`, or else with a number by which the limit can be moved. If the
    /// block has not ended at `at`, what `limit` says is raised in the fiber, wherever the fiber is then. Nothing is
    /// raised after the block has ended.
    pub fn run_until(
        &self,
        ruby: &Ruby,
        key: FiberKey,
        at: Instant,
        limit: Limit,
        argument: Option<Value>,
    ) -> Result<Value, Error> {
        let (timer, scope) = self.state.borrow_mut().set_deadline(at, key, limit);
        let number = match argument {
            Some(_) => None,
            None => self.state.borrow_mut().limits.keep(key, timer, scope),
        };
        let noted = if self.state.borrow().limits.is_explored() { self.explore_limit(ruby, scope) } else { Ok(()) };
        let result = noted.and_then(|()| {
            self.run_user_block(key, || match argument {
                Some(argument) => ruby.yield_value(argument),
                None => ruby.yield_value(number),
            })
        });
        self.state.borrow_mut().drop_limit(key, timer, scope);
        result
    }

    /// A limit begins in a test that explores limits. The test knows whether its program has set it.
    #[cold]
    fn explore_limit(&self, ruby: &Ruby, scope: RaiseScope) -> Result<(), Error> {
        let Some(number) = scope.deadline() else { return Ok(()) };
        if EXPLORED_RUN.get::<RClass>(ruby)?.funcall("begin_limit?", (number,))? {
            self.state.borrow_mut().limits.add_explored(number);
        }
        Ok(())
    }

    /// Finds out whether the fiber has swallowed an exception that is to be raised again. Called at the beginning of
    /// each of the fiber's waits.
    #[inline]
    pub fn detect_swallowed(&self, key: FiberKey) {
        self.observe_raised(key, Observation::Absent);
    }

    /// Like [`Scheduler::detect_swallowed`], at a tick, for a fiber that calls no hook.
    #[inline]
    pub fn detect_swallowed_at_tick(&self, key: FiberKey) {
        self.observe_raised(key, Observation::AbsentAtTick);
    }

    #[inline]
    fn observe_raised(&self, key: FiberKey, absent: Observation) {
        let has_raised = {
            let state = self.state.borrow();
            state
                .fibers
                .get(key)
                .is_some_and(|record| !record.pending_raises.is_empty() && record.pending_raises.has_raised())
        };
        if has_raised {
            self.observe_each_raised(key, absent);
        }
    }

    #[cold]
    fn observe_each_raised(&self, key: FiberKey, absent: Observation) {
        // `$!` belongs to the running fiber. In a generator it says nothing about the fiber that has resumed the
        // generator.
        let observed = self.state.borrow().fibers.fiber(key);
        let is_current = observed.is_some_and(|fiber| same(fiber, fiber::current(&Ruby::get_with(fiber))));
        if !is_current {
            return;
        }
        for nth in 0.. {
            let raised = self.state.borrow().fibers.get(key).and_then(|record| record.pending_raises.raised(nth));
            let Some(raised) = raised else { return };
            let observed = if error::is_in_flight(raised.exception()) { Observation::InFlight } else { absent };
            self.state.borrow_mut().observe_raise(key, raised.scope, observed, TimerAction::Wake(key));
        }
    }
}
