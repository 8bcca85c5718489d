//! The first and the last steps of a managed fiber.

use magnus::error::ErrorType;
use magnus::{Error, RArray, Ruby, TryConvert, Value, block::Proc, prelude::*};

use super::fibers::FiberKey;
use super::wait::Wait;
use super::{Scheduler, unhandled};
use crate::ruby::receiver::Receiver;
use crate::ruby::value::PinnedValue;
use crate::ruby::{block, error, fiber};

/// A fiber that has not started.
pub struct NewFiber {
    /// The fiber.
    pub fiber: PinnedValue,
    /// What it runs.
    pub block: Proc,
    /// Whether it may be preempted.
    pub preemptible: bool,
}

/// The code of every fiber of `Fiber.schedule`.
pub struct Scheduled;

/// Keeps the Proc that all these fibers are created with.
pub static SCHEDULED: fiber::Code = fiber::Code::new();

impl fiber::FiberBody for Scheduled {
    fn run(ruby: &Ruby, _: Value, start: &[Value]) -> Result<Value, Error> {
        let Some((scheduler, arguments)) = start.split_first() else {
            return Err(error::fiber_error(ruby, "only its scheduler can start this fiber"));
        };
        let scheduler = Receiver::<Scheduler>::try_convert(*scheduler)?;
        let (key, block) = scheduler.expect_unstarted(ruby)?;
        let arguments = arguments.first().map(|arguments| RArray::try_convert(*arguments)).transpose()?;
        scheduler.run_to_end(ruby, key, block, arguments)
    }
}

/// Runs a new fiber at once. When it first waits, or is preempted, the calling fiber continues, mostly ahead of the run
/// queue: see [`heddle_core::budget`].
pub fn start(
    ruby: &Ruby,
    scheduler: &Receiver<Scheduler>,
    caller: FiberKey,
    new_fiber: NewFiber,
    arguments: Option<RArray>,
) -> Result<Value, Error> {
    let child = new_fiber.fiber;
    let child_key = scheduler.register_unstarted(ruby, &new_fiber)?;
    scheduler.state.borrow_mut().inherit_scope(caller, child_key, true);
    let start = [scheduler.as_value(), arguments.map_or(ruby.qnil().as_value(), |arguments| arguments.as_value())];
    let start = if arguments.is_some() { &start[..] } else { &start[..1] };
    let start_child = || {
        {
            let mut state = scheduler.state.borrow_mut();
            state.enqueue_starter(caller);
            state.start_first_slice(child_key);
        }
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
        scheduler.state.borrow_mut().fibers.remove(child_key);
    }
    result.map(|()| child.get())
}

impl Scheduler {
    /// Registers a new fiber of this scheduler.
    pub fn register_unstarted(&self, ruby: &Ruby, new_fiber: &NewFiber) -> Result<FiberKey, Error> {
        if new_fiber.preemptible {
            self.expect_ticks(ruby)?;
        }
        let mut state = self.state.borrow_mut();
        state.counters.spawned += 1;
        let block = PinnedValue::assume_marked(new_fiber.block.as_value());
        let record = state.fibers.insert(new_fiber.fiber, true, false, Some(block));
        record.wait = Wait::NotStarted;
        record.preemptible = new_fiber.preemptible;
        let key = record.key;
        if state.trace.is_some() {
            drop(state);
            self.trace_fiber(key, new_fiber.fiber);
        }
        Ok(key)
    }

    /// The key and the block of the current fiber, which has just been started.
    ///
    /// # Errors
    /// FiberError if it is not an unstarted fiber of this scheduler.
    pub fn expect_unstarted(&self, ruby: &Ruby) -> Result<(FiberKey, Proc), Error> {
        let unstarted = {
            let state = self.state.borrow();
            let found = state.fibers.find(fiber::current());
            let record = found.and_then(|key| Some((key, state.fibers.get(key)?)));
            record
                .filter(|(_, record)| record.wait == Wait::NotStarted)
                .and_then(|(key, record)| Some((key, record.block?)))
        };
        match unstarted {
            Some((key, block)) => Ok((key, Proc::try_convert(block.get())?)),
            None => Err(error::fiber_error(ruby, "this fiber has already started, or belongs to another scheduler")),
        }
    }

    /// Runs the block of a fiber, with `arguments` if there are any. Then removes the fiber's record.
    pub fn run_to_end(
        &self,
        ruby: &Ruby,
        key: FiberKey,
        block: Proc,
        arguments: Option<RArray>,
    ) -> Result<Value, Error> {
        if let Some(record) = self.state.borrow_mut().fibers.get_mut(key) {
            record.wait = Wait::Nothing;
            record.prefetch_hints.begin();
        }
        let result = match arguments {
            Some(arguments) => block.call::<_, Value>(arguments),
            None => block::call(block),
        };
        let exit_observer = self.state.borrow_mut().end_block(key);
        let result = match exit_observer {
            Some(exit_observer) => notify_exit_observer(ruby, exit_observer, result),
            None => result.inspect_err(|error| self.count_failure(ruby, error)),
        };
        let result = result.or_else(|error| unhandled::settle(ruby, block, error));
        self.ended_stacks.add(ruby);
        // Ruby decides which fiber continues; see `FiberState`.
        self.state.borrow_mut().end_fiber(key);
        result
    }
}

impl Scheduler {
    /// Counts an error that has ended a fiber. The exit observers of other fibers count theirs.
    fn count_failure(&self, ruby: &Ruby, error: &Error) {
        let is_end = error::stop_class(ruby).is_ok_and(|stop| error.is_kind_of(stop));
        if !is_end && error::exception_of(error).is_some() && !unhandled::propagates_to_thread(ruby, error) {
            self.state.borrow_mut().counters.failed += 1;
        }
    }
}

/// Notifies the exit observer of a fiber how the fiber ended. An error that the observer raises replaces the fiber's
/// result.
fn notify_exit_observer(ruby: &Ruby, exit_observer: PinnedValue, result: Result<Value, Error>) -> Result<Value, Error> {
    let nil = ruby.qnil().as_value();
    let notified: Result<Value, Error> = match &result {
        Ok(value) => exit_observer.get().funcall("returned", (*value,)),
        Err(error) if error::stop_class(ruby).is_ok_and(|stop| error.is_kind_of(stop)) => {
            exit_observer.get().funcall("returned", (nil,))
        }
        Err(error) => match error.error_type() {
            ErrorType::Exception(exception) if !unhandled::propagates_to_thread(ruby, error) => {
                exit_observer.get().funcall("failed", (*exception,))
            }
            // The error propagates to the root. Or the fiber is being killed: if anything were raised meanwhile, Ruby
            // would forget the kill.
            _ => exit_observer.get().funcall("killed", ()),
        },
    };
    notified.and(result)
}
