//! Which fiber runs next.

use magnus::exception::Exception;
use magnus::{Error, RModule, Ruby, Value, prelude::*};

use super::Scheduler;
use super::abandonment::abandon_by_helper;
use super::poll::Polled;
use super::raise::raise_by_helper;
use super::record::FiberKey;
use super::root_interrupts::Interrupts;
use super::state::{Others, State};
use crate::ruby::constant::Constant;
use crate::ruby::error;
use crate::ruby::fiber;
use crate::ruby::value::PinnedValue;

/// What a fiber that parks does next.
// It fits into two registers, so that a fiber that parks need not have it on its stack.
pub enum Next {
    /// It runs: it is the current fiber now.
    Run,
    /// It switches to this fiber: the next one, which is the current fiber now, or the one that leads to the fiber that
    /// handles the thread's interrupts.
    Switch(PinnedValue),
    /// The state alone does not tell: see [`Scheduler::pick_slowly`].
    Slow,
}

impl Scheduler {
    /// Dequeues the next fiber and makes it the current one, if the state alone can tell which. That is almost always
    /// so.
    #[inline(always)]
    pub fn pick_next(&self, state: &mut State, key: FiberKey) -> Next {
        let is_unusual = state.is_lost(key) || self.root.phase.get() != Interrupts::None;
        if is_unusual || state.begin_slice() || state.has_deferred_raises() {
            return Next::Slow;
        }
        dequeue(state, key)
    }

    /// Finds the next fiber, waiting in the kernel if there is none.
    ///
    /// # Errors
    /// What is raised in this fiber, which runs without having been picked.
    pub fn pick_slowly(&self, ruby: &Ruby, key: FiberKey) -> Result<Next, Error> {
        if self.state.borrow().is_lost(key) {
            return Err(lost(ruby));
        }
        match self.root.phase.get() {
            Interrupts::None => {}
            Interrupts::ForRoot if self.prepare_fall_back(ruby, key)? => return Ok(Next::Run),
            Interrupts::ForRoot => return self.fall_back(ruby, key),
            Interrupts::ForNext => return self.check_parked(ruby, key),
        }
        if self.state.borrow().should_poll() {
            self.state.borrow_mut().end_slice();
            self.poll_for(ruby, Some(key), false)?;
        }
        loop {
            {
                let mut state = self.state.borrow_mut();
                let raise_elsewhere = state.raises.take_deferred().or_else(|| state.pass_on_raises());
                if let Some((fiber, pending_raise)) = raise_elsewhere {
                    drop(state);
                    return self.switch_to_helper(ruby, key, || raise_by_helper(ruby, self, fiber, pending_raise));
                }
                if let Some(overdue) = state.endings.take_overdue() {
                    drop(state);
                    return self.switch_to_helper(ruby, key, || abandon_by_helper(ruby, self, overdue));
                }
                match dequeue(&mut state, key) {
                    Next::Slow => {}
                    next => return Ok(next),
                }
            }
            if self.wake_drainers() {
                continue;
            }
            if self.prepare_fall_back(ruby, key)? {
                return Ok(Next::Run);
            }
            if self.is_tested() {
                self.expect_event(ruby)?;
                // It runs Ruby code, and so trap handlers. A handler's wait may have consumed the wake-up of this
                // fiber.
                if self.state.borrow().fibers.is_current(key) {
                    return Ok(Next::Run);
                }
            }
            // Trap handlers ran in both, perhaps, and one has sent an exception to the root. The job that was triggered
            // for it may have run there, too, where it could not switch.
            if self.state.borrow().is_lost(key) || self.root.phase.get() != Interrupts::None {
                return self.pick_slowly(ruby, key);
            }
            self.state.borrow_mut().end_slice();
            if self.poll_for(ruby, Some(key), true)? == Polled::Interrupted {
                return self.fall_back(ruby, key);
            }
        }
    }

    /// Makes the fiber that [`Scheduler::fall_back`] may need, unless there is one. Returns whether the fiber `key` is
    /// the current one now: a trap handler ran meanwhile, and waited, and its wait has consumed the wake-up of `key`.
    #[inline]
    fn prepare_fall_back(&self, ruby: &Ruby, key: FiberKey) -> Result<bool, Error> {
        if self.owner.fall_back.get().is_some() { Ok(false) } else { self.make_fall_back(ruby, key) }
    }

    fn make_fall_back(&self, ruby: &Ruby, key: FiberKey) -> Result<bool, Error> {
        {
            let state = self.state.borrow();
            if state.handles_interrupts(Some(key)) || state.forking_fiber().is_some() {
                return Ok(false);
            }
        }
        // SAFETY: `Scheduler::mark` marks it.
        self.owner.fall_back.set(Some(unsafe { PinnedValue::assume_marked(fiber::fall_back_fiber(ruby)?) }));
        Ok(self.state.borrow().fibers.is_current(key))
    }

    /// Switches to the fiber that handles the thread's interrupts, or to one that leads to it, unless that is `key`
    /// itself: then `key` checks them.
    #[cold]
    fn fall_back(&self, ruby: &Ruby, key: FiberKey) -> Result<Next, Error> {
        let (handles_interrupts, forking_fiber) = {
            let state = self.state.borrow();
            (state.handles_interrupts(Some(key)), state.forking_fiber().map(|(fiber, _)| fiber))
        };
        let leads_to_root = || forking_fiber.or_else(|| self.owner.fall_back.take());
        match if handles_interrupts { None } else { leads_to_root() } {
            Some(fiber) => {
                self.root.phase.set(Interrupts::ForNext);
                Ok(Next::Switch(fiber))
            }
            None => self.check_parked(ruby, key),
        }
    }

    /// picking → running: the fiber checks the thread's interrupts.
    fn check_parked(&self, ruby: &Ruby, key: FiberKey) -> Result<Next, Error> {
        if let Err(raised) = self.check_interrupts(ruby, key) {
            self.state.borrow_mut().clock.end_idle_time();
            return Err(raised);
        }
        self.unpark_early(key);
        Ok(Next::Run)
    }

    /// No fiber is runnable. If no fiber is awaited either, wakes the fibers that wait for the end of all others.
    /// Returns whether the run queue has a fiber now.
    fn wake_drainers(&self) -> bool {
        let mut state = self.state.borrow_mut();
        let drainers = state.fibers.finished_drainers();
        drainers.iter().for_each(|drainer| state.wake(*drainer));
        !state.fibers.queue().is_empty()
    }

    /// Whether a test chooses the schedule. Then ticks preempt no fiber.
    pub fn is_explored(&self) -> bool {
        self.state.borrow().exploration.is_some()
    }

    fn is_tested(&self) -> bool {
        self.state.borrow().is_tested()
    }

    /// All fibers wait in a test. Returns an error if nothing can ever wake one. Called again and again, as a thread
    /// that runs may stop without having woken one.
    #[cold]
    pub fn expect_event(&self, ruby: &Ruby) -> Result<(), Error> {
        static SURROUNDINGS: Constant = Constant::new(&["Heddle", "Testing", "Surroundings"]);
        let (is_virtual, is_timed, operations) = {
            let mut state = self.state.borrow_mut();
            (state.clock.is_virtual(), state.timers.next_deadline().is_some(), state.operations.len())
        };
        if is_virtual && is_timed {
            let (run, wait): (bool, bool) = SURROUNDINGS.get::<RModule>(ruby)?.funcall("threads", ())?;
            self.state.borrow_mut().clock.set_others(if run {
                Others::Running
            } else if wait {
                Others::Waiting
            } else {
                Others::Asleep
            });
        }
        if is_timed || operations > 0 {
            return Ok(());
        }
        let deadlock: Value = SURROUNDINGS.get::<RModule>(ruby)?.funcall("deadlock", ())?;
        Exception::from_value(deadlock).map_or(Ok(()), |deadlock| Err(deadlock.into()))
    }
}

/// Dequeues the next fiber and makes it the current one; [`Next::Slow`] if there is none.
#[inline(always)]
fn dequeue(state: &mut State, key: FiberKey) -> Next {
    while let Some(next) = state.dequeue() {
        if next.key == key {
            return Next::Run;
        }
        // It only reads the fiber's status, so the borrow of the state may live across it.
        if next.is_started || fiber::is_alive(next.fiber.get()) {
            return Next::Switch(next.fiber);
        }
        state.forget_dead(next.fiber);
    }
    Next::Slow
}

#[cold]
fn lost(ruby: &Ruby) -> Error {
    error::of(
        ruby.exception_io_error(),
        "this fiber cannot continue its wait: meanwhile its scheduler was closed, or the process forked",
    )
}
