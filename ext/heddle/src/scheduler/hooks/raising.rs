//! `Fiber#raise` and `Fiber#kill` switch straight into a fiber that waits, and there is no hook. Whom that fiber puts on
//! the run queue in return is the one that had the turn, as far as the scheduler knows. If that one had resumed a
//! generator, and the generator raises, only `lib/heddle/fiber_raise.rb` knows.

use magnus::typed_data::Obj;
use magnus::{Error, Ruby, TryConvert, Value, prelude::*};

use crate::preempt::guests;
use crate::ruby::value::Held;
use crate::ruby::{error, fiber, thread};
use crate::scheduler::fibers::{Delivery, FiberKey, Scope};
use crate::scheduler::wait::Wait;
use crate::scheduler::{Scheduler, Visit};

/// The fiber that is running is about to raise into another one.
///
/// Returns what [`raised`] is to be called with. The fiber counts as being in a hook until then.
pub fn raising(_: &Ruby) -> Result<Option<u64>, Error> {
    let Some(scheduler) = current() else { return Ok(None) };
    let current = fiber::ensure_current()?;
    let running = scheduler.turns.borrow().running();
    let key = match running {
        Some((running, key)) if running == current => key,
        _ => scheduler.give_turn_to(current)?,
    };
    if let Some(record) = scheduler.turns.borrow_mut().fibers.get_mut(key) {
        record.visits += 1;
    }
    Ok(Some(key.to_number()))
}

/// It is back.
pub fn raised(_: &Ruby, number: Option<u64>) {
    let (Some(scheduler), Some(number)) = (current(), number) else { return };
    let key = FiberKey::from_number(number);
    // It may have been raised into itself meanwhile, by a fiber that has to come back in its turn.
    scheduler.recover_giver(key);
    scheduler.turns.borrow_mut().take_turn(key);
    drop(Visit::new(&scheduler, key));
}

/// The fiber that is running is about to kill `target`. If that one was preempted it is told to end by an exception,
/// and the result is true: Ruby would kill it again at each switch, and its `ensure` could not wait for anything.
pub fn killing(ruby: &Ruby, target: Value) -> Result<bool, Error> {
    let Some(scheduler) = current() else { return Ok(false) };
    let delivery =
        Delivery { exception: Held::new(error::stop_class(ruby)?.as_value()), message: None, scope: Scope::Fiber };
    {
        let mut turns = scheduler.turns.borrow_mut();
        let target = Held::new(target);
        let Some(key) = turns.fibers.find(target) else { return Ok(false) };
        let takes_it_for_a_kill = turns.fibers.get(key).is_some_and(|record| {
            record.wait == Wait::Preempted && (record.ours || guests::presence_of(target).is_some())
        });
        if !takes_it_for_a_kill {
            return Ok(false);
        }
        turns.deliver(key, delivery);
    }
    scheduler.yield_turn(ruby)?;
    Ok(true)
}

/// This thread's scheduler, if it is one of ours and in use.
fn current() -> Option<Obj<Scheduler>> {
    let scheduler = Obj::<Scheduler>::try_convert(fiber::scheduler()).ok()?;
    (scheduler.owner.get() == Some(thread::current()) && !scheduler.is_inherited()).then_some(scheduler)
}
