//! The only place that switches fibers.
//!
//! There is no loop fiber. A fiber that waits, or has used up its time slice, takes the next fiber off the run queue
//! and switches straight to it. Only when the queue is empty does it ask the kernel, in its own context. If the event
//! that it waits for comes first, no switch happens at all.
//!
//! ```text
//!                            pick_next: another fiber
//!              ┌───────────────────────────────────────────────▶ switched away
//!              │                                                     │
//!   park ──▶ picking ◀──── another fiber is current: pick again ──── returned
//!              │                                                     │
//!              │ pick_next: the fiber itself                         │ it is the current fiber
//!              └──────────────────────▶ running ◀────────────────────┘
//!
//!   An exception or an interrupt leads from picking or returned to running, too.
//! ```
//!
//! Before it parks, a fiber becomes `Waiting` ([`State::set_waiting`](super::state::State::set_waiting)) or `Runnable`
//! ([`State::requeue`](super::state::State::requeue)). A wake-up makes it `Runnable`, and `pick_next` makes it
//! `Running`: see [`FiberState`](super::fibers::FiberState).

use magnus::{Error, Ruby, Value, prelude::*};

use super::Scheduler;
use super::abandonment::abandon_by_helper;
use super::enter::HookGuard;
use super::fibers::FiberKey;
use super::next_fiber::{NextFiber, NextStep};
use super::raise::PendingRaise;
use super::root_interrupts::Interrupts;
use super::state::Requeue;
use super::wait::Wait;
use crate::ruby::error::Raised;
use crate::ruby::value::PinnedValue;
use crate::ruby::{error, fiber, insides};

/// The fiber to which a fiber that parks switches next. `None` if it is running, and its result is known; see the
/// module.
type ParkStep = Option<PinnedValue>;

impl Scheduler {
    /// `sleep(0)` and `yield`: a whole hook. Programs with many fibers that each do little call nothing more often, so
    /// the state is borrowed only once before the switch and once after it.
    #[inline(always)]
    pub fn yield_now(&self, ruby: &Ruby) -> Result<(), Error> {
        let (key, outer, next) = self.enter_with(
            ruby,
            #[inline(always)]
            |state, current| {
                let (key, outer) = state.enter_and_requeue(current)?;
                Some((key, outer, self.pick_next(state, key)))
            },
        )?;
        let mut result = Ok(());
        let step = match next {
            NextFiber::Other(fiber) => match self.transfer(ruby, key, fiber) {
                Ok(()) if self.state.borrow_mut().finish_yield(key, outer) => {
                    self.tick_for(key);
                    return Ok(());
                }
                returned => self.after_return(ruby, key, returned, &mut result),
            },
            next => self.pick_slowly(ruby, key, next, &mut result),
        };
        self.yield_slowly(ruby, key, outer, step, result)
    }

    #[cold]
    #[inline(never)]
    fn yield_slowly(
        &self,
        ruby: &Ruby,
        key: FiberKey,
        outer: Wait,
        step: ParkStep,
        mut result: Result<(), Error>,
    ) -> Result<(), Error> {
        let hook = HookGuard::new(self, key);
        self.park_in_steps(ruby, hook.key, step, &mut result);
        self.state.borrow_mut().restore_wait(hook.key, Some(outer));
        result.and_then(|()| self.raise_due(hook.key))
    }

    /// Yields within a hook, until the fiber is picked again. Returns whether an exception may be due in it.
    #[inline]
    pub fn yield_within(&self, ruby: &Ruby, key: FiberKey, position: Requeue) -> Result<bool, Error> {
        let (outer, next) = {
            let mut state = self.state.borrow_mut();
            (state.requeue(key, position), self.pick_next(&mut state, key))
        };
        let result = self.park_with(ruby, key, next);
        let may_be_due = self.state.borrow_mut().restore_wait(key, outer);
        result.map(|()| may_be_due)
    }

    /// Lets other fibers run until this fiber is woken and picked, or something is raised into it. Its state must be
    /// `Waiting` or `Runnable`.
    ///
    /// May return early without an event. The caller checks what it waits for, and parks again.
    #[inline]
    pub fn park(&self, ruby: &Ruby, key: FiberKey) -> Result<(), Error> {
        let next = self.pick_next(&mut self.state.borrow_mut(), key);
        self.park_with(ruby, key, next)
    }

    /// Like [`Scheduler::park`], for a caller that has picked the next fiber.
    ///
    /// Each waiting fiber has this function's frame on its stack. So the rare cases have frames of their own, and write
    /// the result where the caller wants it.
    #[inline(always)]
    pub fn park_with(&self, ruby: &Ruby, key: FiberKey, next: NextFiber) -> Result<(), Error> {
        let mut result = Ok(());
        let step = match next {
            NextFiber::Other(fiber) => Some(fiber),
            next => self.pick_slowly(ruby, key, next, &mut result),
        };
        self.park_in_steps(ruby, key, step, &mut result);
        result
    }

    #[inline(always)]
    fn park_in_steps(&self, ruby: &Ruby, key: FiberKey, mut step: ParkStep, result: &mut Result<(), Error>) {
        while let Some(fiber) = step {
            let returned = self.transfer(ruby, key, fiber);
            if returned.is_ok() && self.state.borrow().is_picked(key) {
                self.tick_for(key);
                return;
            }
            step = self.after_return(ruby, key, returned, result);
        }
    }

    /// Switches to a fiber.
    #[inline(always)]
    fn transfer(&self, ruby: &Ruby, key: FiberKey, fiber: PinnedValue) -> Result<(), Raised> {
        self.switch(
            ruby,
            key,
            #[inline(always)]
            || fiber::transfer(fiber),
        )
    }

    /// Like [`Scheduler::park`], switching first to a new fiber, with its arguments.
    pub fn park_after_start(
        &self,
        ruby: &Ruby,
        key: FiberKey,
        new_fiber: PinnedValue,
        arguments: &[Value],
    ) -> Result<(), Error> {
        let returned = self.switch(ruby, key, || fiber::start(new_fiber, arguments));
        if returned.is_err() || !self.state.borrow().is_current(key) {
            self.recover(ruby, key, returned)?;
            return self.park(ruby, key);
        }
        self.tick_for(key);
        Ok(())
    }

    /// picking → switched away, or running with `result`.
    #[inline(never)]
    fn pick_slowly(&self, ruby: &Ruby, key: FiberKey, mut next: NextFiber, result: &mut Result<(), Error>) -> ParkStep {
        loop {
            next = match self.next_step(ruby, key, next) {
                Ok(NextStep::Switch(fiber)) => return Some(fiber),
                Ok(NextStep::Continue) => {
                    self.tick_for(key);
                    return None;
                }
                rare => self.take_rare_step(ruby, key, rare, result)?,
            };
        }
    }

    /// Like [`Scheduler::pick_again`], after a step that few fibers take.
    #[cold]
    #[inline(never)]
    fn take_rare_step(
        &self,
        ruby: &Ruby,
        key: FiberKey,
        step: Result<NextStep, Error>,
        result: &mut Result<(), Error>,
    ) -> Option<NextFiber> {
        let returned = match step {
            Ok(NextStep::Switch(fiber)) => self.transfer(ruby, key, fiber).map_err(Raised::into_error),
            Ok(NextStep::Continue) => Ok(()),
            Ok(NextStep::Raise(fiber, pending_raise)) => {
                self.switch(ruby, key, || raise_by_helper(ruby, fiber, pending_raise))
            }
            Ok(NextStep::Abandon(overdue)) => self.switch(ruby, key, || abandon_by_helper(ruby, self, overdue)),
            Ok(NextStep::CheckInterrupts) => {
                let checked = self.check_interrupts(key);
                *result = self.unpark_early(key, checked);
                return None;
            }
            Err(error) => {
                *result = self.unpark_early(key, Err(error));
                return None;
            }
        };
        self.pick_again(ruby, key, returned, result)
    }

    /// returned → switched away, or running with `result`.
    #[cold]
    #[inline(never)]
    fn after_return(
        &self,
        ruby: &Ruby,
        key: FiberKey,
        returned: Result<(), Raised>,
        result: &mut Result<(), Error>,
    ) -> ParkStep {
        match self.pick_again(ruby, key, returned.map_err(Raised::into_error), result)? {
            NextFiber::Other(fiber) => Some(fiber),
            next => self.pick_slowly(ruby, key, next, result),
        }
    }

    /// returned → picking: picks the next fiber. Or returned → running with `result`: `None`.
    fn pick_again(
        &self,
        ruby: &Ruby,
        key: FiberKey,
        returned: Result<(), Error>,
        result: &mut Result<(), Error>,
    ) -> Option<NextFiber> {
        if returned.is_ok() && self.state.borrow().is_current(key) {
            self.tick_for(key);
            return None;
        }
        if let Err(error) = &returned
            && let Some(unstarted) = self.unstarted_without_stack(ruby, error)
        {
            self.state.borrow_mut().set_current(key);
            let retried = self.retry_start(ruby, unstarted, error);
            *result = self.unpark_early(key, retried);
            return None;
        }
        *result = self.recover(ruby, key, returned);
        result.is_ok().then(|| self.pick_next(&mut self.state.borrow_mut(), key))
    }

    /// returned → picking: the fiber got control back without having been picked. An error leads to running, unless it
    /// says that Ruby refused the switch.
    #[cold]
    fn recover(&self, ruby: &Ruby, key: FiberKey, returned: Result<(), Error>) -> Result<(), Error> {
        match returned {
            Err(error) if !self.is_refusal(ruby, key, &error) => {
                self.requeue_switcher(key);
                self.unpark_early(key, Err(error))
            }
            // Ruby refused the switch, so no other fiber ran.
            Err(_) => Ok(()),
            Ok(()) => {
                self.requeue_switcher(key);
                Ok(())
            }
        }
    }

    /// picking or returned → running, without having been picked: to handle an interrupt or an exception.
    #[cold]
    fn unpark_early(&self, key: FiberKey, result: Result<(), Error>) -> Result<(), Error> {
        if self.root.phase.get() == Interrupts::Here {
            // Ruby has checked the interrupts when the fiber got control.
            self.root.phase.set(Interrupts::None);
        }
        self.state.borrow_mut().set_current(key);
        self.tick_for(key);
        result
    }

    /// A fiber that raises into a waiting fiber (`Fiber#raise`, `Fiber#kill`), or switches to it with
    /// `Fiber#transfer`, calls no hook, and is in no queue. The scheduler switched to it last, so it is put on the run
    /// queue.
    pub fn requeue_switcher(&self, key: FiberKey) {
        let switcher = self.state.borrow().current();
        let Some((fiber, switcher)) = switcher.filter(|(_, switcher)| *switcher != key) else { return };
        let mut state = self.state.borrow_mut();
        state.clear_current();
        let suspended_elsewhere =
            state.fibers.get(switcher).is_some_and(|record| !record.is_parked() && record.wait != Wait::NotStarted);
        if suspended_elsewhere && fiber::is_alive(fiber) {
            if let Some(record) = state.fibers.get_mut(switcher) {
                record.wait = Wait::Raiser;
            }
            state.enqueue(switcher);
        }
    }

    /// Whether a switch failed because its target cannot be switched to now, and not because something was raised into
    /// this fiber.
    fn is_refusal(&self, ruby: &Ruby, key: FiberKey, error: &Error) -> bool {
        let refused = self.state.borrow().current().is_some_and(|(_, target)| target != key)
            && error::is_fiber_error_with(ruby, error, insides::REFUSED_TRANSFER);
        if refused {
            self.state.borrow_mut().clear_current();
        }
        refused
    }

    /// The fiber that was picked, if it could not start for lack of a stack.
    fn unstarted_without_stack(&self, ruby: &Ruby, error: &Error) -> Option<FiberKey> {
        let unstarted = {
            let state = self.state.borrow();
            let (_, key) = state.current()?;
            state.fibers.get(key).filter(|record| record.wait == Wait::NotStarted).map(|_| key)
        };
        unstarted.filter(|_| error::is_lack_of_stacks(ruby, error))
    }

    /// Enqueues the fiber again, if garbage collection may free a stack for it. Otherwise removes it,
    /// unstarted, and notifies its exit observer or returns the error.
    #[cold]
    fn retry_start(&self, ruby: &Ruby, unstarted: FiberKey, error: &Error) -> Result<(), Error> {
        self.state.borrow_mut().enqueue(unstarted);
        if self.ended_stacks.collect(ruby) {
            return Ok(());
        }
        let exit_observer = {
            let mut state = self.state.borrow_mut();
            let exit_observer = state.fibers.get(unstarted).and_then(|record| record.task.exit_observer);
            state.fibers.remove(unstarted);
            exit_observer
        };
        match (exit_observer, error::exception_of(error)) {
            (Some(exit_observer), Some(exception)) => {
                exit_observer.get().funcall::<_, _, Value>("failed", (exception,)).map(|_| ())
            }
            _ => Err(error.clone()),
        }
    }
}

/// Raises into a fiber that has resumed another fiber, or that the program has suspended. A helper fiber does that,
/// since a fiber that raises may not get control back for long.
#[cold]
fn raise_by_helper(ruby: &Ruby, target: PinnedValue, pending_raise: PendingRaise) -> Result<(), Error> {
    struct RaiseBody;

    impl fiber::FiberBody for RaiseBody {
        fn run(ruby: &Ruby, _: Value, arguments: &[Value]) -> Result<Value, Error> {
            if let Some((target, exception)) = arguments.split_first() {
                // The fiber may have ended meanwhile (FiberError): then there is nothing left to interrupt.
                let _ = fiber::raise_into(*target, exception);
            }
            Ok(ruby.qnil().as_value())
        }
    }

    let nil = ruby.qnil().as_value();
    let raiser = fiber::spawn::<RaiseBody>(nil, nil)?;
    let arguments = [target.get(), pending_raise.exception.get(), pending_raise.message.map_or(nil, PinnedValue::get)];
    let count = arguments.len() - usize::from(pending_raise.message.is_none());
    fiber::start(raiser, &arguments[..count])
}
