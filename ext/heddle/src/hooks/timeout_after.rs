//! `timeout_after`: called by `Timeout.timeout`, which then needs no thread and interrupts the right fiber.

use magnus::{Error, Ruby, Value, prelude::*};

use crate::ruby::{error, time};
use crate::scheduler::Scheduler;
use crate::scheduler::raise::Limit;
use crate::scheduler::waiting::FOR_EVER;

/// Runs the block. If the duration elapses before its end, raises the exception, made with the arguments that follow it,
/// in the fiber, wherever it waits. Never raises after the block has ended.
///
/// If the program has passed a class to `Timeout.timeout`, it is raised once, and the block may rescue it. Otherwise
/// `Timeout.timeout` passes an exception that is no StandardError, and turns it into `Timeout::Error` outside the
/// block. Ruby 4.1 does that itself, and `lib/heddle/patches/timeout.rb` before. This exception is raised until the
/// block ends.
pub fn timeout_after(ruby: &Ruby, scheduler: &Scheduler, arguments: &[Value]) -> Result<Value, Error> {
    ruby.check_arity(arguments.len(), 2..)?;
    let (duration, exception, of_exception) = (arguments[0], arguments[1], &arguments[2..]);
    let Some(timeout) = time::limit(ruby, duration)?.filter(|timeout| *timeout < FOR_EVER) else {
        return ruby.yield_value(duration);
    };
    let hook = scheduler.enter(ruby)?;
    let limit = match of_exception {
        [message] if error::is_limit(ruby, exception, *message)? => Limit::Repeated(exception),
        [] => Limit::Once { exception, message: None },
        [message] => Limit::Once { exception, message: Some(*message) },
        _ => Limit::Once { exception: exception.funcall("exception", of_exception)?, message: None },
    };
    let at = scheduler.state.borrow().clock.now() + timeout;
    scheduler.run_until(ruby, hook.key, at, limit, Some(duration))
}
