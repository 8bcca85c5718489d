//! `timeout_after`: what `Timeout.timeout` calls, so that it needs no thread and hits the right fiber.

use std::time::Instant;

use magnus::{Error, Ruby, Value};

use crate::ruby::time;
use crate::ruby::value::Held;
use crate::scheduler::Scheduler;
use crate::scheduler::waiting::FOR_EVER;

/// Runs the block; when `duration` is over before its end, raises `exception` (a class, or since Ruby 4.1 an instance)
/// with `message` in the fiber, wherever it waits then. Never after the block has ended.
pub fn timeout_after(
    ruby: &Ruby,
    scheduler: &Scheduler,
    duration: Value,
    exception: Value,
    message: Value,
) -> Result<Value, Error> {
    let timeout = time::interval(duration)?;
    let visit = scheduler.enter(ruby)?;
    let at = Instant::now() + timeout.min(FOR_EVER);
    let (timer, scope) =
        scheduler.turns.borrow_mut().set_deadline(at, visit.key, Held::new(exception), Some(Held::new(message)));
    let result = scheduler.exposed(visit.key, || ruby.yield_value::<_, Value>(duration));
    let mut turns = scheduler.turns.borrow_mut();
    turns.timers.cancel(timer);
    turns.retract(visit.key, scope);
    result
}
