//! The parts of `Heddle.run` on a thread whose scheduler runs already. Not hooks: `lib/heddle/structured` calls these
//! methods.

use magnus::{Error, Object, RArray, RModule, Ruby, function};

use crate::scheduler::Scheduler;

/// Defines the methods.
pub fn define(native: RModule) -> Result<(), Error> {
    native.define_singleton_method("open_scope", function!(open_scope, 1))?;
    native.define_singleton_method("close_scope", function!(close_scope, 2))?;
    native.define_singleton_method("scope_members", function!(scope_members, 2))?;
    native.define_singleton_method("unwinding?", function!(is_unwinding, 1))?;
    Ok(())
}

/// Begins a scope in the current fiber. Returns its number.
fn open_scope(ruby: &Ruby, scheduler: &Scheduler) -> Result<u64, Error> {
    let hook = scheduler.enter(ruby)?;
    Ok(scheduler.state.borrow_mut().open_scope(hook.key))
}

/// Ends the scope of the current fiber with this number.
fn close_scope(ruby: &Ruby, scheduler: &Scheduler, number: u64) -> Result<(), Error> {
    let hook = scheduler.enter(ruby)?;
    scheduler.state.borrow_mut().close_scope(hook.key, number);
    Ok(())
}

/// The fibers of `Fiber.schedule` that were started in the scope and have not ended.
fn scope_members(ruby: &Ruby, scheduler: &Scheduler, number: u64) -> Result<RArray, Error> {
    let members = scheduler.state.borrow().scope_members(number);
    let array = ruby.ary_new_capa(members.len());
    for member in members {
        let fiber = scheduler.state.borrow().fibers.fiber(member);
        if let Some(fiber) = fiber {
            array.push(fiber)?;
        }
    }
    Ok(array)
}

/// Whether the current fiber unwinds because it was stopped, was killed, or because a time limit has elapsed.
fn is_unwinding(ruby: &Ruby, scheduler: &Scheduler) -> Result<bool, Error> {
    let hook = scheduler.enter(ruby)?;
    let state = scheduler.state.borrow();
    Ok(state.fibers.get(hook.key).is_some_and(|record| record.killed || record.pending_raises.has_raised()))
}
