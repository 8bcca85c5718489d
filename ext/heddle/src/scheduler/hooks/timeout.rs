//! `timeout_after`: what `Timeout.timeout` calls, so that it needs no thread and hits the right fiber.

use std::time::Instant;

use magnus::{Error, Ruby, Value};

use crate::ruby::time;
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
    scheduler.run_until(ruby, visit.key, at, (exception, Some(message)), duration)
}
