//! `timeout_after`: what `Timeout.timeout` calls, so that it needs no thread and hits the right fiber.

use std::time::Instant;

use magnus::{Error, Ruby, Value};

use crate::ruby::value::PinnedValue;
use crate::ruby::{error, time};
use crate::scheduler::Scheduler;
use crate::scheduler::fibers::Limit;
use crate::scheduler::waiting::FOR_EVER;

/// Runs the block; when `duration` is over before its end, raises `exception` with `message` in the fiber, wherever it
/// waits then. Never after the block has ended.
///
/// A class, which the program has chosen, is raised once, and the block may rescue it. `Timeout.timeout` without a class
/// passes an exception of its own instead, no StandardError, which it turns into `Timeout::Error` outside of the block: from
/// Ruby 4.1 on by itself, before that by `lib/heddle/patches/timeout.rb`. That one is raised until the block has ended.
pub fn timeout_after(
    ruby: &Ruby,
    scheduler: &Scheduler,
    duration: Value,
    exception: Value,
    message: Value,
) -> Result<Value, Error> {
    let Some(timeout) = time::limit(ruby, duration)?.filter(|timeout| *timeout < FOR_EVER) else {
        return ruby.yield_value(duration);
    };
    let hook = scheduler.enter(ruby)?;
    let limit = if error::is_limit(ruby, exception, message) {
        Limit::Repeated(PinnedValue::new(exception))
    } else {
        Limit::Once { exception: PinnedValue::new(exception), message: Some(PinnedValue::new(message)) }
    };
    scheduler.run_until(ruby, hook.key, Instant::now() + timeout, limit, duration)
}
