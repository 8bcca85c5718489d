//! From `close` to the last fiber's end.

use std::time::Duration;

use heddle_core::threads::workers::WorkerPool;
use magnus::{Error, Ruby, prelude::*};

use super::record::FiberKey;
use super::state::ending::LossCause;
use super::wait::Wait;
use super::waiting::Outcome;
use super::{Scheduler, registry};
use crate::ruby::nogvl::without_gvl;
use crate::ruby::outcome::{Ignore, RubyOutcome};
use crate::ruby::{error, fiber, interrupts, thread};

/// Why it does not matter that the backend has failed.
const FAILED: &str = "the backend waits once more when it is dropped";
/// How often a thread that waits for operations only looks for interrupts.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// The same where an interrupt is masked, and so keeps the thread from waiting without the GVL.
const MASKED_CHECK_INTERVAL: Duration = Duration::from_millis(1);

impl Scheduler {
    /// Waits for the end of all other fibers, or ends them.
    pub fn finish(&self, ruby: &Ruby) -> Result<(), Error> {
        self.expect_owner(ruby)?;
        if self.io.reactor.borrow().is_none() {
            return Ok(());
        }
        // A fiber that this scheduler does not manage has forked without a block, and ended: to Ruby it was the root
        // fiber, and no other fiber could return to it. The others end with the process, as on Ruby 4.0.
        if !fiber::is_alive(fiber::current(ruby)) {
            return Ok(());
        }
        let hook = self.enter(ruby)?;
        let drained = match thread::is_aborting(ruby) {
            Ok(is_aborting) if is_aborting || self.is_closed_for_all(ruby) => {
                return self.cancel_all(ruby, hook.key);
            }
            Ok(_) => self.drain(ruby, hook.key),
            // What a signal or another thread has raised at the end of that call.
            Err(error) => Err(error),
        };
        match drained {
            Ok(()) => Ok(()),
            Err(error) => Err(error).and_ensure(|| self.cancel_all(ruby, hook.key)),
        }
    }

    /// Whether the scheduler is closed because of Ctrl-C, another signal, an exception that another thread has raised
    /// here, or what has ended a fiber and ends the thread, too: an `exit`, or an error with `abort_on_exception`.
    fn is_closed_for_all(&self, ruby: &Ruby) -> bool {
        error::current(ruby).is_some_and(|error| error.is_kind_of(ruby.exception_signal()) || self.ends_all(&error))
    }

    /// Waits until all other fibers have ended. An exception that is raised here (an `exit` in one of them, Ctrl-C,
    /// `Thread#raise`) ends the wait.
    pub fn drain(&self, ruby: &Ruby, key: FiberKey) -> Result<(), Error> {
        self.wait(ruby, key, Wait::Drain, None, |state| (state.fibers.awaited_count(key) == 0).then_some(()))
            .map(|_: Outcome<()>| ())
    }

    /// Ends all other fibers, running their `ensure` clauses, and waits for that. An `exit` in such a clause, or
    /// an error with `abort_on_exception`, ends no other one.
    fn cancel_all(&self, ruby: &Ruby, key: FiberKey) -> Result<(), Error> {
        let stop = error::stop_class(ruby)?;
        self.state.borrow_mut().stop_all(stop.as_value());
        self.force_ticks(ruby);
        let mut last = Ok(());
        let result = loop {
            match self.drain(ruby, key) {
                Ok(()) => break Ok(()),
                Err(error) if self.ends_all(&error) && !self.is_interrupted_by(&error) => {
                    last = Err(error);
                }
                Err(error) => break Err(error),
            }
        };
        self.state.borrow_mut().raises.end_stopping();
        match result {
            Ok(()) => last,
            // A second interrupt came while an `ensure` clause did not end: the remaining fibers are abandoned.
            Err(error) => Err(error).and_ensure(|| self.release(ruby)),
        }
    }

    /// Releases the backend and the workers. A later hook creates new ones.
    ///
    /// # Errors
    /// Those of [`Scheduler::unguard_signals`]. Everything has been released even then.
    pub fn release(&self, ruby: &Ruby) -> Result<(), Error> {
        // First, as other threads that close an IO must find the operations on it.
        let ended = self.end_operations(ruby);
        registry::remove_open(ruby, self);
        let unguarded = self.unguard_signals(ruby);
        // Those of which the kernel does not tell end with the backend, before their fibers are forgotten.
        self.release_resources(false);
        let mut state = self.state.borrow_mut();
        state.counters.close();
        state.close_trace();
        state.close_accounts();
        let survivor = state.fibers.find(fiber::current(ruby));
        state.forget_other_fibers(ruby, survivor, LossCause::Close);
        // A later hook then takes the slow path, which sets up a backend. Any thread may call it.
        state.fibers.clear_current();
        self.owner.thread.set(None);
        unguarded.and_ensure(|| ended)
    }

    /// Cancels all operations, and waits for their ends without the GVL: nothing cancels a read of a file that another
    /// machine or another process stores, and its memory must last until then.
    ///
    /// # Errors
    /// What was raised in the thread meanwhile. The operations have ended even then.
    fn end_operations(&self, ruby: &Ruby) -> Result<(), Error> {
        let mut raised = Ok(());
        loop {
            let mut slot = self.io.reactor.borrow_mut();
            let Some(reactor) = slot.as_mut() else { return raised };
            let tokens: Vec<_> = self.state.borrow().operations.tokens().collect();
            tokens.into_iter().for_each(|token| reactor.backend.cancel(token));
            if reactor.poll_now().ignored(FAILED).is_none() {
                return raised;
            }
            self.state.borrow_mut().complete(reactor.completions());
            if reactor.backend.is_idle() {
                return raised;
            }
            let backend = &mut reactor.backend;
            let waited = without_gvl(ruby, || backend.wait(Some(CHECK_INTERVAL)), &|| {});
            // An interrupt was pending already. It may be masked, and then stays.
            let waited = waited.unwrap_or_else(|| backend.wait(Some(MASKED_CHECK_INTERVAL)));
            if waited.ignored(FAILED).is_none() {
                return raised;
            }
            drop(slot);
            if let Err(error) = interrupts::check(ruby) {
                raised = Err(error);
            }
        }
    }

    /// Releases the ticker, the backend and the workers, and ends the watch for stalls. `inherited` says that they
    /// belong to the parent of this process.
    pub fn release_resources(&self, inherited: bool) {
        self.release_ticker(inherited);
        self.unwatch_stalls(inherited);
        let reactor = if inherited { self.io.reactor.take_inherited() } else { self.io.reactor.borrow_mut().take() };
        if let Some(reactor) = reactor {
            reactor.release(inherited);
        }
        *self.io.waker.borrow_mut() = None;
        let pools = self.io.take_pools();
        if inherited {
            pools.for_each(WorkerPool::abandon);
        }
    }
}
