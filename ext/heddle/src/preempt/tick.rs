//! Preempts a fiber that computes: at a tick, in the postponed job that Ruby runs at its next safe point.
//!
//! The fiber parks within the job, as it would in a hook. Ruby would swallow an exception raised in the job. So it goes
//! to the thread's list of pending interrupts, and Ruby raises it where the fiber was preempted (see `safe_points.rs`).

use std::time::Instant;

use heddle_core::queue::tick::{self, Action, TimeToYield};
use magnus::{Error, Ruby, Value, prelude::*};
use nix::errno::Errno;

use super::{foreign_fibers, safe_points};
use crate::ruby::outcome::RubyOutcome;
use crate::ruby::pending_interrupts::Deferred;
use crate::ruby::{error, fiber, interrupts, pending_interrupts, postponed_job, thread};
use crate::scheduler::options::Preempt;
use crate::scheduler::raise::{PendingRaise, RaisePoint, RaiseScope};
use crate::scheduler::record::FiberKey;
use crate::scheduler::root_interrupts::Interrupts;
use crate::scheduler::state::{Pending, Requeue};
use crate::scheduler::ticking::NextBranch;
use crate::scheduler::{HookGuard, Scheduler};
use crate::ticker::Ticker;
use crate::ticker::foreign_ticker::yield_state_of;
use crate::ticker::throttle::Suppression;

/// The job.
struct Tick;

/// Finishes the job when dropped. Restores errno, since the job may have interrupted a C function.
struct FinishJob {
    errno: i32,
    _suppression: Suppression,
}

impl Drop for FinishJob {
    fn drop(&mut self) {
        Errno::set_raw(self.errno);
    }
}

impl postponed_job::Job for Tick {
    fn run(ruby: &Ruby) {
        let _finish = FinishJob { errno: Errno::last_raw(), _suppression: Suppression::begin() };
        match Scheduler::of_thread(ruby) {
            Some(scheduler) => scheduler.tick(ruby),
            None => foreign_fibers::tick(ruby),
        }
    }
}

/// Preregisters the job with Ruby.
pub fn preregister_job(ruby: &Ruby) {
    postponed_job::preregister::<Tick>(ruby);
}

/// What a tick has found.
struct Finding<'a> {
    scheduler: &'a Scheduler,
    ruby: &'a Ruby,
    now: Instant,
    time_to_yield: TimeToYield,
    /// The fiber in which an exception is pending.
    raising: Option<FiberKey>,
    /// See [`Scheduler::may_unwind`].
    may_unwind: bool,
}

impl tick::Finding for Finding<'_> {
    fn time_to_yield(&self) -> TimeToYield {
        self.time_to_yield
    }

    fn is_raise_pending(&self) -> bool {
        self.raising.is_some()
    }

    fn is_used_up(&self) -> bool {
        self.scheduler.state.borrow().fibers.queue().is_used_up(self.now)
    }

    fn may_raise(&self) -> bool {
        !self.may_unwind && self.scheduler.may_raise_here(self.ruby)
    }

    fn may_switch(&self) -> bool {
        safe_points::may_switch_here(self.ruby)
            && !self.scheduler.is_in_cooperative_code(self.ruby)
            && !interrupts::is_trap_pending(self.ruby)
    }
}

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
        let value = result?;
        if self.preemption.missed_tick.get() {
            self.catch_up_missed_tick(ruby)?;
        }
        Ok(value)
    }

    /// A tick has arrived in a critical section that has ended now. Without this, a fiber that runs one critical
    /// section after the other would never be preempted.
    #[cold]
    fn catch_up_missed_tick(&self, ruby: &Ruby) -> Result<(), Error> {
        let current = fiber::current(ruby);
        let Some(Some(running)) = self.preemptible_current(ruby, current) else { return Ok(()) };
        self.preemption.missed_tick.set(false);
        if self.is_in_cooperative_code(ruby) {
            return Ok(());
        }
        let hook = self.enter(ruby)?.keep_wake_ups();
        self.poll_at_tick(ruby)?;
        self.raise_unmasked(ruby, running)?;
        match self.time_to_yield(Instant::now()) {
            TimeToYield::Now => {}
            TimeToYield::In(time) => {
                self.expect_tick_in(time);
                return Ok(());
            }
            TimeToYield::Unknown => return Ok(()),
        }
        self.yield_masked(ruby, current, hook.key)?;
        self.raise_unmasked(ruby, running)
    }

    /// Raises the next exception that is pending in the fiber, unless the current masks hold it back.
    pub(super) fn raise_unmasked(&self, ruby: &Ruby, key: FiberKey) -> Result<(), Error> {
        let Some(pending_raise) = self.take_unmasked_raise(ruby, key) else { return Ok(()) };
        self.state.borrow_mut().release_record(key);
        Err(pending_raise.to_error())
    }

    /// Like [`Scheduler::yield_preempted`], where an exception can be raised. One that was raised into the fiber
    /// meanwhile, and that the fiber masks, stays pending.
    pub(super) fn yield_masked(&self, ruby: &Ruby, current: Value, key: FiberKey) -> Result<(), Error> {
        match self.yield_preempted(ruby, key) {
            Err(raised) if error::exception_of(&raised).is_some_and(|exception| self.is_masked(ruby, exception)) => {
                self.keep_raise(ruby, current, &raised);
                Ok(())
            }
            yielded => yielded,
        }
    }

    /// Polls, unless another fiber is runnable and the last poll was just now. Fibers whose sleep has ended run next.
    fn poll_at_tick(&self, ruby: &Ruby) -> Result<(), Error> {
        let polls = {
            let (mut state, now) = (self.state.borrow_mut(), Instant::now());
            // A deadline of the running fiber may have passed.
            state.expire(now);
            !state.fibers.queue().has_unpreempted() || state.budget.is_poll_late(now)
        };
        if polls {
            self.poll(ruby)?;
        }
        self.state.borrow_mut().prefer_sleepers();
        Ok(())
    }

    /// The fiber yields as a preempted one, until it is picked again.
    fn yield_preempted(&self, ruby: &Ruby, key: FiberKey) -> Result<(), Error> {
        self.preemption.preemptions.set(self.preemption.preemptions.get() + 1);
        self.yield_within(ruby, key, Requeue::Preempted(Instant::now())).map(|_| ())
    }

    /// A tick has arrived. Called from Ruby's postponed job, at a safe point, in the running fiber.
    pub fn tick(&self, ruby: &Ruby) {
        if self.is_inherited() || !self.is_owned_by(thread::current(ruby)) {
            return;
        }
        let branch = NextBranch::pass(&self.preemption.next_branch);
        self.look_at_stall(ruby);
        self.poll_for_closers(ruby);
        if pending_interrupts::is_sent(ruby) {
            return interrupts::request_check(ruby);
        }
        let Some(current) = fiber::ensure_current(ruby).not_an_interrupt("no memory for the root fiber's object")
        else {
            return;
        };
        let is_shielded = self.is_shielded(current);
        let may_unwind = !is_shielded && self.may_unwind(ruby, current);
        let own = if is_shielded { None } else { self.own_next(ruby, current) };
        if let Some(own) = own {
            if may_unwind || !safe_points::may_raise_here(ruby) {
                return self.try_again_soon();
            }
            if pending_interrupts::raise_next(ruby, own).deferred() != Some(true) {
                pending_interrupts::defer(ruby, &error::make_exception(own, None));
            }
            return;
        }
        if self.is_root_wanted(ruby) && !self.handles_interrupts(current) {
            return self.yield_to_root(ruby, current, may_unwind);
        }
        if self.is_explored() {
            return match branch {
                Some(branch) => self.pass_branch(ruby, current, branch),
                None => self.pass_tick(ruby, current),
            };
        }
        let Some(running) = self.preemptible_current(ruby, current) else { return };
        if self.poll_at_tick(ruby).deferred().is_none() {
            return;
        }
        // A masked exception is checked again when other fibers are runnable: Ruby does not report the end of a mask.
        let raising = running.filter(|running| self.has_unmasked_raise(ruby, *running));
        running.inspect(|running| self.expect_raise_of_resumer(ruby, *running));
        let now = Instant::now();
        self.preemption.last_tick.set(Some(now));
        let time_to_yield = self.time_to_yield(now);
        let action = tick::decide(&Finding { scheduler: self, ruby, now, time_to_yield, raising, may_unwind });
        if time_to_yield != TimeToYield::Now && !matches!(action, Action::Raise { .. }) {
            self.state.borrow_mut().could_preempt(now);
        }
        match action {
            Action::Raise { yields_next } => {
                if yields_next {
                    self.try_again_soon();
                }
                raising.inspect(|running| self.raise_now(ruby, current, *running));
            }
            Action::Preempt => self.preempt_current(ruby, current, may_unwind),
            Action::TryAgain => self.try_again_soon(),
            Action::ComeIn(time) => self.expect_tick_in(time),
            Action::Suppress => self.suppress_ticks(ruby, now),
        }
    }

    /// See [`State::take_unwinding`](crate::scheduler::state::State::take_unwinding). What the fiber has raised in its own
    /// thread may unwind it, too. Not for a fiber that is shielded: it would not be known any more when it leaves the hook.
    fn may_unwind(&self, ruby: &Ruby, current: Value) -> bool {
        let has_raised_own = self.may_have_own() && self.forget_raised(ruby, current);
        self.state.borrow_mut().take_unwinding(current) || has_raised_own
    }

    fn may_raise_here(&self, ruby: &Ruby) -> bool {
        safe_points::may_raise_here(ruby) && !self.is_in_cooperative_code(ruby)
    }

    /// Whether an exception is pending in the fiber that the current masks let through.
    pub(super) fn has_unmasked_raise(&self, ruby: &Ruby, key: FiberKey) -> bool {
        self.find_unmasked_raise(ruby, key).is_some()
    }

    fn find_unmasked_raise(&self, ruby: &Ruby, key: FiberKey) -> Option<Pending> {
        self.detect_swallowed_at_tick(key);
        let mut masked = Vec::new();
        loop {
            let (found, exception) = self.state.borrow().find_pending(key, &masked)?;
            if !self.is_masked(ruby, exception) {
                return Some(found);
            }
            masked.push(error::class_of(exception).into());
        }
    }

    fn take_unmasked_raise(&self, ruby: &Ruby, key: FiberKey) -> Option<PendingRaise> {
        let found = self.find_unmasked_raise(ruby, key)?;
        self.state.borrow_mut().take_found(key, found)
    }

    /// What is pending in the fiber that has resumed `running` is raised when that is preempted, unless it is masked.
    fn expect_raise_of_resumer(&self, ruby: &Ruby, running: FiberKey) {
        let outermost = self.state.borrow().outermost(running);
        if outermost != running && self.has_unmasked_raise(ruby, outermost) {
            self.state.borrow_mut().raise_in_generator(running, RaisePoint::Program);
        }
    }

    /// Raises the next exception that is pending in `running`. If it cannot be raised now, it stays pending.
    fn raise_now(&self, ruby: &Ruby, current: Value, running: FiberKey) {
        let Some(pending_raise) = self.take_unmasked_raise(ruby, running) else { return };
        if self.raise_here(ruby, current, &pending_raise.to_error()) {
            self.state.borrow_mut().release_record(running);
        } else {
            self.state.borrow_mut().send_raise(running, pending_raise);
        }
    }

    /// The scheduler's current fiber, if the fiber that runs may be preempted now. `current` is the running fiber: the
    /// scheduler's current fiber, or one that it has resumed. `Some(None)` if `current` may be preempted and the
    /// scheduler has no current fiber. Stops the ticker if no fiber is left to be preempted.
    pub(super) fn preemptible_current(&self, ruby: &Ruby, current: Value) -> Option<Option<FiberKey>> {
        let preempt = self.options.borrow().preempt;
        let state = self.state.borrow();
        if state.endings.is_ending(current) {
            return None;
        }
        // A fiber that has no record is preempted as the fiber is that has resumed it.
        let running = state.fibers.find_running(current);
        let record = running.and_then(|key| state.fibers.get(key));
        if record.is_some_and(|record| record.killed && record.fiber == current) {
            // Its `ensure` clauses would not run to their end.
            return None;
        }
        let blocking = fiber::current_scheduler(ruby).is_none();
        // While all fibers are asked to end, a fiber that computes must not keep the others from ending.
        let is_stopping = state.raises.is_stopping();
        let preemptible = match record {
            Some(record) if record.preemptible || is_stopping && !record.blocking => true,
            Some(record) if record.fiber == current => false,
            _ if blocking => false,
            _ => preempt == Preempt::All || (preempt.preempts_yielding() && yield_state_of(current).is_some()),
        };
        if !preemptible {
            if !state.fibers.queue().has_preempted()
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
    pub(super) fn preempt_current(&self, ruby: &Ruby, current: Value, may_unwind: bool) {
        let Some(hook) = self.enter(ruby).map(HookGuard::keep_wake_ups).deferred() else { return };
        let key = hook.key;
        let yielded = self.yield_preempted(ruby, key);
        self.continue_preempted(ruby, current, hook, yielded, may_unwind);
    }

    /// Whether the job has interrupted the fiber in a hook or a critical section, or as it ends: nothing in a fiber that
    /// ends would rescue what is raised in it.
    fn is_shielded(&self, current: Value) -> bool {
        let state = self.state.borrow();
        let key = state.fibers.find_running(current);
        state.endings.is_ending(current)
            || key.and_then(|key| state.fibers.get(key)).is_some_and(|record| record.is_shielded())
    }

    /// The fiber in which Ruby runs the job yields, and the root checks its interrupts.
    fn yield_to_root(&self, ruby: &Ruby, current: Value, may_unwind: bool) {
        self.root.phase.set(Interrupts::ForRoot);
        if self.is_shielded(current) || !safe_points::may_switch_here(ruby) {
            // The next tick tries again, unless a hook comes first.
            self.force_ticks(ruby);
            return self.try_again_soon();
        }
        if self.state.borrow().fibers.find(current).is_none() {
            // Registered as non-blocking in any case, since the fiber is not the root: it must run again before the
            // scheduler may close.
            self.register(current, false, false);
        }
        let Some(hook) = self.enter(ruby).map(HookGuard::keep_wake_ups).deferred() else { return };
        let key = hook.key;
        // First in the queue: a fiber that is not preemptible may rely on no other fiber running, so it continues as
        // soon as the root has checked.
        let yielded = self.yield_within(ruby, key, Requeue::First).map(|_| ());
        self.continue_preempted(ruby, current, hook, yielded, may_unwind);
    }

    /// The fiber continues where the job has interrupted it. `yielded` has the error that was raised into it
    /// meanwhile.
    fn continue_preempted(
        &self,
        ruby: &Ruby,
        current: Value,
        hook: HookGuard<'_>,
        yielded: Result<(), Error>,
        may_unwind: bool,
    ) {
        let key = hook.key;
        if let Err(raised) = yielded {
            // Within the hook, since an unmanaged fiber may have no record after it.
            self.raise_or_keep(ruby, current, &raised, may_unwind);
            return;
        }
        let has_raise = self.has_unmasked_raise(ruby, key);
        // Where it may not be raised, it is not taken: the block that it is meant for may end before the next safe point.
        if has_raise && !may_unwind && self.may_raise_here(ruby) {
            self.raise_now(ruby, current, key);
        }
        drop(hook);
        if has_raise { self.try_again_soon() } else { self.expect_next_yield(ruby) }
    }

    /// The fiber continues after other fibers have run. A fiber that sleeps for the length of a tick would be runnable
    /// just after the next tick, and so run a whole tick late. Therefore the next tick is postponed until that fiber
    /// is runnable.
    fn expect_next_yield(&self, ruby: &Ruby) {
        let now = Instant::now();
        if !self.state.borrow_mut().should_preempt(now) {
            self.preemption.is_quiet.set(true);
            self.suppress_ticks(ruby, now);
        }
    }

    /// Like [`Scheduler::raise_here`]. An exception that cannot be raised now is raised at the next tick, or in the
    /// fiber's next hook.
    pub(super) fn raise_or_keep(&self, ruby: &Ruby, current: Value, raised: &Error, may_unwind: bool) {
        let may_raise = error::exception_of(raised)
            .is_none_or(|exception| !may_unwind && self.may_raise_here(ruby) && !self.is_masked(ruby, exception));
        if may_raise && self.raise_here(ruby, current, raised) {
            return;
        }
        self.try_again_soon();
        self.keep_raise(ruby, current, raised);
    }

    /// An exception that the program has raised into the fiber with `Fiber#raise`, and that cannot be raised now, stays
    /// pending. The fiber is in a hook.
    fn keep_raise(&self, ruby: &Ruby, current: Value, raised: &Error) {
        let Some(exception) = error::exception_or_stop(ruby, raised) else { return };
        let pending_raise = PendingRaise::new(exception, None, RaiseScope::Fiber);
        let mut state = self.state.borrow_mut();
        match state.fibers.find_running(current) {
            Some(key) => state.send_raise(key, pending_raise),
            None => state.raises.defer(current, pending_raise),
        }
    }

    /// Raises an error where the fiber was preempted. A `Thread#kill` ends the fiber there, too.
    ///
    /// Ruby's `Fiber#kill` is no exception, and cannot be sent on. A managed or a yielding fiber gets `Heddle::Stop`
    /// instead, which its outermost frame takes for the kill. Any other fiber ends when the program, and not the
    /// scheduler, switches to it. None of them is preempted any more, as Ruby would kill it again and again.
    ///
    /// Returns false if the error cannot be raised now. What another thread raises meanwhile, the root raises.
    fn raise_here(&self, ruby: &Ruby, current: Value, raised: &Error) -> bool {
        if pending_interrupts::repeat_kill(ruby, raised) {
            return true;
        }
        let raise = |exception| safe_points::raise_after_job(ruby, exception).deferred() == Some(true);
        if let Some(exception) = error::exception_of(raised) {
            return raise(exception);
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
        if !managed && yield_state_of(current).is_none() {
            return true;
        }
        let stop = error::stop_class(ruby).not_an_interrupt("never: Heddle defines the class");
        stop.is_some_and(|stop| raise(stop.as_value()))
    }
}
