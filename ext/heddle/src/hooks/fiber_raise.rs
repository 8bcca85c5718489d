//! `Fiber#raise` and `Fiber#kill`, which switch straight into a waiting fiber without a hook.
//!
//! The target then enqueues the fiber that raised, which the scheduler takes to be its current fiber. That is wrong if
//! the current fiber has resumed a generator, and the generator raises. So `lib/heddle/patches/fiber.rb` tells
//! the scheduler which fiber raises.

use magnus::{Error, RArray, Ruby, Value, prelude::*};

use crate::ruby::receiver::Receiver;
use crate::ruby::{error, fiber};
use crate::scheduler::raise::{PendingRaise, RaiseScope};
use crate::scheduler::{HookGuard, Scheduler};
use crate::ticker::foreign_ticker;

/// Runs a block that raises into another fiber. The running fiber counts as being in a hook during the block.
pub fn raising(ruby: &Ruby) -> Result<Value, Error> {
    let Some(scheduler) = Scheduler::in_use(ruby) else { return ruby.yield_value(()) };
    let current = fiber::ensure_current(ruby)?;
    let running = scheduler.state.borrow().fibers.current();
    let key = match running {
        Some((running, key)) if running == current => key,
        _ => scheduler.make_current(ruby, current)?,
    };
    if let Some(record) = scheduler.state.borrow_mut().fibers.get_mut(key) {
        record.hook_depth += 1;
    }
    let result = ruby.yield_value(());
    if scheduler.is_in_use(ruby) {
        // Another fiber may have raised into this one during the block, and then must run again, too.
        scheduler.requeue_switcher(key);
        scheduler.state.borrow_mut().set_current(key);
        drop(HookGuard::new(&scheduler, key));
    }
    result
}

/// The exception of `Thread.current.raise` with these arguments, which Ruby may raise in the current fiber from now on.
pub fn raise_here(ruby: &Ruby, arguments: RArray) -> Result<Value, Error> {
    let exception = error::exception_from(arguments)?;
    if let Some(scheduler) = Scheduler::in_use(ruby) {
        fiber::ensure_current(ruby)?;
        scheduler.raises_own(ruby, exception);
    }
    Ok(exception)
}

/// Ruby has been asked to raise what [`raise_here`] has returned.
pub fn raised_here(ruby: &Ruby, exception: Value) {
    if let Some(scheduler) = Scheduler::in_use(ruby) {
        scheduler.has_raised_own(ruby, exception);
    }
}

/// Ends `target`, which the running fiber is about to kill, as a stop does, and then returns true.
///
/// A stop is an exception. So an `ensure` clause of the target can wait, where Ruby would raise the kill again at each
/// switch; and code that tells an exception from the end of a block, as a database transaction does, sees one.
pub fn killing(ruby: &Ruby, target: Value) -> Result<bool, Error> {
    let Some(scheduler) = Scheduler::in_use(ruby) else { return Ok(false) };
    let stop = error::stop_class(ruby)?.as_value();
    // Not while the state is borrowed mutably: on Ruby 3.3 and 3.4 this may let another Ractor collect.
    let is_yielding = foreign_ticker::yield_state_of(target).is_some();
    {
        let mut state = scheduler.state.borrow_mut();
        let Some(key) = state.fibers.find(target) else { return Ok(false) };
        let Some(record) = state.fibers.get_mut(key) else { return Ok(false) };
        if !record.stops_instead_of_being_killed(is_yielding) {
            record.killed = true;
            return Ok(false);
        }
        if std::mem::replace(&mut record.stopped_by_kill, true) {
            return Ok(true);
        }
        if record.end_requested {
            state.send_raise(key, PendingRaise::new(stop, None, RaiseScope::Fiber));
        } else {
            state.request_end(key, stop);
        }
    }
    scheduler.yield_now(ruby)?;
    Ok(true)
}

/// Whether all fibers of the scheduler are asked to end.
pub fn is_stopping(scheduler: Receiver<Scheduler>) -> bool {
    scheduler.state.borrow().raises.is_stopping()
}

/// `target` was killed. If it had not begun, Ruby has run nothing in it, and the scheduler learns of its end here.
pub fn killed(ruby: &Ruby, target: Value) {
    if let Some(scheduler) = Scheduler::in_use(ruby).filter(|_| !fiber::is_alive(target)) {
        scheduler.state.borrow_mut().forget_dead(target);
    }
}

/// Whether the running fiber is being killed: no exception tells its `ensure` clauses so.
pub fn is_being_killed(ruby: &Ruby) -> Result<bool, Error> {
    let Some(scheduler) = Scheduler::in_use(ruby) else { return Ok(false) };
    let current = fiber::ensure_current(ruby)?;
    let state = scheduler.state.borrow();
    let record = state.fibers.find(current).and_then(|key| state.fibers.get(key));
    Ok(record.is_some_and(|record| record.killed || record.is_being_killed()))
}
