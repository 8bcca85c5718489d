//! Functions that `lib/heddle` calls when a signal's handler raises, and for what keeps from a fiber the exceptions that are
//! meant for the root: see `scheduler/root_interrupts.rs`.

use magnus::{Error, RHash, Ruby, Value};

use crate::ruby::{fiber, masks, pending_interrupts};
use crate::scheduler::Scheduler;

/// Whether exceptions for this thread are to be raised in the current fiber; see `scheduler/root_interrupts.rs`.
pub fn handles_interrupts(ruby: &Ruby) -> Result<bool, Error> {
    let current = fiber::ensure_current(ruby)?;
    Ok(Scheduler::in_use(ruby).is_none_or(|scheduler| scheduler.handles_interrupts(current)))
}

/// Sends `exception`, which a signal's handler has raised, to the root fiber.
pub fn send_to_root(ruby: &Ruby, exception: Value) {
    if let Some(scheduler) = Scheduler::in_use(ruby) {
        scheduler.send_to_root(exception);
    }
}

/// Runs the block, which is a signal's handler. A handler may begin between any two instructions of the program, as a
/// preemption does, and it may wait: then the hooks that it calls must not take the wake-ups for their own that the
/// program expects. The program may be about to call `block`, because its condition did not hold when it checked.
pub fn keep_wake_ups(ruby: &Ruby) -> Result<Value, Error> {
    let Some(scheduler) = Scheduler::in_use(ruby) else { return ruby.yield_value(()) };
    let hook = scheduler.enter(ruby)?.keep_wake_ups();
    let seen = scheduler.state.borrow().fibers.get(hook.key).map(|record| record.unblocks_seen);
    let result = ruby.yield_value(());
    if let Some(seen) = seen
        && let Some(record) = scheduler.state.borrow_mut().fibers.get_mut(hook.key)
    {
        record.unblocks_seen = seen;
    }
    drop(hook);
    result
}

/// Takes back the exception that a job has sent to the current fiber, if Ruby has yet to raise it there.
pub fn take_sent(ruby: &Ruby) -> Result<Option<Value>, Error> {
    pending_interrupts::take_sent(ruby)
}

/// Records `exception`, which a signal's handler has raised in the root fiber or the fiber that takes its place.
pub fn record_interrupt(ruby: &Ruby, exception: Value) {
    if let Some(scheduler) = Scheduler::in_use(ruby) {
        scheduler.note_interruption(exception);
    }
}

/// A mask for `Thread.handle_interrupt`, which is `mask` unless the thread has a scheduler: see [`masks::gated`]. What is
/// no Hash is left to Ruby.
pub fn gated_mask(ruby: &Ruby, mask: Value) -> Result<Value, Error> {
    // Most masks of Heddle's own hold everything back.
    let is_gated = RHash::from_value(mask).is_some_and(|masks| !masks::masks_all(ruby, masks));
    if is_gated && Scheduler::in_use(ruby).is_some() { masks::gated(ruby, mask) } else { Ok(mask) }
}
