//! Raising at the very instruction where a postponed job has interrupted a fiber.
//!
//! Ruby swallows what is raised in a postponed job. What waits in the thread's list of pending interrupts, though, it
//! raises as soon as the job is over. So the exception goes to the head of that list.

use magnus::{Error, Ruby, Value, prelude::*};

use super::pending_interrupts;

/// Has `exception`, or an instance of the class, raised at the current thread as soon as the postponed job that runs is
/// over. Masks of the fiber that runs must let it through: see [`Masks::defer`](super::masks::Masks::defer).
///
/// # Errors
/// Ruby would not raise it now; then it will not be raised later, either.
pub fn raise_after_job(ruby: &Ruby, exception: Value) -> Result<(), Error> {
    // As `raise` does with a class.
    let exception: Value = exception.funcall("exception", ())?;
    pending_interrupts::raise_next(ruby, exception)
}
