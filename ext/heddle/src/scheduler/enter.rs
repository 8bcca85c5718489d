//! The beginning and the end of a hook.

use magnus::{Error, Ruby, Value};

use super::Scheduler;
use super::options::Preempt;
use super::record::{FiberKey, Record};
use super::state::State;
use crate::ruby::{fiber, pending_interrupts, thread};
use crate::ticker::foreign_ticker;

/// A hook that is under way in a fiber. It ends when this is dropped.
pub struct HookGuard<'a> {
    scheduler: &'a Scheduler,
    /// The fiber.
    pub key: FiberKey,
    keeps_wake_ups: bool,
}

impl<'a> HookGuard<'a> {
    /// For a hook that [`State::enter_hook`] has counted.
    #[inline]
    pub fn new(scheduler: &'a Scheduler, key: FiberKey) -> Self {
        HookGuard { scheduler, key, keeps_wake_ups: false }
    }

    /// For code that counts as a hook but may begin between any two instructions of the program, as a preemption does.
    /// An `unblock` that arrives meanwhile is kept for the fiber's next hook: the fiber may be about to call `block`,
    /// because its condition did not hold when it checked.
    pub fn keep_wake_ups(mut self) -> Self {
        self.keeps_wake_ups = true;
        self
    }
}

impl Drop for HookGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        let mut state = self.scheduler.state.borrow_mut();
        let Some(record) = state.fibers.get_mut(self.key) else { return };
        record.leave_hook(self.keeps_wake_ups);
        let is_outermost = record.hook_depth == 0 && !record.managed;
        if !record.pending_raises.is_empty() {
            state.return_raises(self.key);
        }
        if is_outermost {
            state.unregister(self.key);
        }
    }
}

impl Scheduler {
    /// Called first in each hook that only the owner's fibers may call.
    ///
    /// # Errors
    /// FiberError on another thread, as Ruby raises it for a fiber of another thread.
    #[inline(always)]
    pub fn enter(&self, ruby: &Ruby) -> Result<HookGuard<'_>, Error> {
        self.enter_and(ruby, |_| ()).map(|(hook, ())| hook)
    }

    /// Like [`Scheduler::enter`], for a hook that reads or changes the fiber's record first.
    #[inline(always)]
    pub fn enter_and<T>(
        &self,
        ruby: &Ruby,
        mut first: impl FnMut(&mut Record) -> T,
    ) -> Result<(HookGuard<'_>, T), Error> {
        let (key, entered) = self.enter_with(
            ruby,
            #[inline(always)]
            |state, current| state.fibers.enter_hook(current).map(|record| (record.key, first(record))),
        )?;
        Ok((HookGuard::new(self, key), entered))
    }

    /// Like [`Scheduler::enter`], for a hook that needs the state at once, and that ends the hook itself. `begin` gets
    /// the state and the current fiber. If that is not the fiber that the scheduler switched to, `begin` does nothing,
    /// returns `None`, and is called again.
    #[inline(always)]
    pub fn enter_with<T>(
        &self,
        ruby: &Ruby,
        mut begin: impl FnMut(&mut State, Value) -> Option<T>,
    ) -> Result<T, Error> {
        if self.is_inherited() {
            self.after_fork(ruby);
        }
        self.allow_ticks();
        let current = fiber::current(ruby);
        loop {
            if let Some(entered) = begin(&mut self.state.borrow_mut(), current) {
                return Ok(entered);
            }
            self.enter_unexpected(ruby, current)?;
        }
    }

    /// The current fiber is not the one that the scheduler switched to: it is the root, or a fiber that another fiber
    /// or the program has resumed. Or this is the first hook.
    #[cold]
    fn enter_unexpected(&self, ruby: &Ruby, current: Value) -> Result<FiberKey, Error> {
        self.expect_owner(ruby)?;
        if self.owner.thread.get().is_none() {
            fiber::ensure_current(ruby)?;
            pending_interrupts::find(ruby)?;
            self.find_masks(ruby);
            let thread = thread::current(ruby);
            self.owner.set_thread(thread);
            if self.io.opened_by.get().is_none_or(|opened_by| opened_by != thread) {
                self.io.reactor.borrow_mut().take();
            }
        }
        if self.io.reactor.borrow().is_none() {
            self.open(ruby)?;
        }
        self.watch_stalls(ruby)?;
        self.guard_signals(ruby)?;
        self.make_current(ruby, current)
    }

    /// Notes that this fiber is the current one, and registers it if it is unknown.
    pub fn make_current(&self, ruby: &Ruby, current: Value) -> Result<FiberKey, Error> {
        let found = self.state.borrow().fibers.find(current);
        let key = match found {
            Some(key) => key,
            None => {
                let blocking = fiber::is_current_blocking(ruby)?;
                // A YieldingFiber is never a blocking one.
                let yielding = !blocking
                    && self.options.borrow().preempt.preempts_yielding()
                    && foreign_ticker::yield_state_of(current).is_some();
                self.register(current, blocking, yielding)
            }
        };
        let mut state = self.state.borrow_mut();
        state.note_resumer(key);
        state.set_current(key);
        drop(state);
        Ok(key)
    }

    /// Registers a fiber that this scheduler has not made. The fiber that the scheduler switched to last has resumed
    /// it, so both are preempted under the same rule.
    pub fn register(&self, current: Value, blocking: bool, yielding: bool) -> FiberKey {
        let mut state = self.state.borrow_mut();
        let resumer = state.fibers.resumer();
        let record = resumer.and_then(|key| state.fibers.get(key));
        let shielded = record.is_some_and(|record| record.is_shielded());
        let inherited = record.map(|record| record.preemptible);
        let account = record.map(|record| record.account);
        let record = state.fibers.insert(current, false, blocking, None);
        record.resumed_by = resumer;
        record.account = account.unwrap_or(record.account);
        let wanted = yielding || inherited.unwrap_or(self.options.borrow().preempt == Preempt::All);
        record.preemptible = wanted && !shielded;
        let key = record.key;
        if state.trace().is_some() {
            drop(state);
            self.trace_fiber(key, current);
        }
        key
    }

    /// Changes the number of blocks of the program's that run within the fiber's hooks.
    pub fn adjust_user_block_depth(&self, key: FiberKey, by: i32) {
        if let Some(record) = self.state.borrow_mut().fibers.get_mut(key) {
            record.user_block_depth = record.user_block_depth.saturating_add_signed(by);
        }
    }

    /// Runs a block of the program's within a hook. The fiber may be preempted in the block.
    pub fn run_user_block<T>(&self, key: FiberKey, block: impl FnOnce() -> T) -> T {
        self.adjust_user_block_depth(key, 1);
        let result = block();
        self.adjust_user_block_depth(key, -1);
        result
    }
}
