//! `timeout_after`: called by `Timeout.timeout`, which then needs no thread and interrupts the right fiber.

use magnus::{Error, Ruby, Value};

use crate::ruby::{error, time};
use crate::scheduler::Scheduler;
use crate::scheduler::raise::Limit;
use crate::scheduler::waiting::FOR_EVER;

/// Runs the block. If `duration` elapses before its end, raises `exception` with `message` in the fiber, wherever it
/// waits. Never raises after the block has ended.
///
/// If the program has passed a class to `Timeout.timeout`, it is raised once, and the block may rescue it. Otherwise
/// `Timeout.timeout` passes an exception that is no StandardError, and turns it into `Timeout::Error` outside the
/// block. Ruby 4.1 does that itself, and `lib/heddle/patches/timeout.rb` before. This exception is raised until the
/// block ends.
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
    let limit = if error::is_limit(ruby, exception, message)? {
        Limit::Repeated(exception)
    } else {
        Limit::Once { exception, message: Some(message) }
    };
    let at = scheduler.state.borrow().now() + timeout;
    scheduler.run_until(ruby, hook.key, at, limit, Some(duration))
}
