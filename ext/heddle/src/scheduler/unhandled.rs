//! Errors that leave a fiber.
//!
//! Ruby raises an error that leaves a fiber in the fiber that continues, and so ends that fiber, too. Therefore an
//! error here ends only its own fiber, and is reported as Ruby reports a thread's. An error that is meant for the
//! whole thread (`exit`, signals, `Thread#kill`) does propagate.

use magnus::{Error, RModule, Ruby, Value, error::ErrorType, prelude::*};

use crate::ruby::constant::Constant;
use crate::ruby::error;

/// Decides whether an error leaves its fiber. Returns the fiber's value if the error ends here, or the error if it
/// propagates.
pub fn settle(ruby: &Ruby, block: Value, error: Error) -> Result<Value, Error> {
    let nil = ruby.qnil().as_value();
    if error::stop_class(ruby).is_ok_and(|stop| error.is_kind_of(stop)) {
        return Ok(nil);
    }
    match error.error_type() {
        ErrorType::Exception(exception) if !propagates_to_thread(ruby, &error) => {
            static REPORT: Constant = Constant::new(&["Heddle", "UnhandledError"]);
            let aborts: bool = REPORT.get::<RModule>(ruby)?.funcall("report", (*exception, block))?;
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
