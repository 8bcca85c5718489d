//! The methods about preemption that programs and `lib/heddle` call.

use magnus::{Error, Object, RClass, RModule, Ruby, Symbol, Value, function, method, prelude::*};

use super::foreign_fibers;
use crate::ruby::insides::Mutexes;
use crate::ruby::{fiber, ractor, thread};
use crate::scheduler::record::FiberKey;
use crate::scheduler::{HookGuard, Scheduler, registry};
use crate::ticker::signal_disposition as disposition;

/// Defines the methods.
pub fn define(ruby: &Ruby, native: RModule, class: RClass) -> Result<(), Error> {
    class.define_method("ticker", method!(ticker, 0))?;
    ractor::safe(ruby, || {
        native.define_singleton_method("resuming", function!(resuming, 1))?;
        native.define_singleton_method("transferring", function!(transferring, 0))?;
        native.define_singleton_method("find_mutexes", function!(find_mutexes, 2))?;
        native.define_singleton_method("forked", function!(forked, 0))?;
        native.define_singleton_method("trapping", function!(trapping, 1))
    })?;
    native.define_singleton_method("handles_signal?", function!(disposition::is_handled, 1))
}

fn ticker(ruby: &Ruby, scheduler: &Scheduler) -> Option<Symbol> {
    scheduler.ticker_name().map(|name| ruby.to_symbol(name))
}

/// Runs a block that resumes a yielding fiber. The fibers that it resumes are preempted with it.
fn resuming(ruby: &Ruby, target: Value) -> Result<Value, Error> {
    let Some(scheduler) = Scheduler::of_thread(ruby) else { return ruby.yield_value(()) };
    let Some(key) = register_resumed(ruby, &scheduler, target)? else { return ruby.yield_value(()) };
    let result = ruby.yield_value(());
    scheduler.adjust_user_block_depth(key, -1);
    drop(HookGuard::new(&scheduler, key));
    result
}

fn register_resumed(ruby: &Ruby, scheduler: &Scheduler, target: Value) -> Result<Option<FiberKey>, Error> {
    if !scheduler.is_owned_by(thread::current(ruby)) || !scheduler.options.borrow().preempt.preempts_yielding() {
        return Ok(None);
    }
    fiber::expect_fiber(ruby, target)?;
    scheduler.expect_ticks(ruby)?;
    let found = scheduler.state.borrow().fibers.find(target);
    let key = match found {
        // The fiber is parked, so Ruby will refuse to resume it.
        Some(key) if scheduler.state.borrow().fibers.get(key).is_some_and(|record| record.is_parked()) => {
            return Ok(None);
        }
        Some(key) => key,
        None => scheduler.register(target, fiber::is_blocking(target)?, true),
    };
    let mut state = scheduler.state.borrow_mut();
    if let Some(record) = state.fibers.get_mut(key) {
        record.hook_depth += 1;
        record.user_block_depth += 1;
    }
    state.set_current(key);
    Ok(Some(key))
}

/// A yielding fiber is about to be switched to by `transfer`.
fn transferring(ruby: &Ruby) -> Result<(), Error> {
    match Scheduler::of_thread(ruby) {
        Some(scheduler) if scheduler.is_owned_by(thread::current(ruby)) => scheduler.expect_ticks(ruby),
        _ => Ok(()),
    }
}

/// Finds how Ruby stores Mutexes, for [`forked`]. `holder` is a suspended fiber that holds `held`, which is free
/// afterwards. Returns whether it was found.
fn find_mutexes(ruby: &Ruby, holder: Value, held: Value) -> Result<bool, Error> {
    Mutexes::find(fiber::ensure_current(ruby)?, holder, held)?;
    Ok(Mutexes::layout(ruby).is_some())
}

/// Called in a forked child. It has none of its parent's other fibers, nor their locks. A fiber that computes, and
/// calls no hook for long, is to be preempted as before the fork.
fn forked(ruby: &Ruby) -> Result<(), Error> {
    registry::each(ruby, |scheduler| {
        if scheduler.is_inherited() {
            scheduler.leave_fibers_in_parent(ruby);
        }
        Ok(())
    })?;
    if let Some(scheduler) = Scheduler::of_thread(ruby)
        && scheduler.is_inherited()
        && scheduler.preemption.ticker_state.get().is_some()
    {
        scheduler.enter(ruby)?;
        scheduler.expect_ticks(ruby)?;
    }
    foreign_fibers::after_fork(ruby)
}

/// The program is about to call `trap`. Tickers that use the signal change to timerfd, and the signal's disposition is
/// restored.
fn trapping(ruby: &Ruby, signal: Value) -> Result<(), Error> {
    if disposition::is_asking() || !ractor::is_main(ruby) {
        return Ok(());
    }
    // `trap` itself raises for an invalid signal name.
    let Some(number) = disposition::number_of(ruby, signal)? else { return Ok(()) };
    if disposition::is_taken(number) {
        registry::each(ruby, |scheduler| scheduler.give_up_signal(ruby, number))?;
        disposition::give_back_inherited(number);
    }
    Ok(())
}
