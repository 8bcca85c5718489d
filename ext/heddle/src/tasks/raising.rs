//! The parts of cancellation: exceptions for other fibers, time limits, and shields. Not hooks:
//! `lib/heddle/structured` calls these methods.

use std::time::Instant;

use magnus::{Error, Object, RModule, Ruby, Value, function, prelude::*};

use crate::ruby::{error, fiber, ractor, time};
use crate::scheduler::Scheduler;
use crate::scheduler::raise::{Limit, PendingRaise, RaisePoint, RaiseScope, Shield};
use crate::scheduler::record::{FiberKey, Record};
use crate::scheduler::waiting::FOR_EVER;

/// Defines the methods.
pub fn define(native: RModule) -> Result<(), Error> {
    native.define_singleton_method("deliver", function!(deliver, 3))?;
    native.define_singleton_method("deliver_of_child", function!(deliver_of_child, 3))?;
    native.define_singleton_method("retract", function!(retract, 3))?;
    native.define_singleton_method("unraised?", function!(unraised, 3))?;
    native.define_singleton_method("stop", function!(stop, 2))?;
    native.define_singleton_method("limit", function!(limit, 3))?;
    native.define_singleton_method("move_limit", function!(move_limit, 4))?;
    native.define_singleton_method("shield", function!(shield, 1))?;
    native.define_singleton_method("defer_raises", function!(defer_raises, 1))?;
    ractor::safe(&Ruby::get_with(native), || {
        native.define_singleton_method("uninterrupted", function!(uninterrupted, 0))
    })?;
    native.define_singleton_method("raise_deferred", function!(raise_deferred, 1))?;
    native.define_singleton_method("raise_at_end", function!(raise_at_end, 1))?;
    Ok(())
}

/// Sends an exception to a fiber, whatever the fiber waits for or computes. Returns a number with which it can be
/// retracted; nil if this scheduler does not know the fiber. Any thread may call it.
fn deliver(ruby: &Ruby, scheduler: &Scheduler, target: Value, exception: Value) -> Result<Option<u64>, Error> {
    send(ruby, scheduler, target, exception, RaiseScope::Message)
}

/// Sends the error of a child to a fiber, which raises it in its next wait. As `deliver` otherwise.
fn deliver_of_child(ruby: &Ruby, scheduler: &Scheduler, target: Value, error: Value) -> Result<Option<u64>, Error> {
    send(ruby, scheduler, target, error, RaiseScope::Child)
}

fn send(
    ruby: &Ruby,
    scheduler: &Scheduler,
    target: Value,
    exception: Value,
    scope: fn(u64) -> RaiseScope,
) -> Result<Option<u64>, Error> {
    fiber::expect_fiber(ruby, target)?;
    let mut state = scheduler.state.borrow_mut();
    let Some(key) = state.fibers.find(target) else { return Ok(None) };
    let number = state.limits.next_number();
    state.send_raise(key, PendingRaise::new(exception, None, scope(number)));
    drop(state);
    scheduler.wake_owner();
    Ok(Some(number))
}

/// Retracts what has been sent and not been raised yet. False if it has been raised. Any thread may call it.
fn retract(_: &Ruby, scheduler: &Scheduler, target: Value, number: u64) -> bool {
    let mut state = scheduler.state.borrow_mut();
    let Some(key) = state.fibers.find(target) else { return false };
    let scope = state.fibers.get(key).and_then(|record| unraised_scope(record, number));
    if let Some(scope) = scope {
        state.retract(key, scope);
    }
    scope.is_some()
}

/// Whether what was sent with this number has neither been raised in the fiber yet, nor been retracted.
fn unraised(_: &Ruby, scheduler: &Scheduler, target: Value, number: u64) -> bool {
    let state = scheduler.state.borrow();
    let Some(key) = state.fibers.find(target) else { return false };
    state.fibers.get(key).is_some_and(|record| unraised_scope(record, number).is_some())
}

fn unraised_scope(record: &Record, number: u64) -> Option<RaiseScope> {
    let scopes = [RaiseScope::Child(number), RaiseScope::Message(number)];
    scopes.into_iter().find(|scope| record.pending_raises.is_unraised(*scope))
}

/// Asks a fiber to end, running its `ensure` clauses. A second request changes nothing. False if this scheduler does
/// not know the fiber. Any thread may call it.
fn stop(ruby: &Ruby, scheduler: &Scheduler, target: Value) -> Result<bool, Error> {
    fiber::expect_fiber(ruby, target)?;
    let exception = error::stop_class(ruby)?.as_value();
    let mut state = scheduler.state.borrow_mut();
    let Some(key) = state.fibers.find(target) else { return Ok(false) };
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
    let at = scheduler.state.borrow().clock.now() + limit.min(FOR_EVER);
    scheduler.run_until(ruby, hook.key, at, Limit::Repeated(exception), None)
}

/// Moves the time limit with this number to `seconds` from now, after which `exception` is raised. False if its block
/// has ended, or the exception has been raised in it. Any thread may call it.
fn move_limit(_: &Ruby, scheduler: &Scheduler, number: u64, seconds: Value, exception: Value) -> Result<bool, Error> {
    // The conversion may run Ruby code, which uses the state.
    let limit = time::interval(seconds)?.min(FOR_EVER);
    let moved = {
        let mut state = scheduler.state.borrow_mut();
        let at = state.clock.now() + limit;
        state.move_limit(number, at, exception)
    };
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

/// Runs a block like [`defer_raises`] with the thread's scheduler; without one it only runs it. It finds the scheduler
/// itself: Ruby checks for interrupts where a method ends. If the caller looked for it first, the fiber could be
/// preempted there, and stopped or killed before the block begins.
fn uninterrupted(ruby: &Ruby) -> Result<Value, Error> {
    match Scheduler::of_thread(ruby) {
        Some(scheduler) => defer_raises(ruby, &scheduler),
        None => ruby.yield_value(()),
    }
}

fn run_shielded(ruby: &Ruby, scheduler: &Scheduler, key: FiberKey) -> Result<Value, Error> {
    let outer = {
        let mut state = scheduler.state.borrow_mut();
        let shield = Shield::new(state.limits.last_number());
        state.replace_shield(key, shield)
    };
    let result = ruby.yield_value::<_, Value>(ruby.qnil());
    scheduler.state.borrow_mut().replace_shield(key, outer);
    result
}

/// Raises the next exception that is pending in the current fiber, if there is one. This is no wait: an exception that
/// the fiber has swallowed is not raised again.
fn raise_deferred(ruby: &Ruby, scheduler: &Scheduler) -> Result<(), Error> {
    raise_new(ruby, scheduler, RaisePoint::Program)
}

/// Like [`raise_deferred`], at the end of a block, which counts as a wait: raises the error of a child, too.
fn raise_at_end(ruby: &Ruby, scheduler: &Scheduler) -> Result<(), Error> {
    raise_new(ruby, scheduler, RaisePoint::Hook)
}

fn raise_new(ruby: &Ruby, scheduler: &Scheduler, point: RaisePoint) -> Result<(), Error> {
    let hook = scheduler.enter(ruby)?;
    // The completions of other fibers' operations are handled with the timers. Otherwise a fiber whose event has come
    // in time would find only that its time limit has passed.
    let has_expired_timer = scheduler.state.borrow_mut().has_expired_timer(Instant::now());
    if has_expired_timer {
        scheduler.poll(ruby)?;
    }
    let pending_raise = scheduler.state.borrow_mut().take_new_raise(hook.key, point);
    pending_raise.map_or(Ok(()), |pending_raise| Err(pending_raise.to_error()))
}
