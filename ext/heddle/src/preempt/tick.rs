//! Preempts a fiber that computes: at a tick, in the job that Ruby runs at its next safe point.
//!
//! The fiber parks within the job, as it would in a hook. Ruby would swallow an exception raised in the job. So
//! another thread raises it at the place where the fiber was preempted (see `ruby/async_raise.rs`).

use std::time::Instant;

use magnus::{Error, Ruby, Value, prelude::*};

use super::safe_points;
use crate::ruby::value::PinnedValue;
use crate::ruby::{async_raise, error, fiber, interrupts, pending_interrupts, thread};
use crate::scheduler::fibers::FiberKey;
use crate::scheduler::options::Preempt;
use crate::scheduler::raise::{PendingRaise, RaiseScope};
use crate::scheduler::state::Requeue;
use crate::scheduler::ticking::TickSuppression;
use crate::scheduler::{HookGuard, Scheduler};
use crate::ticker::foreign_fibers::yield_state_of;
use crate::ticker::{Ticker, throttle};

impl Scheduler {
    /// The ticker's name, if there is one.
    pub fn ticker_name(&self) -> Option<&'static str> {
        self.preemption.ticker.borrow().as_ref().map(Ticker::name)
    }

    /// Runs the caller's block. Meanwhile the fiber counts as being in a hook, and is not preempted.
    pub fn without_preemption(&self, ruby: &Ruby) -> Result<Value, Error> {
        let result = {
            let _hook = self.enter(ruby)?.keep_wake_ups();
            ruby.yield_value(())
        };
        if result.is_ok() && self.preemption.missed_tick.get() {
            self.catch_up_missed_tick(ruby)?;
        }
        result
    }

    /// A tick has arrived in a critical section that has ended now. Without this, a fiber that runs one critical
    /// section after the other would never be preempted.
    #[cold]
    fn catch_up_missed_tick(&self, ruby: &Ruby) -> Result<(), Error> {
        let current = fiber::current();
        let Some(Some(running)) = self.preemptible_current(current) else { return Ok(()) };
        self.preemption.missed_tick.set(false);
        let hook = self.enter(ruby)?.keep_wake_ups();
        if !self.state.borrow().queue.has_woken() {
            self.poll(ruby)?;
        }
        self.raise_due(running)?;
        if !self.state.borrow_mut().should_preempt(Instant::now()) {
            return Ok(());
        }
        self.yield_preempted(ruby, hook.key)?;
        self.raise_due(running)
    }

    /// The fiber yields as a preempted one, until it is picked again.
    fn yield_preempted(&self, ruby: &Ruby, key: FiberKey) -> Result<(), Error> {
        self.preemption.preemptions.set(self.preemption.preemptions.get() + 1);
        self.yield_within(ruby, key, Requeue::Preempted(Instant::now())).map(|_| ())
    }

    /// A tick has arrived. Called from Ruby's postponed job, at a safe point, in the running fiber.
    pub fn tick(&self, ruby: &Ruby) {
        if self.is_inherited() || self.owner.thread.get() != Some(thread::current()) {
            return;
        }
        self.attend_to_closing(ruby);
        if pending_interrupts::is_sent() {
            return interrupts::request_check();
        }
        let Ok(current) = fiber::ensure_current() else { return };
        if self.is_root_wanted() && !self.handles_interrupts(current) {
            return self.yield_to_root(ruby, current);
        }
        let Some(running) = self.preemptible_current(current) else { return };
        if self.state.borrow().queue.has_woken() {
            // Another fiber is runnable, so no poll is needed. But a deadline of this fiber may have passed.
            self.state.borrow_mut().expire(Instant::now());
        } else if self.poll(ruby).is_err() {
            // The next fiber that waits polls again, and gets the error.
            return;
        }
        // A masked exception is checked again when other fibers are due: Ruby does not report the end of a mask.
        let interrupted = running.filter(|running| self.due_unmasked(ruby, *running));
        if let Some(running) = interrupted.filter(|_| safe_points::may_raise_here()) {
            return self.raise_now(ruby, current, running);
        }
        let now = Instant::now();
        self.preemption.last_tick.set(Some(now));
        if !self.state.borrow_mut().should_preempt(now) {
            self.state.borrow_mut().could_preempt(now);
            if interrupted.is_some() { self.try_again_soon() } else { self.suppress_ticks(now) }
        } else if safe_points::may_switch_here() && !interrupts::is_trap_due() {
            self.preempt_current(ruby, current);
        } else {
            self.try_again_soon();
        }
    }

    /// Whether an exception is due in the fiber and the current masks let it through.
    fn due_unmasked(&self, ruby: &Ruby, key: FiberKey) -> bool {
        self.detect_swallowed_at_tick(key);
        let exception = self.state.borrow().due_exception(key);
        exception.is_some_and(|exception| !self.is_masked(ruby, exception.get()))
    }

    fn is_masked(&self, ruby: &Ruby, exception: Value) -> bool {
        self.preemption.masks.get().is_some_and(|masks| masks.defer(ruby, exception))
    }

    /// Raises the next exception that is due in `running`.
    fn raise_now(&self, ruby: &Ruby, current: PinnedValue, running: FiberKey) {
        let Some(pending_raise) = self.state.borrow_mut().take_pending_raise(running) else { return };
        if self.raise_here(ruby, current, &pending_raise.to_error()).is_err() {
            self.state.borrow_mut().send_raise(running, pending_raise);
        }
    }

    /// The scheduler's current fiber, if the fiber that runs may be preempted now. `current` is the running fiber: the
    /// scheduler's current fiber, or one that it has resumed. `Some(None)` if `current` may be preempted and the
    /// scheduler has no current fiber. Stops the ticker if no fiber is left to be preempted.
    fn preemptible_current(&self, current: PinnedValue) -> Option<Option<FiberKey>> {
        let preempt = self.options.borrow().preempt;
        let state = self.state.borrow();
        if state.is_ending(current) {
            return None;
        }
        // A fiber that has no record is preempted as the fiber is that has resumed it.
        let running = state.fibers.find(current).or_else(|| state.current().map(|(_, key)| key));
        let record = running.and_then(|key| state.fibers.get(key));
        if record.is_some_and(|record| record.killed && record.fiber == current) {
            // Its `ensure` clauses would not run to their end.
            return None;
        }
        let blocking = fiber::current_scheduler().is_none();
        // While all fibers are asked to end, a fiber that computes must not keep the others from ending.
        let is_stopping = state.is_stopping();
        let preemptible = match record {
            Some(record) if record.preemptible || is_stopping && !record.blocking => true,
            Some(record) if record.fiber == current => false,
            _ if blocking => false,
            _ => preempt == Preempt::All || (preempt.preempts_yielding() && yield_state_of(current).is_some()),
        };
        if !preemptible {
            if !state.queue.has_preempted()
                && let Some(ticker) = self.preemption.ticker.borrow().as_ref()
            {
                ticker.end();
            }
            return None;
        }
        let shielded = blocking || record.is_some_and(|record| record.is_shielded());
        self.preemption.missed_tick.set(shielded);
        (!shielded).then_some(running)
    }

    /// The running fiber yields, until it is picked again.
    fn preempt_current(&self, ruby: &Ruby, current: PinnedValue) {
        let Ok(hook) = self.enter(ruby).map(HookGuard::keep_wake_ups) else { return };
        let key = hook.key;
        throttle::end();
        let yielded = self.yield_preempted(ruby, key);
        self.continue_preempted(ruby, current, hook, yielded);
    }

    /// The fiber continues where the job has interrupted it. `yielded` has the error that was raised into it
    /// meanwhile.
    pub fn continue_preempted(
        &self,
        ruby: &Ruby,
        current: PinnedValue,
        hook: HookGuard<'_>,
        yielded: Result<(), Error>,
    ) {
        let key = hook.key;
        let raised = yielded.and_then(|()| self.raise_due_here(ruby, key));
        let is_due = self.due_unmasked(ruby, key);
        // An unmanaged fiber has a record until here.
        drop(hook);
        match raised {
            Ok(()) if is_due => self.try_again_soon(),
            Ok(()) => self.expect_next_due(),
            Err(raised) => self.raise_or_keep(ruby, current, &raised),
        }
    }

    /// Like [`Scheduler::raise_due`], if an exception may be raised here. Otherwise the exception is not taken: the
    /// block that it is meant for may end before the next safe point.
    fn raise_due_here(&self, ruby: &Ruby, key: FiberKey) -> Result<(), Error> {
        if self.due_unmasked(ruby, key) && safe_points::may_raise_here() {
            let pending_raise = self.state.borrow_mut().take_pending_raise(key);
            return pending_raise.map_or(Ok(()), |pending_raise| Err(pending_raise.to_error()));
        }
        Ok(())
    }

    /// The fiber continues after other fibers have run. A fiber that sleeps for the length of a tick would be due just
    /// after the next tick, and so run a whole tick late. Therefore the next tick is postponed until that fiber is
    /// due.
    fn expect_next_due(&self) {
        let now = Instant::now();
        if !self.state.borrow_mut().should_preempt(now) {
            self.preemption.tick_suppression.set(TickSuppression::Expected);
            self.suppress_ticks(now);
        }
    }

    /// Like [`Scheduler::raise_here`]. An exception that cannot be raised now is due at the next tick, or in the
    /// fiber's next hook.
    fn raise_or_keep(&self, ruby: &Ruby, current: PinnedValue, raised: &Error) {
        let may_raise = error::exception_of(raised)
            .is_none_or(|exception| safe_points::may_raise_here() && !self.is_masked(ruby, exception));
        if may_raise && self.raise_here(ruby, current, raised).is_ok() {
            return;
        }
        self.try_again_soon();
        let Some(exception) = error::exception_or_stop(ruby, raised) else { return };
        let pending_raise =
            PendingRaise { exception: PinnedValue::assume_marked(exception), message: None, scope: RaiseScope::Fiber };
        let mut state = self.state.borrow_mut();
        match state.fibers.find(current).or_else(|| state.current().map(|(_, running)| running)) {
            Some(key) => state.send_raise(key, pending_raise),
            None => state.defer_raise(current, pending_raise),
        }
    }

    /// Raises an error where the fiber was preempted. A `Thread#kill` ends the fiber there, too.
    ///
    /// Ruby's `Fiber#kill` is no exception, and cannot be sent on. A managed or a yielding fiber gets `Heddle::Stop`
    /// instead, which its outermost frame takes for the kill. Any other fiber ends when the program, and not the
    /// scheduler, switches to it. None of them is preempted any more, as Ruby would kill it again and again.
    fn raise_here(&self, ruby: &Ruby, current: PinnedValue, raised: &Error) -> Result<(), Error> {
        if pending_interrupts::repeat_kill(raised) {
            return Ok(());
        }
        if let Some(exception) = error::exception_of(raised) {
            return async_raise::raise_after_job(ruby, exception);
        }
        error::end_jump(ruby);
        let managed = {
            let mut state = self.state.borrow_mut();
            let key = state.fibers.find(current);
            let record = key.and_then(|key| state.fibers.get_mut(key));
            record.is_some_and(|record| {
                record.preemptible = false;
                record.managed
            })
        };
        if managed || yield_state_of(current).is_some() {
            async_raise::raise_after_job(ruby, error::stop_class(ruby)?.as_value())
        } else {
            Ok(())
        }
    }
}
