//! `Fiber#raise` and `Fiber#kill` switch straight into a fiber that waits, and there is no hook. Whom that fiber puts on
//! the run queue in return is the one that had the turn, as far as the scheduler knows. If that one had resumed a
//! generator, and the generator raises, only `lib/heddle/fiber_raise.rb` knows.

use magnus::{Error, Ruby, Value, prelude::*};

use crate::preempt::guests;
use crate::ruby::receiver::KeptAlive;
use crate::ruby::value::Held;
use crate::ruby::{error, fiber, thread};
use crate::scheduler::fibers::{Delivery, Scope};
use crate::scheduler::wait::Wait;
use crate::scheduler::{Scheduler, Visit};

/// Runs a block that raises into another fiber. The fiber that is running counts as being in a hook meanwhile.
pub fn raising(ruby: &Ruby) -> Result<Value, Error> {
    let Some(scheduler) = current() else { return ruby.yield_value(()) };
    let current = fiber::ensure_current()?;
    let running = scheduler.turns.borrow().running();
    let key = match running {
        Some((running, key)) if running == current => key,
        _ => scheduler.give_turn_to(current)?,
    };
    if let Some(record) = scheduler.turns.borrow_mut().fibers.get_mut(key) {
        record.visits += 1;
    }
    let result = ruby.yield_value(());
    if is_in_use(&scheduler) {
        // An exception may have been raised into this fiber meanwhile, by a fiber that has to come back in its turn.
        scheduler.recover_giver(key);
        scheduler.turns.borrow_mut().take_turn(key);
        drop(Visit::new(&scheduler, key));
    }
    result
}

/// The fiber that is running is about to kill `target`. If that one was preempted it is told to end by an exception,
/// and the result is true: Ruby would kill it again at each switch, and its `ensure` could not wait for anything.
pub fn killing(ruby: &Ruby, target: Value) -> Result<bool, Error> {
    let Some(scheduler) = current() else { return Ok(false) };
    let exception = Held::new(error::stop_class(ruby)?.as_value());
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
        if turns.fibers.get(key).is_some_and(|record| record.stopped) {
            turns.deliver(key, Delivery { exception, message: None, scope: Scope::Fiber });
        } else {
            turns.tell_to_end(key, exception);
        }
    }
    scheduler.yield_turn(ruby)?;
    Ok(true)
}

/// Whether what is raised at this thread belongs in the fiber that runs; see `scheduler/interrupting.rs`.
pub fn answers(_: &Ruby) -> Result<bool, Error> {
    let current = fiber::ensure_current()?;
    Ok(self::current().is_none_or(|scheduler| scheduler.answers(current)))
}

/// The handler of a signal has raised `exception`, which belongs in the root.
pub fn send_to_root(_: &Ruby, exception: Value) {
    if let Some(scheduler) = current() {
        scheduler.send_to_root(exception);
    }
}

/// The same in the root itself, or whatever answers for the thread.
pub fn interrupted(_: &Ruby, exception: Value) {
    if let Some(scheduler) = current() {
        scheduler.note_interruption(exception);
    }
}

/// This thread's scheduler, if it is one of ours and in use.
fn current() -> Option<KeptAlive<Scheduler>> {
    Scheduler::of_thread().filter(|scheduler| is_in_use(scheduler))
}

fn is_in_use(scheduler: &Scheduler) -> bool {
    scheduler.owner.get() == Some(thread::current()) && !scheduler.is_inherited()
}
