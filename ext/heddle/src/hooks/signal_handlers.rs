//! What `lib/heddle` asks where a signal's handler raises: see `scheduler/root_interrupts.rs`.

use magnus::{Error, Ruby, Value};

use crate::ruby::fiber;
use crate::scheduler::Scheduler;

/// Whether what is raised at this thread belongs in the fiber that runs; see `scheduler/interrupting.rs`.
pub fn handles_interrupts(_: &Ruby) -> Result<bool, Error> {
    let current = fiber::ensure_current()?;
    Ok(Scheduler::in_use().is_none_or(|scheduler| scheduler.handles_interrupts(current)))
}

/// The handler of a signal has raised `exception`, which belongs in the root.
pub fn send_to_root(_: &Ruby, exception: Value) {
    if let Some(scheduler) = Scheduler::in_use() {
        scheduler.send_to_root(exception);
    }
}

/// The same in the root itself, or whatever answers for the thread.
pub fn record_interrupt(_: &Ruby, exception: Value) {
    if let Some(scheduler) = Scheduler::in_use() {
        scheduler.note_interruption(exception);
    }
}
