//! What programs and `lib/heddle/yielding_fiber.rb` ask about preemption.

use magnus::typed_data::Obj;
use magnus::{Error, Module, Object, RClass, Ruby, Symbol, TryConvert, Value, function, method};

use crate::preempt::guests;
use crate::ruby::value::Held;
use crate::ruby::{fiber, thread};
use crate::scheduler::fibers::FiberKey;
use crate::scheduler::{Scheduler, Visit};

/// Defines the methods.
pub fn define(class: RClass) -> Result<(), Error> {
    class.define_method("ticker", method!(ticker, 0))?;
    class.define_method("preemptions", method!(preemptions, 0))?;
    class.define_singleton_method("resuming", function!(resuming, 1))?;
    class.define_singleton_method("transferring", function!(transferring, 0))?;
    class.define_singleton_method("resumed", function!(resumed, 1))?;
    class.define_singleton_method("forked", function!(forked, 0))
}

fn ticker(ruby: &Ruby, scheduler: &Scheduler) -> Option<Symbol> {
    scheduler.ticker_name().map(|name| ruby.to_symbol(name))
}

fn preemptions(scheduler: &Scheduler) -> u64 {
    scheduler.preemptions.get()
}

/// A yielding fiber is about to be resumed. What it resumes itself is preempted with it. Returns what [`resumed`] is to
/// be called with.
fn resuming(ruby: &Ruby, target: Value) -> Result<Option<u64>, Error> {
    let Ok(scheduler) = Obj::<Scheduler>::try_convert(fiber::scheduler()) else { return Ok(None) };
    if scheduler.owner.get() != Some(thread::current()) || !scheduler.options.borrow().preempt.takes_yielding() {
        return Ok(None);
    }
    scheduler.expect_ticks(ruby)?;
    let target = Held::new(target);
    let found = scheduler.turns.borrow().fibers.find(target);
    let key = match found {
        // It waits, so Ruby will refuse to resume it.
        Some(key) if scheduler.turns.borrow().fibers.get(key).is_some_and(|record| record.is_parked()) => {
            return Ok(None);
        }
        Some(key) => key,
        None => scheduler.take_in(target, fiber::is_blocking(target)?, true),
    };
    let mut turns = scheduler.turns.borrow_mut();
    if let Some(record) = turns.fibers.get_mut(key) {
        record.visits += 1;
        record.exposures += 1;
    }
    turns.take_turn(key);
    Ok(Some(key.to_number()))
}

/// A yielding fiber is about to be switched to by `transfer`.
fn transferring(ruby: &Ruby) -> Result<(), Error> {
    match Obj::<Scheduler>::try_convert(fiber::scheduler()) {
        Ok(scheduler) if scheduler.owner.get() == Some(thread::current()) => scheduler.expect_ticks(ruby),
        _ => Ok(()),
    }
}

/// It has yielded, or ended.
fn resumed(number: Option<u64>) {
    let (Ok(scheduler), Some(number)) = (Obj::<Scheduler>::try_convert(fiber::scheduler()), number) else { return };
    let key = FiberKey::from_number(number);
    scheduler.expose(key, -1);
    drop(Visit::new(&scheduler, key));
}

/// This process is a forked child. Whoever computes in it, and calls no hook for long, is to be preempted as before.
fn forked(ruby: &Ruby) -> Result<(), Error> {
    if let Ok(scheduler) = Obj::<Scheduler>::try_convert(fiber::scheduler())
        && scheduler.is_inherited()
        && scheduler.pulse.get().is_some()
    {
        scheduler.enter(ruby)?;
        scheduler.expect_ticks(ruby)?;
    }
    guests::after_fork(ruby)
}
