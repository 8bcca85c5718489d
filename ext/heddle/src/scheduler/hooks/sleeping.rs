//! `block`, `unblock`, `kernel_sleep`, `yield`: waiting for time, or for what other fibers and threads do.

use magnus::scan_args::scan_args;
use magnus::{Error, Ruby, Value, prelude::*};

use crate::ruby::time;
use crate::ruby::value::Held;
use crate::scheduler::Scheduler;
use crate::scheduler::fibers::FiberKey;
use crate::scheduler::wait::Wait;
use crate::scheduler::waiting::{Outcome, deadline_after};

/// Mutex, Queue, Thread#join and the like. True if woken, false if the time was up.
pub fn block(ruby: &Ruby, scheduler: &Scheduler, arguments: &[Value]) -> Result<bool, Error> {
    let (blocker, timeout) = scan_args::<(Value,), (Option<Value>,), (), (), (), ()>(arguments)
        .map(|arguments| (arguments.required.0, arguments.optional.0))?;
    let visit = scheduler.enter(ruby)?;
    wait_for_unblock(ruby, scheduler, visit.key, Wait::Block(Held::new(blocker)), timeout)
}

/// From any thread, and from trap handlers.
pub fn unblock(_: &Ruby, scheduler: &Scheduler, _blocker: Value, fiber: Value) {
    if scheduler.turns.borrow_mut().unblock(Held::new(fiber)) {
        scheduler.wake_owner();
    }
}

/// `sleep`, and the waiting part of `Mutex#sleep` and `ConditionVariable#wait`, which `unblock` ends.
pub fn kernel_sleep(ruby: &Ruby, scheduler: &Scheduler, arguments: &[Value]) -> Result<bool, Error> {
    let (duration,) = scan_args::<(), (Option<Value>,), (), (), (), ()>(arguments)?.optional;
    let visit = scheduler.enter(ruby)?;
    wait_for_unblock(ruby, scheduler, visit.key, Wait::Sleep, duration)
}

/// Lets the others have a turn.
pub fn yield_turn(ruby: &Ruby, scheduler: &Scheduler) -> Result<(), Error> {
    let visit = scheduler.enter(ruby)?;
    scheduler.yield_turn(ruby, visit.key)
}

fn wait_for_unblock(
    ruby: &Ruby,
    scheduler: &Scheduler,
    key: FiberKey,
    wait: Wait,
    timeout: Option<Value>,
) -> Result<bool, Error> {
    // Ruby has put this fiber on a list of waiters already: an `unblock` counts from here on, even one that comes while
    // `timeout` (a Rational, a user's class) is being converted.
    let unblocks = move |scheduler: &Scheduler| scheduler.turns.borrow().fibers.get(key).map(|record| record.unblocks);
    let before = unblocks(scheduler);
    let timeout = match timeout {
        Some(timeout) if !timeout.is_nil() => Some(time::interval(timeout)?),
        _ => None,
    };
    if timeout.is_some_and(|timeout| timeout.is_zero()) {
        scheduler.yield_turn(ruby, key)?;
        return Ok(unblocks(scheduler) != before);
    }
    let outcome = scheduler.wait(ruby, key, wait, deadline_after(timeout), |turns| {
        (turns.fibers.get(key).map(|record| record.unblocks) != before).then_some(())
    })?;
    Ok(outcome == Outcome::Done(()))
}
