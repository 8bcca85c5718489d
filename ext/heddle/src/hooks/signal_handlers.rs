//! Functions that `lib/heddle` calls when a signal's handler raises: see `scheduler/root_interrupts.rs`.

use magnus::{Error, Ruby, Value};

use crate::ruby::fiber;
use crate::scheduler::Scheduler;

/// Whether exceptions for this thread are to be raised in the current fiber; see `scheduler/root_interrupts.rs`.
pub fn handles_interrupts(_: &Ruby) -> Result<bool, Error> {
    let current = fiber::ensure_current()?;
    Ok(Scheduler::in_use().is_none_or(|scheduler| scheduler.handles_interrupts(current)))
}

/// Sends `exception`, which a signal's handler has raised, to the root fiber.
pub fn send_to_root(_: &Ruby, exception: Value) {
    if let Some(scheduler) = Scheduler::in_use() {
        scheduler.send_to_root(exception);
    }
}

/// Records `exception`, which a signal's handler has raised in the root fiber or the fiber that takes its place.
pub fn record_interrupt(_: &Ruby, exception: Value) {
    if let Some(scheduler) = Scheduler::in_use() {
        scheduler.note_interruption(exception);
    }
}
