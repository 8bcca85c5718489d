//! `block`, `unblock`, `kernel_sleep`, `yield`: waiting for time, or for what other fibers and threads do.

use std::time::Instant;

use magnus::{Error, Ruby, Value};

use super::closing;
use crate::ruby::receiver::Receiver;
use crate::ruby::value::Held;
use crate::ruby::{error, fiber, thread, time};
use crate::scheduler::Scheduler;
use crate::scheduler::callers::Callers;
use crate::scheduler::fibers::FiberKey;
use crate::scheduler::wait::Wait;
use crate::scheduler::waiting::{Outcome, deadline_after};

/// Mutex, Queue, Thread#join and the like. True if woken, false if the time was up.
///
/// An `unblock` that came since the fiber's last hook counts, too: Ruby puts the fiber on a list of waiters first, and
/// whatever happens before it calls this must not lose the wake-up.
pub fn block(ruby: &Ruby, scheduler: Receiver<'_, Scheduler>, arguments: &[Value]) -> Result<bool, Error> {
    ruby.check_arity(arguments.len(), 1..=2)?;
    let blocker = arguments[0];
    let visit = scheduler.enter(ruby)?;
    let mut seen = scheduler.turns.borrow().fibers.get(visit.key).map_or(0, |record| record.unblocks_seen);
    let deadline = match arguments.get(1) {
        Some(timeout) => deadline_after(time::lenient_interval(*timeout)?),
        None => None,
    };
    let wait = Wait::Block(Held::new(blocker));
    scheduler.let_holder_go_first(ruby, blocker)?;
    loop {
        let woken = wait_for_unblock(ruby, &scheduler, visit.key, wait, seen, deadline)?;
        // Ruby 3.3 and 3.4 take any end of this wait for the thread's, so a wake-up that meant something else must not
        // end it.
        if !woken || !thread::is_running(ruby, blocker)? {
            return Ok(woken);
        }
        seen = scheduler.turns.borrow().fibers.get(visit.key).map_or(0, |record| record.unblocks);
    }
}

/// From any thread, and from trap handlers.
pub fn unblock(ruby: &Ruby, scheduler: Receiver<'_, Scheduler>, blocker: Value, fiber: Value) -> Result<(), Error> {
    let woken = scheduler.turns.borrow_mut().unblock(Held::new(fiber));
    match woken {
        Some(true) => {
            scheduler.wake_owner();
            scheduler.be_fair_after_lock(ruby, blocker, Held::new(fiber))?;
        }
        Some(false) => {}
        // One that has ended, or is not ours, needs no waking.
        None => error::expect_fiber(ruby, fiber)?,
    }
    #[cfg(not(ruby_gte_4_0))]
    closing::let_closer_go(ruby, &scheduler, blocker)?;
    closing::let_leavers_go(ruby, &scheduler)
}

/// `sleep`, and the waiting part of `Mutex#sleep` and `ConditionVariable#wait`, which `unblock` ends.
pub fn kernel_sleep(ruby: &Ruby, scheduler: Receiver<'_, Scheduler>, arguments: &[Value]) -> Result<bool, Error> {
    ruby.check_arity(arguments.len(), ..=1)?;
    let duration = match arguments.first() {
        Some(duration) => time::optional_interval(*duration)?,
        None => None,
    };
    if duration.is_some_and(|duration| duration.is_zero()) {
        scheduler.yield_turn(ruby)?;
        return Ok(true);
    }
    let visit = scheduler.enter(ruby)?;
    // `ConditionVariable#wait` is to lose no wake-up, as in `block`; but what came before a plain `sleep` is not for it.
    let plain = Callers::traits(&scheduler.callers).just_sleeps;
    let seen = scheduler
        .turns
        .borrow()
        .fibers
        .get(visit.key)
        .map_or(0, |record| if plain { record.unblocks } else { record.unblocks_seen });
    let woken = wait_for_unblock(ruby, &scheduler, visit.key, Wait::Sleep, seen, deadline_after(duration))?;
    if !plain && let Some(record) = scheduler.turns.borrow_mut().fibers.get_mut(visit.key) {
        record.sleep_was_ended = woken;
    }
    Ok(woken)
}

/// Whether the last `Mutex#sleep` of the fiber that asks was ended by `unblock`. A fiber of which the scheduler keeps no
/// record is told so in any case, as Ruby does.
pub fn sleep_was_ended(scheduler: Receiver<'_, Scheduler>) -> bool {
    let turns = scheduler.turns.borrow();
    let record = turns.fibers.find(fiber::current()).and_then(|key| turns.fibers.get(key));
    record.is_none_or(|record| record.sleep_was_ended)
}

/// Lets the others have a turn.
pub fn yield_turn(ruby: &Ruby, scheduler: Receiver<'_, Scheduler>) -> Result<(), Error> {
    scheduler.yield_turn(ruby)
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
    let outcome = scheduler.wait(ruby, key, wait, deadline, |turns| {
        turns.fibers.get(key).is_none_or(|record| record.unblocks != seen).then_some(())
    })?;
    Ok(outcome == Outcome::Done(()))
}
