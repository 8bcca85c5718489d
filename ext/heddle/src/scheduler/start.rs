//! The first and the last steps of a managed fiber.

use std::time::Instant;

use magnus::error::ErrorType;
use magnus::exception::Exception;
use magnus::{Error, RArray, RModule, Ruby, Value, block::Proc, prelude::*};

use super::record::FiberKey;
use super::wait::Wait;
use super::{Scheduler, ended_stacks};
use crate::ruby::constant::Constant;
use crate::ruby::outcome::RubyOutcome;
use crate::ruby::receiver::Receiver;
use crate::ruby::{error, fiber};

/// A fiber that has not started.
pub struct NewFiber {
    /// The fiber.
    pub fiber: Value,
    /// What it runs.
    pub block: Proc,
    /// Whether it may be preempted.
    pub preemptible: bool,
}

/// What a new fiber belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Membership {
    /// The scope of the fiber that starts it, which waits for it.
    ScopeOfStarter,
    /// The scheduler alone.
    Scheduler,
}

/// How the block of a fiber has ended.
pub enum BlockEnd {
    /// It has returned.
    Returned(Value),
    /// It has raised an exception.
    Failed(Exception),
    /// The fiber is being killed.
    Killed,
}

/// Runs a new fiber at once. When it first waits, or is preempted, the calling fiber continues, mostly ahead of the run
/// queue: see [`heddle_core::queue::run_queue`].
pub fn start(
    ruby: &Ruby,
    scheduler: &Receiver<Scheduler>,
    caller: FiberKey,
    new_fiber: NewFiber,
    membership: Membership,
    arguments: Option<RArray>,
) -> Result<Value, Error> {
    let child = new_fiber.fiber;
    let child_key = scheduler.register_unstarted(ruby, &new_fiber)?;
    if membership == Membership::ScopeOfStarter {
        scheduler.state.borrow_mut().inherit_scope(caller, child_key, true);
    }
    let start = [scheduler.as_value(), arguments.map_or(ruby.qnil().as_value(), |arguments| arguments.as_value())];
    let start = if arguments.is_some() { &start[..] } else { &start[..1] };
    let start_child = || {
        scheduler.state.borrow_mut().start_first_slice(caller, child_key, Instant::now);
        scheduler.park_after_start(ruby, caller, child, start)
    };
    let has_started = || {
        let state = scheduler.state.borrow();
        state.fibers.get(child_key).is_none_or(|record| record.wait != Wait::NotStarted)
    };
    let mut result = start_child();
    if let Err(error) = &result
        && !has_started()
        && error::is_lack_of_stacks(ruby, error)
        && scheduler.ended_stacks.collect(ruby)
    {
        result = start_child();
    }
    if !has_started() {
        // Ruby could not start the fiber.
        scheduler.state.borrow_mut().remove(child_key);
    }
    result.map(|()| child)
}

impl Scheduler {
    /// Registers a new fiber of this scheduler.
    pub fn register_unstarted(&self, ruby: &Ruby, new_fiber: &NewFiber) -> Result<FiberKey, Error> {
        if new_fiber.preemptible {
            self.expect_ticks(ruby)?;
        }
        let mut state = self.state.borrow_mut();
        state.counters.spawned += 1;
        let record = state.fibers.insert(new_fiber.fiber, true, false, Some(new_fiber.block.as_value()));
        record.wait = Wait::NotStarted;
        record.preemptible = new_fiber.preemptible;
        let key = record.key;
        if state.trace().is_some() {
            drop(state);
            self.trace_fiber(key, new_fiber.fiber);
        }
        Ok(key)
    }

    /// The current fiber has just been started. Returns its block.
    ///
    /// # Errors
    /// FiberError if it is not an unstarted fiber of this scheduler.
    pub fn begin_block(&self, ruby: &Ruby) -> Result<Value, Error> {
        let begun = self.ended_stacks.begin(ended_stacks::current_stack());
        let started = {
            let mut state = self.state.borrow_mut();
            let key = state.fibers.find(fiber::current(ruby));
            let record = key.and_then(|key| state.fibers.get_mut(key));
            let unstarted = record.filter(|record| record.wait == Wait::NotStarted);
            unstarted.and_then(|record| Some((record.block?, record.begin_block(begun))))
        };
        let Some((block, ticks_for)) = started else {
            return Err(error::fiber_error(ruby, "this fiber has already started, or belongs to another scheduler"));
        };
        // Since a spun fiber was created, a tick may have stopped the ticker because no other fiber needed it.
        if let Some(key) = ticks_for {
            self.tick_for(key);
        }
        Ok(block.get())
    }

    /// The block of the current fiber has raised an exception, and [`Scheduler::end_block`] follows. The fiber is
    /// neither preempted nor interrupted any more.
    pub fn shield_end(&self, ruby: &Ruby) {
        self.drop_own(ruby);
        let mut state = self.state.borrow_mut();
        let key = state.fibers.find(fiber::current(ruby));
        if let Some(record) = key.and_then(|key| state.fibers.get_mut(key)) {
            record.hook_depth += 1;
        }
    }

    /// The block of the current fiber has ended, and the fiber is about to. Removes the fiber's record.
    ///
    /// # Errors
    /// What ends the thread, too.
    pub fn end_block(&self, ruby: &Ruby, block: Value, ended: BlockEnd) -> Result<Value, Error> {
        self.drop_own(ruby);
        let key = self.state.borrow().fibers.find(fiber::current(ruby));
        let begun = key.and_then(|key| Some(self.state.borrow().fibers.get(key)?.begun));
        let observer = key.and_then(|key| self.state.borrow_mut().end_block(key));
        let result = match (ended, observer) {
            (BlockEnd::Failed(error), Some(observer)) => notify_of_failure(ruby, observer, error.into()),
            (BlockEnd::Failed(error), None) => {
                let error = error.into();
                self.count_failure(ruby, &error);
                Err(error)
            }
            (BlockEnd::Returned(value), Some(observer)) => notify(observer, "returned", &[value]).map(|_| value),
            (BlockEnd::Returned(value), None) => Ok(value),
            (BlockEnd::Killed, Some(observer)) => notify(observer, "killed", &[]),
            (BlockEnd::Killed, None) => Ok(ruby.qnil().as_value()),
        };
        // Ruby 4.0 takes the scheduler away in the child, which then calls no hook of it.
        let forked =
            self.state.borrow().forking_fiber().map(|(_, forked)| forked).filter(|forked| key == Some(*forked));
        let is_of_forked_child = forked.is_some() || self.is_inherited();
        let result = match result {
            // The process ends with the fiber, and Ruby reports the error.
            Err(error) if is_of_forked_child && !error::is_stop(&error) => Err(error),
            Err(error) => settle(ruby, block, error),
            returned => returned,
        };
        if let Some(begun) = begun {
            self.ended_stacks.add(ruby, begun);
        }
        self.note_end(&result);
        let result = match forked {
            Some(forked) => self.finish_forked_child(ruby, forked, result),
            None => result,
        };
        // Ruby decides which fiber continues; see `FiberState`.
        if let Some(key) = key {
            self.state.borrow_mut().end_fiber(key);
        }
        result
    }
}

impl Scheduler {
    /// Notes an error that leaves a fiber, and so ends the thread, too.
    fn note_end(&self, result: &Result<Value, Error>) {
        if let Err(error) = result
            && let Some(exception) = error::exception_of(error)
        {
            self.note_fatal(exception);
        }
    }

    /// A fiber that has forked without a block ends, and its process with it. To Ruby it is the root fiber, to which
    /// fibers return that end, and Ruby closes the scheduler when it is dead. So the other fibers end before that.
    fn finish_forked_child(&self, ruby: &Ruby, key: FiberKey, result: Result<Value, Error>) -> Result<Value, Error> {
        if self.state.borrow().fibers.awaited_count(key) == 0 {
            return result;
        }
        let result = result.and_ensure(|| self.finish(ruby));
        self.note_end(&result);
        result
    }

    /// Counts an error that has ended a fiber. The exit observers of other fibers count theirs.
    fn count_failure(&self, ruby: &Ruby, error: &Error) {
        if !error::is_stop(error) && error::exception_of(error).is_some() && !propagates_to_thread(ruby, error) {
            self.state.borrow_mut().counters.failed += 1;
        }
    }
}

/// Notifies the exit observer of a fiber. An error that the observer raises replaces the fiber's result.
fn notify(observer: Value, how: &str, arguments: &[Value]) -> Result<Value, Error> {
    observer.funcall(how, arguments)
}

/// Like [`notify`], for a block that has raised an error.
fn notify_of_failure(ruby: &Ruby, observer: Value, error: Error) -> Result<Value, Error> {
    let nil = ruby.qnil().as_value();
    match error.error_type() {
        _ if error::is_stop(&error) => Err(error).and_ensure(|| notify(observer, "returned", &[nil]).map(|_| ())),
        ErrorType::Exception(exception) if !propagates_to_thread(ruby, &error) => {
            let exception = exception.as_value();
            Err(error).and_ensure(|| notify(observer, "failed", &[exception]).map(|_| ()))
        }
        // The error propagates to the root, unless it has come from there.
        ErrorType::Exception(exception) => {
            let is_relayed = notify(observer, "killed", &[exception.as_value()])?.to_bool();
            if is_relayed { Ok(nil) } else { Err(error) }
        }
        ErrorType::Jump(_) | ErrorType::Error(..) => {
            Err(error).and_ensure(|| notify(observer, "killed", &[]).map(|_| ()))
        }
    }
}

/// Decides whether an error leaves its fiber. Ruby raises such an error in the fiber that continues, and so ends that
/// fiber, too. Therefore an error ends only its own fiber, and is reported as Ruby reports a thread's. An error that is
/// meant for the whole thread (`exit`, signals, `Thread#kill`) does propagate. Returns the fiber's value if the error
/// ends here, or the error if it propagates.
fn settle(ruby: &Ruby, block: Value, error: Error) -> Result<Value, Error> {
    let nil = ruby.qnil().as_value();
    if error::is_stop(&error) {
        return Ok(nil);
    }
    match error.error_type() {
        ErrorType::Exception(exception) if !propagates_to_thread(ruby, &error) => {
            static REPORTS: Constant = Constant::new(&["Heddle", "Reports"]);
            let aborts: bool = REPORTS.get::<RModule>(ruby)?.funcall("unhandled", (*exception, block))?;
            if aborts { Err(error) } else { Ok(nil) }
        }
        _ => Err(error),
    }
}

/// Whether the error is meant for the whole thread.
pub fn propagates_to_thread(ruby: &Ruby, error: &Error) -> bool {
    error.is_kind_of(ruby.exception_system_exit())
        || error.is_kind_of(ruby.exception_signal())
        || error.is_kind_of(ruby.exception_fatal())
}
