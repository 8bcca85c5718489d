//! Raising an exception at the safe point where a postponed job has interrupted a fiber.
//!
//! Ruby swallows exceptions that are raised in a postponed job. But it raises those on the thread's list of pending
//! interrupts as soon as the job ends. So the exception goes to the head of that list.

use magnus::{Error, Ruby, Value, prelude::*};

use super::pending_interrupts;

/// Raises `exception`, or an instance of it if it is a class, in the current fiber as soon as the running postponed job
/// ends. The fiber's masks must let it through: see [`Masks::defer`](super::masks::Masks::defer).
///
/// # Errors
/// Ruby would not raise it then. In that case it is never raised.
pub fn raise_after_job(ruby: &Ruby, exception: Value) -> Result<(), Error> {
    // As `raise` does with a class.
    let exception: Value = exception.funcall("exception", ())?;
    pending_interrupts::raise_next(ruby, exception)
}
