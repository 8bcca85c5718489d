//! Errors that leave a fiber.
//!
//! If they left it for Ruby, Ruby would raise them in whichever fiber goes on, and end that one, too. So an error ends
//! its own fiber alone, and is reported as Ruby reports a thread's. What is meant for the whole thread (`exit`, signals,
//! `Thread#kill`) does go on.

use magnus::{Error, RModule, Ruby, Value, block::Proc, error::ErrorType, prelude::*};

use crate::ruby::error;

/// Decides what becomes of an error: the fiber's value if it is dealt with here, or the error if it goes on.
pub fn settle(ruby: &Ruby, block: Proc, error: Error) -> Result<Value, Error> {
    let nil = ruby.qnil().as_value();
    if error::stop_class(ruby).is_ok_and(|stop| error.is_kind_of(stop)) {
        return Ok(nil);
    }
    match error.error_type() {
        ErrorType::Exception(exception) if !propagates_to_thread(ruby, &error) => {
            let heddle: RModule = ruby.class_object().const_get("Heddle")?;
            let report: RModule = heddle.const_get("UnhandledError")?;
            let aborts: bool = report.funcall("report", (*exception, block))?;
            if aborts { Err(error) } else { Ok(nil) }
        }
        _ => Err(error),
    }
}

/// Whether the error is meant for the whole thread.
pub fn propagates_to_thread(ruby: &Ruby, error: &Error) -> bool {
    error.is_kind_of(ruby.exception_system_exit())
        || error.is_kind_of(ruby.exception_signal())
        || error.is_kind_of(ruby.exception_fatal())
}
