//! `block`, `unblock`, `kernel_sleep`, `yield`: waiting for a time, or for other fibers and threads.

use std::time::Instant;

use magnus::{Error, Ruby, Value};

use super::closing;
use crate::ruby::call_sites::CallSites;
use crate::ruby::receiver::Receiver;
use crate::ruby::value::PinnedValue;
use crate::ruby::{error, fiber, thread, time};
use crate::scheduler::Scheduler;
use crate::scheduler::fibers::FiberKey;
use crate::scheduler::wait::Wait;
use crate::scheduler::waiting::{Outcome, deadline_after};

/// Mutex, Queue, Thread#join and the like. True if the fiber was woken, false if the timeout elapsed.
///
/// An `unblock` since the fiber's last hook counts, too. Ruby adds the fiber to a list of waiters before it calls this,
/// so the wake-up may arrive first.
pub fn block(ruby: &Ruby, scheduler: Receiver<Scheduler>, arguments: &[Value]) -> Result<bool, Error> {
    ruby.check_arity(arguments.len(), 1..=2)?;
    let blocker = arguments[0];
    let (hook, mut seen) = scheduler.enter_and(ruby, |record| record.unblocks_seen)?;
    let deadline = match arguments.get(1) {
        Some(timeout) => deadline_after(time::lenient_interval(*timeout)?),
        None => None,
    };
    let wait = Wait::Block(PinnedValue::assume_marked(blocker));
    scheduler.boost_lock_holders(ruby, blocker)?;
    loop {
        let woken = wait_for_unblock(ruby, &scheduler, hook.key, wait, seen, deadline)?;
        // Ruby 3.3 and 3.4 take any end of this wait for the thread's end, so other wake-ups must not end it.
        if !woken || !thread::is_running(ruby, blocker)? {
            return Ok(woken);
        }
        seen = scheduler.state.borrow().fibers.get(hook.key).map_or(0, |record| record.unblocks);
    }
}

/// Wakes a fiber. Called on any thread, and in trap handlers.
pub fn unblock(ruby: &Ruby, scheduler: Receiver<Scheduler>, blocker: Value, fiber: Value) -> Result<(), Error> {
    let woken = scheduler.state.borrow_mut().unblock(PinnedValue::assume_marked(fiber));
    match woken {
        Some(true) => {
            scheduler.wake_owner();
            scheduler.hand_off_lock(ruby, blocker, PinnedValue::assume_marked(fiber))?;
        }
        Some(false) => {}
        // The fiber has ended or belongs to another scheduler, so there is nothing to wake.
        None => error::expect_fiber(ruby, fiber)?,
    }
    #[cfg(not(ruby_gte_4_0))]
    closing::defer_close_error(ruby, &scheduler, blocker)?;
    closing::finish_leaving_fibers(ruby, &scheduler)
}

/// `sleep`, and the wait of `Mutex#sleep` and `ConditionVariable#wait`, which `unblock` ends.
pub fn kernel_sleep(ruby: &Ruby, scheduler: Receiver<Scheduler>, arguments: &[Value]) -> Result<bool, Error> {
    ruby.check_arity(arguments.len(), ..=1)?;
    let duration = match arguments.first() {
        Some(duration) => time::optional_interval(*duration)?,
        None => None,
    };
    if duration.is_some_and(|duration| duration.is_zero()) {
        scheduler.yield_now(ruby)?;
        return Ok(true);
    }
    let (hook, (unblocks, unblocks_seen)) =
        scheduler.enter_and(ruby, |record| (record.unblocks, record.unblocks_seen))?;
    // `ConditionVariable#wait` must lose no wake-up, as in `block`. But an earlier wake-up must not end a plain
    // `sleep`.
    let plain = CallSites::traits(&scheduler.io.call_sites).is_plain_sleep;
    let seen = if plain { unblocks } else { unblocks_seen };
    let woken = wait_for_unblock(ruby, &scheduler, hook.key, Wait::Sleep, seen, deadline_after(duration))?;
    if !plain && let Some(record) = scheduler.state.borrow_mut().fibers.get_mut(hook.key) {
        record.sleep_was_ended = woken;
    }
    Ok(woken)
}

/// Whether `unblock` ended the last `Mutex#sleep` of the current fiber. True, as in Ruby, for a fiber of which the
/// scheduler has no record.
pub fn sleep_was_ended(scheduler: Receiver<Scheduler>) -> bool {
    let state = scheduler.state.borrow();
    let record = state.fibers.find(fiber::current()).and_then(|key| state.fibers.get(key));
    record.is_none_or(|record| record.sleep_was_ended)
}

/// Lets all other runnable fibers run first.
pub fn yield_now(ruby: &Ruby, scheduler: Receiver<Scheduler>) -> Result<(), Error> {
    scheduler.yield_now(ruby)
}

/// Waits until the fiber has been unblocked more than `seen` times.
fn wait_for_unblock(
    ruby: &Ruby,
    scheduler: &Scheduler,
    key: FiberKey,
    wait: Wait,
    seen: u32,
    deadline: Option<Instant>,
) -> Result<bool, Error> {
    let outcome = scheduler.wait(ruby, key, wait, deadline, |state| {
        state.fibers.get(key).is_none_or(|record| record.unblocks != seen).then_some(())
    })?;
    Ok(outcome == Outcome::Done(()))
}
