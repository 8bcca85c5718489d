//! `block`, `unblock`, `kernel_sleep`, `yield`: waiting for a time, or for other fibers and threads.

use std::time::Instant;

use magnus::{Error, Ruby, Value};

use super::closing;
use crate::ruby::call_sites::CallSites;
use crate::ruby::receiver::Receiver;
use crate::ruby::value::cast;
use crate::ruby::{error, fiber, pending_interrupts, postponed_job, thread, time};
use crate::scheduler::Scheduler;
use crate::scheduler::raise::{PendingRaise, RaisePoint, RaiseScope, Shield};
use crate::scheduler::record::FiberKey;
use crate::scheduler::wait::Wait;
use crate::scheduler::waiting::Outcome;

/// Mutex, Queue, Thread#join and the like. True if the fiber was woken, false if the timeout elapsed.
///
/// An `unblock` since the fiber's last hook counts, too. Ruby adds the fiber to a list of waiters before it calls this,
/// so the wake-up may arrive first.
pub fn block(ruby: &Ruby, scheduler: Receiver<Scheduler>, arguments: &[Value]) -> Result<bool, Error> {
    ruby.check_arity(arguments.len(), 1..=2)?;
    let blocker = arguments[0];
    let (hook, (mut seen, may_lock_again)) =
        scheduler.enter_and(ruby, |record| (record.unblocks_seen, record.may_lock_again))?;
    let deadline = match arguments.get(1) {
        Some(timeout) => scheduler.deadline_after(time::lenient_interval(*timeout)?),
        None => None,
    };
    let wait = Wait::block(blocker);
    scheduler.boost_lock_holders(ruby, blocker)?;
    if may_lock_again
        && thread::is_mutex(ruby, blocker)?
        && CallSites::traits(ruby, &scheduler.io.call_sites).locks_again
    {
        return wait_to_lock_again(ruby, &scheduler, hook.key, wait, seen).map(|()| true);
    }
    loop {
        let woken = wait_for_unblock(ruby, &scheduler, hook.key, wait, seen, deadline)?;
        // Read before the question: the thread may end, and unblock this fiber, at the end of that call.
        seen = scheduler.state.borrow().fibers.get(hook.key).map_or(0, |record| record.unblocks);
        // Ruby 3.3 and 3.4 take any end of this wait for the thread's end, so other wake-ups must not end it.
        if !woken || !thread::is_running(ruby, blocker)? {
            return Ok(woken);
        }
    }
}

/// Wakes a fiber. Called on any thread, and in trap handlers.
pub fn unblock(ruby: &Ruby, scheduler: Receiver<Scheduler>, blocker: Value, fiber: Value) -> Result<(), Error> {
    let woken = scheduler.state.borrow_mut().unblock(fiber);
    match woken {
        Some(true) => {
            scheduler.wake_owner();
            scheduler.hand_off_lock(ruby, blocker, fiber)?;
        }
        Some(false) => {}
        // The fiber has ended or belongs to another scheduler, so there is nothing to wake.
        None => fiber::expect_fiber(ruby, fiber)?,
    }
    #[cfg(not(ruby_gte_4_0))]
    closing::defer_close_error(ruby, &scheduler, blocker)?;
    closing::let_interrupted_leave(ruby, &scheduler)
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
    let plain = CallSites::traits(ruby, &scheduler.io.call_sites).is_plain_sleep;
    let seen = if plain { unblocks } else { unblocks_seen };
    if !plain && let Some(record) = scheduler.state.borrow_mut().fibers.get_mut(hook.key) {
        record.may_lock_again = true;
    }
    let woken = wait_for_unblock(ruby, &scheduler, hook.key, Wait::Sleep, seen, scheduler.deadline_after(duration))?;
    if !plain && let Some(record) = scheduler.state.borrow_mut().fibers.get_mut(hook.key) {
        record.sleep_was_ended = woken;
    }
    Ok(woken)
}

/// Called at the end of `Mutex#sleep`, when the Mutex is locked again. Returns whether `unblock` ended the sleep. True,
/// as in Ruby, for a fiber of which no Heddle scheduler has a record.
///
/// # Errors
/// What [`wait_to_lock_again`] has held back.
pub fn locked_again(ruby: &Ruby) -> Result<bool, Error> {
    let Some(scheduler) = fiber::current_scheduler(ruby).and_then(cast::<Scheduler>) else { return Ok(true) };
    let mut state = scheduler.state.borrow_mut();
    let current = fiber::current(ruby);
    let running = state.fibers.current().filter(|(running, _)| *running == current).map(|(_, key)| key);
    let Some(key) = running.or_else(|| state.fibers.find(current)) else { return Ok(true) };
    let Some(record) = state.fibers.get_mut(key) else { return Ok(true) };
    record.may_lock_again = false;
    let was_ended = record.sleep_was_ended;
    let held_back = if state.may_have_raise(key) { state.take_new_raise(key, RaisePoint::Hook) } else { None };
    drop(state);
    held_back.map_or(Ok(was_ended), |held_back| Err(held_back.to_error()))
}

/// Waits until a Mutex can be locked that `Mutex#sleep` or `ConditionVariable#wait` has unlocked. A thread is not
/// interrupted there. If a fiber was, it would leave the method without the lock, and the program's `ensure` clauses
/// would use what the lock guards.
///
/// # Errors
/// The kill of a fiber whose grace period is over, or of the thread.
fn wait_to_lock_again(ruby: &Ruby, scheduler: &Scheduler, key: FiberKey, wait: Wait, seen: u32) -> Result<(), Error> {
    /// How many exceptions are held back. A fiber that is being killed gets one each time that it is switched to.
    const MAX_HELD_BACK: u32 = 1000;
    let outer = scheduler.state.borrow_mut().replace_shield(key, Shield::but_for_kill());
    let mut held_back_count = 0;
    let waited = loop {
        let waited = wait_for_unblock(ruby, scheduler, key, wait, seen, None).map(|_| ());
        let Err(error) = &waited else { break waited };
        let is_killed = scheduler.state.borrow().fibers.get(key).is_none_or(|record| record.is_being_killed());
        if is_killed || pending_interrupts::is_kill(ruby, error) || held_back_count == MAX_HELD_BACK {
            break waited;
        }
        held_back_count += 1;
        match error::exception_of(error) {
            Some(exception) => {
                let held_back = PendingRaise::new(exception, None, RaiseScope::Fiber);
                scheduler.state.borrow_mut().put_back_raise(key, held_back);
            }
            // Ruby repeats the kill of a fiber at each switch to it.
            None => error::end_jump(ruby),
        }
    };
    scheduler.state.borrow_mut().replace_shield(key, outer);
    waited
}

/// Lets all other runnable fibers run first.
pub fn yield_now(ruby: &Ruby, scheduler: Receiver<Scheduler>) -> Result<(), Error> {
    scheduler.yield_now(ruby)
}

/// `yield` where Ruby itself ends time slices, and calls this at points of its own: in plain fibers, in hooks and in
/// critical sections, too. It asks for a tick, which comes at the next safe point and decides as any other does. So one
/// place decides which fiber is preempted.
pub fn request_tick(_: &Ruby, _: Receiver<Scheduler>) {
    postponed_job::trigger();
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
