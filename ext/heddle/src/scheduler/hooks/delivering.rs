//! What cancelling is made of: exceptions for other fibers, time limits, and blocks that are left alone. No hooks of
//! Ruby's: `lib/heddle/structured` calls them.

use std::time::Instant;

use magnus::{Error, Module, RClass, Ruby, Value, method, prelude::*};

use crate::ruby::value::Held;
use crate::ruby::{error, time};
use crate::scheduler::Scheduler;
use crate::scheduler::fibers::{Delivery, FiberKey, Limit, Scope};
use crate::scheduler::shield::Shield;
use crate::scheduler::turns::Turns;
use crate::scheduler::waiting::FOR_EVER;

/// Defines the methods.
pub fn define(class: RClass) -> Result<(), Error> {
    class.define_private_method("deliver", method!(deliver, 2))?;
    class.define_private_method("retract", method!(retract, 2))?;
    class.define_private_method("stop", method!(stop, 1))?;
    class.define_private_method("limit", method!(limit, 2))?;
    class.define_private_method("shield", method!(shield, 0))?;
    class.define_private_method("hold_back", method!(hold_back, 0))?;
    class.define_private_method("check", method!(check, 0))?;
    Ok(())
}

/// Brings an exception on its way to a fiber, whatever that waits for. Returns a number by which it can be taken back;
/// nil if this scheduler doesn't know the fiber. Any thread may call it.
fn deliver(ruby: &Ruby, scheduler: &Scheduler, target: Value, exception: Value) -> Result<Option<u64>, Error> {
    error::expect_fiber(ruby, target)?;
    let mut turns = scheduler.turns.borrow_mut();
    let Some(key) = turns.fibers.find(Held::new(target)) else { return Ok(None) };
    let number = turns.next_number();
    turns.deliver(key, Delivery { exception: Held::new(exception), message: None, scope: Scope::Message(number) });
    drop(turns);
    scheduler.wake_owner();
    Ok(Some(number))
}

/// Takes an exception back that has not been raised yet. False if it has been.
fn retract(_: &Ruby, scheduler: &Scheduler, target: Value, number: u64) -> bool {
    let mut turns = scheduler.turns.borrow_mut();
    let Some(key) = turns.fibers.find(Held::new(target)) else { return false };
    let scope = Scope::Message(number);
    let is_due = turns.fibers.get(key).is_some_and(|record| record.deliveries.is_unraised(scope));
    turns.retract(key, scope);
    is_due
}

/// Tells a fiber to end, running its `ensure`. A second time changes nothing. False if this scheduler doesn't know the
/// fiber. Any thread may call it.
fn stop(ruby: &Ruby, scheduler: &Scheduler, target: Value) -> Result<bool, Error> {
    error::expect_fiber(ruby, target)?;
    let exception = Held::new(error::stop_class(ruby)?.as_value());
    let mut turns = scheduler.turns.borrow_mut();
    let Some(key) = turns.fibers.find(Held::new(target)) else { return Ok(false) };
    turns.tell_to_end(key, exception);
    drop(turns);
    scheduler.wake_owner();
    Ok(true)
}

/// Runs the block; raises `exception` in the fiber, wherever it waits, if it takes longer than `seconds`, until it ends.
fn limit(ruby: &Ruby, scheduler: &Scheduler, seconds: Value, exception: Value) -> Result<Value, Error> {
    let limit = time::interval(seconds)?;
    let visit = scheduler.enter(ruby)?;
    let at = Instant::now() + limit.min(FOR_EVER);
    scheduler.run_until(ruby, visit.key, at, Limit::Repeated(Held::new(exception)), seconds)
}

/// Runs a block of the program's; what others send to the fiber meanwhile is raised after it.
fn shield(ruby: &Ruby, scheduler: &Scheduler) -> Result<Value, Error> {
    let visit = scheduler.enter(ruby)?;
    let value = scheduler.exposed(visit.key, || run_shielded(ruby, scheduler, visit.key))?;
    drop(visit);
    check(ruby, scheduler)?;
    Ok(value)
}

/// Runs a block of Heddle's own; what others send to the fiber meanwhile waits for the fiber's first wait after it, and nobody
/// preempts it.
fn hold_back(ruby: &Ruby, scheduler: &Scheduler) -> Result<Value, Error> {
    let visit = scheduler.enter(ruby)?;
    run_shielded(ruby, scheduler, visit.key)
}

fn run_shielded(ruby: &Ruby, scheduler: &Scheduler, key: FiberKey) -> Result<Value, Error> {
    let outer = {
        let mut turns = scheduler.turns.borrow_mut();
        let shield = Shield::up(turns.last_number());
        replace_shield(&mut turns, key, shield)
    };
    let result = ruby.yield_value::<_, Value>(ruby.qnil());
    replace_shield(&mut scheduler.turns.borrow_mut(), key, outer);
    result
}

fn replace_shield(turns: &mut Turns, key: FiberKey, shield: Shield) -> Shield {
    match turns.fibers.get_mut(key) {
        Some(record) => std::mem::replace(&mut record.structure.shield, shield),
        None => Shield::default(),
    }
}

/// Raises what has been sent to the fiber that runs, if anything has. This is no wait: what the fiber has swallowed is not
/// raised again.
fn check(ruby: &Ruby, scheduler: &Scheduler) -> Result<(), Error> {
    let visit = scheduler.enter(ruby)?;
    let delivery = {
        let mut turns = scheduler.turns.borrow_mut();
        turns.expire(Instant::now());
        turns.take_new_delivery(visit.key)
    };
    delivery.map_or(Ok(()), |delivery| Err(delivery.to_error()))
}
