//! The parts of cancellation: exceptions for other fibers, time limits, and shields. Not hooks:
//! `lib/heddle/structured` calls these methods.

use std::time::Instant;

use magnus::{Error, Module, RClass, Ruby, Value, method, prelude::*};

use crate::ruby::value::PinnedValue;
use crate::ruby::{error, time};
use crate::scheduler::Scheduler;
use crate::scheduler::fibers::FiberKey;
use crate::scheduler::raise::{Limit, PendingRaise, RaiseScope};
use crate::scheduler::shield::Shield;
use crate::scheduler::state::State;
use crate::scheduler::waiting::FOR_EVER;

/// Defines the methods.
pub fn define(class: RClass) -> Result<(), Error> {
    class.define_private_method("deliver", method!(deliver, 2))?;
    class.define_private_method("retract", method!(retract, 2))?;
    class.define_private_method("stop", method!(stop, 1))?;
    class.define_private_method("limit", method!(limit, 2))?;
    class.define_private_method("move_limit", method!(move_limit, 3))?;
    class.define_private_method("shield", method!(shield, 0))?;
    class.define_private_method("defer_raises", method!(defer_raises, 0))?;
    class.define_private_method("raise_deferred", method!(raise_deferred, 0))?;
    Ok(())
}

/// Sends an exception to a fiber, whatever the fiber waits for. Returns a number with which it can be retracted; nil
/// if this scheduler does not know the fiber. Any thread may call it.
fn deliver(ruby: &Ruby, scheduler: &Scheduler, target: Value, exception: Value) -> Result<Option<u64>, Error> {
    error::expect_fiber(ruby, target)?;
    let mut state = scheduler.state.borrow_mut();
    let Some(key) = state.fibers.find(PinnedValue::assume_marked(target)) else { return Ok(None) };
    let number = state.next_number();
    state.send_raise(
        key,
        PendingRaise {
            exception: PinnedValue::assume_marked(exception),
            message: None,
            scope: RaiseScope::Message(number),
        },
    );
    drop(state);
    scheduler.wake_owner();
    Ok(Some(number))
}

/// Retracts an exception that has not been raised yet. False if it has been raised.
fn retract(_: &Ruby, scheduler: &Scheduler, target: Value, number: u64) -> bool {
    let mut state = scheduler.state.borrow_mut();
    let Some(key) = state.fibers.find(PinnedValue::assume_marked(target)) else { return false };
    let scope = RaiseScope::Message(number);
    let is_due = state.fibers.get(key).is_some_and(|record| record.pending_raises.is_unraised(scope));
    state.retract(key, scope);
    is_due
}

/// Asks a fiber to end, running its `ensure` clauses. A second request changes nothing. False if this scheduler does
/// not know the fiber. Any thread may call it.
fn stop(ruby: &Ruby, scheduler: &Scheduler, target: Value) -> Result<bool, Error> {
    error::expect_fiber(ruby, target)?;
    let exception = PinnedValue::assume_marked(error::stop_class(ruby)?.as_value());
    let mut state = scheduler.state.borrow_mut();
    let Some(key) = state.fibers.find(PinnedValue::assume_marked(target)) else { return Ok(false) };
    state.request_end(key, exception);
    drop(state);
    scheduler.wake_owner();
    Ok(true)
}

/// Runs the block with a number for [`move_limit`]. If the block takes longer than `seconds`, raises `exception` in the
/// fiber, wherever it waits, again and again until the block ends.
fn limit(ruby: &Ruby, scheduler: &Scheduler, seconds: Value, exception: Value) -> Result<Value, Error> {
    let limit = time::interval(seconds)?;
    let hook = scheduler.enter(ruby)?;
    let at = Instant::now() + limit.min(FOR_EVER);
    scheduler.run_until(ruby, hook.key, at, Limit::Repeated(PinnedValue::assume_marked(exception)), None)
}

/// Moves the time limit with this number to `seconds` from now, after which `exception` is raised. False if its block
/// has ended, or the exception has been raised in it. Any thread may call it.
fn move_limit(_: &Ruby, scheduler: &Scheduler, number: u64, seconds: Value, exception: Value) -> Result<bool, Error> {
    let at = Instant::now() + time::interval(seconds)?.min(FOR_EVER);
    let moved = scheduler.state.borrow_mut().move_limit(number, at, PinnedValue::assume_marked(exception));
    scheduler.wake_owner();
    Ok(moved)
}

/// Runs a block of the program's. Exceptions that are sent to the fiber meanwhile are raised after it.
fn shield(ruby: &Ruby, scheduler: &Scheduler) -> Result<Value, Error> {
    let hook = scheduler.enter(ruby)?;
    let value = scheduler.run_user_block(hook.key, || run_shielded(ruby, scheduler, hook.key))?;
    drop(hook);
    raise_deferred(ruby, scheduler)?;
    Ok(value)
}

/// Runs a block of Heddle's own, in which the fiber is not preempted. Exceptions that are sent to the fiber meanwhile
/// are raised in the fiber's first wait after it.
fn defer_raises(ruby: &Ruby, scheduler: &Scheduler) -> Result<Value, Error> {
    let hook = scheduler.enter(ruby)?;
    run_shielded(ruby, scheduler, hook.key)
}

fn run_shielded(ruby: &Ruby, scheduler: &Scheduler, key: FiberKey) -> Result<Value, Error> {
    let outer = {
        let mut state = scheduler.state.borrow_mut();
        let shield = Shield::new(state.last_number());
        replace_shield(&mut state, key, shield)
    };
    let result = ruby.yield_value::<_, Value>(ruby.qnil());
    replace_shield(&mut scheduler.state.borrow_mut(), key, outer);
    result
}

fn replace_shield(state: &mut State, key: FiberKey, shield: Shield) -> Shield {
    match state.fibers.get_mut(key) {
        Some(record) => std::mem::replace(&mut record.task.shield, shield),
        None => Shield::default(),
    }
}

/// Raises the next exception that is due in the current fiber, if there is one. This is no wait: an exception that the
/// fiber has swallowed is not raised again.
fn raise_deferred(ruby: &Ruby, scheduler: &Scheduler) -> Result<(), Error> {
    let hook = scheduler.enter(ruby)?;
    let pending_raise = {
        let mut state = scheduler.state.borrow_mut();
        state.expire(Instant::now());
        state.take_new_raise(hook.key)
    };
    pending_raise.map_or(Ok(()), |pending_raise| Err(pending_raise.to_error()))
}
