//! `Fiber#raise` and `Fiber#kill` switch straight into a fiber that waits, and there is no hook. Whom that fiber puts on
//! the run queue in return is the one that had the turn, as far as the scheduler knows. If that one had resumed a
//! generator, and the generator raises, only `lib/heddle/patches/fiber_raise.rb` knows.

use magnus::{Error, Ruby, Value, prelude::*};

use crate::ruby::value::PinnedValue;
use crate::ruby::{error, fiber};
use crate::scheduler::fibers::{PendingRaise, RaiseScope};
use crate::scheduler::wait::Wait;
use crate::scheduler::{HookGuard, Scheduler};
use crate::ticker::foreign_fibers;

/// Runs a block that raises into another fiber. The fiber that is running counts as being in a hook meanwhile.
pub fn raising(ruby: &Ruby) -> Result<Value, Error> {
    let Some(scheduler) = Scheduler::in_use() else { return ruby.yield_value(()) };
    let current = fiber::ensure_current()?;
    let running = scheduler.state.borrow().current();
    let key = match running {
        Some((running, key)) if running == current => key,
        _ => scheduler.make_current(current)?,
    };
    if let Some(record) = scheduler.state.borrow_mut().fibers.get_mut(key) {
        record.hook_depth += 1;
    }
    let result = ruby.yield_value(());
    if scheduler.is_in_use() {
        // An exception may have been raised into this fiber meanwhile, by a fiber that has to come back in its turn.
        scheduler.requeue_switcher(key);
        scheduler.state.borrow_mut().set_current(key);
        drop(HookGuard::new(&scheduler, key));
    }
    result
}

/// The fiber that is running is about to kill `target`. If that one was preempted it is told to end by an exception,
/// and the result is true: Ruby would kill it again at each switch, and its `ensure` could not wait for anything.
pub fn killing(ruby: &Ruby, target: Value) -> Result<bool, Error> {
    let Some(scheduler) = Scheduler::in_use() else { return Ok(false) };
    let exception = PinnedValue::new(error::stop_class(ruby)?.as_value());
    {
        let mut state = scheduler.state.borrow_mut();
        let target = PinnedValue::new(target);
        let Some(key) = state.fibers.find(target) else { return Ok(false) };
        let takes_it_for_a_kill = state.fibers.get(key).is_some_and(|record| {
            record.wait == Wait::Preempted && (record.managed || foreign_fibers::yield_state_of(target).is_some())
        });
        if !takes_it_for_a_kill {
            if let Some(record) = state.fibers.get_mut(key) {
                record.killed = true;
            }
            return Ok(false);
        }
        if state.fibers.get(key).is_some_and(|record| record.end_requested) {
            state.send_raise(key, PendingRaise { exception, message: None, scope: RaiseScope::Fiber });
        } else {
            state.request_end(key, exception);
        }
    }
    scheduler.yield_now(ruby)?;
    Ok(true)
}
