//! `Fiber#raise` and `Fiber#kill` switch straight into a fiber that waits, and there is no hook. Whom that fiber puts on
//! the run queue in return is the one that had the turn, as far as the scheduler knows. If that one had resumed a
//! generator, and the generator raises, only `lib/heddle/fiber_raise.rb` knows.

use magnus::typed_data::Obj;
use magnus::{Error, Ruby, TryConvert};

use crate::ruby::{fiber, thread};
use crate::scheduler::Scheduler;

/// The fiber that is running is about to raise into another one.
pub fn raising(_: &Ruby) -> Result<(), Error> {
    let Some(scheduler) = current() else { return Ok(()) };
    let current = fiber::ensure_current()?;
    if scheduler.turns.borrow().running().is_some_and(|(running, _)| running == current) {
        return Ok(());
    }
    scheduler.give_turn_to(current).map(|_| ())
}

/// It is back.
pub fn raised(_: &Ruby) {
    let Some(scheduler) = current() else { return };
    let current = fiber::current();
    let found = scheduler.turns.borrow().fibers.find(current);
    let Some(key) = found else { return };
    // It may have been raised into itself meanwhile, by a fiber that has to come back in its turn.
    scheduler.recover_giver(key);
    let mut turns = scheduler.turns.borrow_mut();
    turns.take_turn(key);
    if turns.fibers.get(key).is_some_and(|record| record.visits == 0 && !record.ours && !record.has_mail()) {
        if turns.has_turn(key) {
            turns.drop_turn();
        }
        turns.fibers.remove(key);
    }
}

/// This thread's scheduler, if it is one of ours and in use.
fn current() -> Option<Obj<Scheduler>> {
    let scheduler = Obj::<Scheduler>::try_convert(fiber::scheduler()).ok()?;
    (scheduler.owner.get() == Some(thread::current()) && !scheduler.is_inherited()).then_some(scheduler)
}
