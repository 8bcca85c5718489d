//! How a fiber that computes loses its turn: at a tick, in the job that Ruby runs at its next safe point.
//!
//! The fiber parks right in there, as it would in a hook. What is raised into it meanwhile Ruby would swallow with the
//! job, so another thread raises that at the place where the fiber was preempted (see `ruby/async_raise.rs`).

use std::time::Instant;

use magnus::{Error, Ruby, Value, prelude::*};

use super::safe_points;
use crate::ruby::value::PinnedValue;
use crate::ruby::{async_raise, error, fiber, interrupts, pending_interrupts, thread};
use crate::scheduler::fibers::{FiberKey, PendingRaise, RaiseScope};
use crate::scheduler::options::Preempt;
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

    /// Runs the block of the hook's caller; the fiber counts as being in a hook meanwhile, and is not preempted.
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

    /// A tick has come in a critical section that is over now. Who has one after the other would never be preempted
    /// otherwise.
    #[cold]
    fn catch_up_missed_tick(&self, ruby: &Ruby) -> Result<(), Error> {
        let current = fiber::current();
        let Some(Some(running)) = self.preemptible_current(current) else { return Ok(()) };
        self.preemption.missed_tick.set(false);
        let hook = self.enter(ruby)?.keep_wake_ups();
        if !self.state.borrow().queue.has_woken() {
            self.poll(ruby, false)?;
        }
        self.raise_due(running)?;
        if !self.state.borrow_mut().should_preempt(Instant::now()) {
            return Ok(());
        }
        self.yield_preempted(ruby, hook.key)?;
        self.raise_due(running)
    }

    /// Gives up the turn of a fiber that computes until it comes again.
    fn yield_preempted(&self, ruby: &Ruby, key: FiberKey) -> Result<(), Error> {
        self.preemption.preemptions.set(self.preemption.preemptions.get() + 1);
        self.yield_within(ruby, key, Requeue::Preempted(Instant::now())).map(|_| ())
    }

    /// A tick has come. Called from Ruby's postponed job, at a safe point, in whichever fiber runs.
    pub fn tick(&self, ruby: &Ruby) {
        if self.is_inherited() || self.owner.thread.get() != Some(thread::current()) {
            return;
        }
        self.attend_to_closing(ruby);
        if pending_interrupts::is_sent() {
            return interrupts::look_again();
        }
        let Ok(current) = fiber::ensure_current() else { return };
        if self.is_root_wanted() && !self.handles_interrupts(current) {
            return self.yield_to_root(ruby, current);
        }
        let Some(running) = self.preemptible_current(current) else { return };
        if self.state.borrow().queue.has_woken() {
            // Nobody needs to be looked for who is due, but this fiber's own time may be up.
            self.state.borrow_mut().expire(Instant::now());
        } else if self.poll(ruby, false).is_err() {
            // Whoever waits next polls again, and is told.
            return;
        }
        // What is masked is looked at again when the others are due, too: nobody tells of the end of a mask.
        let interrupted = running.filter(|running| self.due_unmasked(ruby, *running));
        if let Some(running) = interrupted.filter(|_| safe_points::may_raise_here()) {
            return self.raise_now(ruby, current, running);
        }
        let now = Instant::now();
        self.preemption.last_tick.set(Some(now));
        if !self.state.borrow_mut().should_preempt(now) {
            if interrupted.is_some() { self.try_again_soon() } else { self.suppress_ticks(now) }
        } else if safe_points::may_switch_here() && !interrupts::is_trap_due() {
            self.preempt_current(ruby, current);
        } else {
            self.try_again_soon();
        }
    }

    /// Whether something is to be raised in the fiber that the masks of the one that runs let through.
    fn due_unmasked(&self, ruby: &Ruby, key: FiberKey) -> bool {
        self.detect_swallowed_at_tick(key);
        let exception = self.state.borrow().due_exception(key);
        exception.is_some_and(|exception| !self.is_masked(ruby, exception.get()))
    }

    fn is_masked(&self, ruby: &Ruby, exception: Value) -> bool {
        self.preemption.masks.get().is_some_and(|masks| masks.defer(ruby, exception))
    }

    /// Raises what has been sent to `running`.
    fn raise_now(&self, ruby: &Ruby, current: PinnedValue, running: FiberKey) {
        let Some(pending_raise) = self.state.borrow_mut().take_pending_raise(running) else { return };
        if self.raise_here(ruby, current, &pending_raise.to_error()).is_err() {
            self.state.borrow_mut().send_raise(running, pending_raise);
        }
    }

    /// Who has the turn, if `current`, which is that one or was resumed by it, may be preempted now; `Some(None)` if it
    /// may be, and nobody has the turn. Stops the ticker if there is nobody left to be preempted.
    fn preemptible_current(&self, current: PinnedValue) -> Option<Option<FiberKey>> {
        let preempt = self.options.borrow().preempt;
        let state = self.state.borrow();
        if state.is_ending(current) {
            return None;
        }
        // What another has resumed, and the books do not know, is preempted as that one is.
        let running = state.fibers.find(current).or_else(|| state.current().map(|(_, key)| key));
        let record = running.and_then(|key| state.fibers.get(key));
        let blocking = fiber::current_scheduler().is_none();
        // While all are told to end who computes must not keep that from the others.
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

    /// The fiber that runs gives up its turn until it comes again.
    fn preempt_current(&self, ruby: &Ruby, current: PinnedValue) {
        let Ok(hook) = self.enter(ruby).map(HookGuard::keep_wake_ups) else { return };
        let key = hook.key;
        throttle::end();
        let yielded = self.yield_preempted(ruby, key);
        self.continue_preempted(ruby, current, hook, yielded);
    }

    /// The fiber goes on where the job has found it. `yielded` is what was raised into it meanwhile.
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
        // A fiber that is not ours is in the books until here.
        drop(hook);
        match raised {
            Ok(()) if is_due => self.try_again_soon(),
            Ok(()) => self.expect_next_due(),
            Err(raised) => self.raise_or_keep(ruby, current, &raised),
        }
    }

    /// Like [`Scheduler::raise_due`], if this is a place for it. What waits for a better one is left where it is: the block
    /// that it is meant for may end before.
    fn raise_due_here(&self, ruby: &Ruby, key: FiberKey) -> Result<(), Error> {
        if self.due_unmasked(ruby, key) && safe_points::may_raise_here() {
            let pending_raise = self.state.borrow_mut().take_pending_raise(key);
            return pending_raise.map_or(Ok(()), |pending_raise| Err(pending_raise.to_error()));
        }
        Ok(())
    }

    /// The fiber goes on, and others have had their turns. Who sleeps for as long as a tick takes would be due just after
    /// the next tick, and so late by another one: that one is put off until then.
    fn expect_next_due(&self) {
        let now = Instant::now();
        if !self.state.borrow_mut().should_preempt(now) {
            self.preemption.tick_suppression.set(TickSuppression::Expected);
            self.suppress_ticks(now);
        }
    }

    /// Like [`Scheduler::raise_here`]; what cannot be raised now is due at the next tick, or in the fiber's next hook.
    fn raise_or_keep(&self, ruby: &Ruby, current: PinnedValue, raised: &Error) {
        let may_raise = error::exception_of(raised)
            .is_none_or(|exception| safe_points::may_raise_here() && !self.is_masked(ruby, exception));
        if may_raise && self.raise_here(ruby, current, raised).is_ok() {
            return;
        }
        self.try_again_soon();
        let Some(exception) = error::exception_or_stop(ruby, raised) else { return };
        let pending_raise =
            PendingRaise { exception: PinnedValue::new(exception), message: None, scope: RaiseScope::Fiber };
        let mut state = self.state.borrow_mut();
        match state.fibers.find(current).or_else(|| state.current().map(|(_, running)| running)) {
            Some(key) => state.send_raise(key, pending_raise),
            None => state.defer_raise(current, pending_raise),
        }
    }

    /// Has an error raised where the fiber was preempted. A `Thread#kill` ends it there, too.
    ///
    /// Ruby's `Fiber#kill` is no exception, and cannot be sent on: a fiber of ours, or a yielding one, gets
    /// `Heddle::Stop` instead, which its outermost frame takes for the kill. Another one ends when it is switched to by
    /// somebody else than the scheduler. Either is not preempted any more, as Ruby would kill it again and again.
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
