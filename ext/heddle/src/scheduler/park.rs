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
//! `Running`: see [`FiberState`](super::record::FiberState).

use magnus::{Error, Ruby, Value, prelude::*};

use super::Scheduler;
use super::enter::HookGuard;
use super::pick::Next;
use super::record::FiberKey;
use super::root_interrupts::Interrupts;
use super::state::Requeue;
use super::wait::Wait;
use crate::ruby::error::Raised;
use crate::ruby::masks::Masks;
use crate::ruby::outcome::RubyOutcome;
use crate::ruby::value::PinnedValue;
use crate::ruby::{error, fiber, insides};
use crate::ticker::throttle;

impl Scheduler {
    /// `sleep(0)` and `yield`: a whole hook. Programs with many fibers that each do little call nothing more often, so
    /// the state is borrowed only once before the switch and once after it.
    #[inline(always)]
    pub fn yield_now(&self, ruby: &Ruby) -> Result<(), Error> {
        if self.may_have_own() {
            self.raise_own(ruby)?;
        }
        let (key, outer, next) = self.enter_with(
            ruby,
            #[inline(always)]
            |state, current| {
                let (key, outer) = state.fibers.enter_and_requeue(current)?;
                Some((key, outer, self.pick_next(state, key)))
            },
        )?;
        let mut result = Ok(());
        let next = match next {
            Next::Switch(fiber) => match self.transfer(ruby, key, fiber) {
                Ok(()) if self.state.borrow_mut().finish_yield(key, outer) => {
                    self.tick_for(key);
                    return Ok(());
                }
                returned => self.after_return(ruby, key, returned, &mut result),
            },
            next => next,
        };
        self.yield_slowly(ruby, key, outer, next, result)
    }

    /// As in a thread, a `sleep(0)` raises what a mask has left.
    #[cold]
    #[inline(never)]
    fn raise_own(&self, ruby: &Ruby) -> Result<(), Error> {
        let hook = self.enter(ruby)?;
        self.send_own(ruby, hook.key);
        self.raise_pending(hook.key)
    }

    #[cold]
    #[inline(never)]
    fn yield_slowly(
        &self,
        ruby: &Ruby,
        key: FiberKey,
        outer: Wait,
        next: Next,
        mut result: Result<(), Error>,
    ) -> Result<(), Error> {
        let hook = HookGuard::new(self, key);
        self.follow(ruby, hook.key, next, &mut result);
        self.state.borrow_mut().restore_wait(hook.key, Some(outer));
        result.and_then(|()| self.raise_pending(hook.key))
    }

    /// Yields within a hook, until the fiber is picked again. Returns whether an exception may be pending in it.
    #[inline]
    pub fn yield_within(&self, ruby: &Ruby, key: FiberKey, position: Requeue) -> Result<bool, Error> {
        let (outer, next) = {
            let mut state = self.state.borrow_mut();
            (state.requeue(key, position), self.pick_next(&mut state, key))
        };
        let result = self.park_with(ruby, key, next);
        let may_have_raise = self.state.borrow_mut().restore_wait(key, outer);
        result.map(|()| may_have_raise)
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
    pub fn park_with(&self, ruby: &Ruby, key: FiberKey, next: Next) -> Result<(), Error> {
        let mut result = Ok(());
        self.follow(ruby, key, next, &mut result);
        result
    }

    /// picking → running with `result`: does what was picked, until the fiber runs.
    #[inline(always)]
    fn follow(&self, ruby: &Ruby, key: FiberKey, mut next: Next, result: &mut Result<(), Error>) {
        loop {
            next = match next {
                Next::Run => break,
                Next::Switch(fiber) => match self.transfer(ruby, key, fiber) {
                    Ok(()) if self.state.borrow().is_picked(key) => break,
                    returned => self.after_return(ruby, key, returned, result),
                },
                Next::Slow => self.after_slow_pick(ruby, key, result),
            };
        }
        self.tick_for(key);
    }

    /// Switches to a fiber.
    #[inline(always)]
    fn transfer(&self, ruby: &Ruby, key: FiberKey, fiber: PinnedValue) -> Result<(), Raised> {
        self.switch(
            ruby,
            key,
            #[inline(always)]
            || fiber::transfer(fiber.get()),
        )
    }

    /// Like [`Scheduler::park`], switching first to a new fiber, with its arguments.
    pub fn park_after_start(
        &self,
        ruby: &Ruby,
        key: FiberKey,
        new_fiber: Value,
        arguments: &[Value],
    ) -> Result<(), Error> {
        let returned = self.switch(ruby, key, || fiber::start(new_fiber, arguments));
        if matches!(&returned, Ok(()) if self.state.borrow().fibers.is_current(key)) {
            self.tick_for(key);
            return Ok(());
        }
        match self.recover(key, returned) {
            Ok(()) => self.park(ruby, key),
            Err(error) => {
                self.unpark_early(key);
                self.state.borrow_mut().note_raise(key);
                self.tick_for(key);
                Err(error)
            }
        }
    }

    #[inline(never)]
    fn after_slow_pick(&self, ruby: &Ruby, key: FiberKey, result: &mut Result<(), Error>) -> Next {
        let next = self.pick_slowly(ruby, key);
        self.run_if_raised(key, next, result)
    }

    #[cold]
    #[inline(never)]
    fn after_return(
        &self,
        ruby: &Ruby,
        key: FiberKey,
        returned: Result<(), Raised>,
        result: &mut Result<(), Error>,
    ) -> Next {
        let next = self.pick_again(ruby, key, returned.map_err(Raised::into_error));
        self.run_if_raised(key, next, result)
    }

    /// An error is what was raised into the fiber, which runs with it as its `result`.
    fn run_if_raised(&self, key: FiberKey, next: Result<Next, Error>, result: &mut Result<(), Error>) -> Next {
        match next {
            Ok(next) => next,
            Err(error) => {
                self.unpark_early(key);
                self.state.borrow_mut().note_raise(key);
                *result = Err(error);
                Next::Run
            }
        }
    }

    /// picking → returned: switches to a helper fiber, which `start` starts, and picks again when control comes back.
    #[cold]
    pub fn switch_to_helper(
        &self,
        ruby: &Ruby,
        key: FiberKey,
        start: impl FnOnce() -> Result<(), Error>,
    ) -> Result<Next, Error> {
        let returned = self.switch(ruby, key, start);
        self.pick_again(ruby, key, returned)
    }

    /// returned → running, if the fiber is the current one, or else picks the next fiber.
    fn pick_again(&self, ruby: &Ruby, key: FiberKey, returned: Result<(), Error>) -> Result<Next, Error> {
        match &returned {
            Ok(()) if self.state.borrow().fibers.is_current(key) => return Ok(Next::Run),
            Ok(()) => {}
            Err(error) => {
                if let Some(unstarted) = self.unstarted_without_stack(ruby, error) {
                    self.state.borrow_mut().set_current(key);
                    self.retry_start(ruby, unstarted, error)?;
                    self.unpark_early(key);
                    return Ok(Next::Run);
                }
            }
        }
        self.recover(key, returned)?;
        Ok(self.pick_next(&mut self.state.borrow_mut(), key))
    }

    /// returned → picking: the fiber got control back without having been picked. An error is returned, unless it says
    /// that Ruby refused the switch.
    #[cold]
    fn recover(&self, key: FiberKey, returned: Result<(), Error>) -> Result<(), Error> {
        if matches!(&returned, Err(error) if self.is_refusal(key, error)) {
            returned.not_an_interrupt("Ruby's refusal: no other fiber ran");
            return Ok(());
        }
        self.requeue_switcher(key);
        returned
    }

    /// picking or returned → running, without having been picked: to handle an interrupt or an exception.
    #[cold]
    pub fn unpark_early(&self, key: FiberKey) {
        if self.root.phase.get() == Interrupts::ForNext {
            // Ruby has checked the interrupts when the fiber got control.
            self.root.phase.set(Interrupts::None);
        }
        self.state.borrow_mut().run_unpicked(key);
    }

    /// A fiber that raises into a waiting fiber (`Fiber#raise`, `Fiber#kill`), or switches to it with
    /// `Fiber#transfer`, calls no hook, and is in no queue. The scheduler switched to it last, so it is put on the run
    /// queue.
    pub fn requeue_switcher(&self, key: FiberKey) {
        let switcher = self.state.borrow().fibers.current();
        let Some((fiber, switcher)) = switcher.filter(|(_, switcher)| *switcher != key) else { return };
        let mut state = self.state.borrow_mut();
        state.fibers.clear_current();
        let suspended_elsewhere =
            state.fibers.get(switcher).is_some_and(|record| !record.is_parked() && record.wait != Wait::NotStarted);
        if suspended_elsewhere && fiber::is_alive(fiber.get()) {
            if let Some(record) = state.fibers.get_mut(switcher) {
                record.wait = Wait::Raiser;
            }
            state.enqueue(switcher);
        }
    }

    /// Whether a switch failed because its target cannot be switched to now, and not because something was raised into
    /// this fiber.
    fn is_refusal(&self, key: FiberKey, error: &Error) -> bool {
        let refused = self.state.borrow().fibers.current().is_some_and(|(_, target)| target != key)
            && error::is_fiber_error_with(error, insides::REFUSED_TRANSFER);
        if refused {
            self.state.borrow_mut().fibers.clear_current();
        }
        refused
    }

    /// The fiber that was picked, if it could not start for lack of a stack.
    fn unstarted_without_stack(&self, ruby: &Ruby, error: &Error) -> Option<FiberKey> {
        let unstarted = {
            let state = self.state.borrow();
            let (_, key) = state.fibers.current()?;
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
            let exit_observer = state.fibers.get(unstarted).and_then(|record| record.task.exit_observer());
            state.remove(unstarted);
            exit_observer
        };
        match (exit_observer, error::exception_of(error)) {
            (Some(exit_observer), Some(exception)) => {
                exit_observer.funcall::<_, _, Value>("failed", (exception,)).map(|_| ())
            }
            _ => Err(error.clone()),
        }
    }
}

/// Each fiber has its own masks of `Thread.handle_interrupt`: see `ruby/masks.rs`.
impl Scheduler {
    /// From now on each fiber keeps its masks when it is switched. The masks that are there stay with the root: which
    /// fiber set them is unknown.
    pub fn find_masks(&self, ruby: &Ruby) {
        if self.preemption.masks.get().is_none() {
            let masks = Masks::of_thread(ruby);
            masks.and_then(|masks| masks.gate(ruby).not_an_interrupt("no memory"));
            self.preemption.root_mask_count.set(masks.map_or(0, Masks::len));
            self.preemption.masks.set(masks);
        }
    }

    /// Calls `switch`, which leaves the fiber. When control comes back, the fiber's current masks are restored.
    #[inline(always)]
    pub fn switch<R>(&self, ruby: &Ruby, key: FiberKey, switch: impl FnOnce() -> R) -> R {
        throttle::leave();
        match self.preemption.masks.get() {
            Some(masks) if masks.len() != self.preemption.root_mask_count.get() => {
                self.switch_masked(ruby, key, masks, switch)
            }
            _ => switch(),
        }
    }

    #[cold]
    #[inline(never)]
    fn switch_masked<R>(&self, ruby: &Ruby, key: FiberKey, masks: Masks, switch: impl FnOnce() -> R) -> R {
        let is_root = self.state.borrow().fibers.get(key).is_none_or(|record| record.blocking);
        if is_root || masks.len() < self.preemption.root_mask_count.get() {
            self.preemption.root_mask_count.set(masks.len());
            return switch();
        }
        let saved = masks.save(ruby, self.preemption.root_mask_count.get());
        let switched = switch();
        if let Some(saved) = saved {
            masks.restore(saved);
        }
        switched
    }
}
