//! All schedulers that are open, for what concerns them all: an IO that is closed.

use std::sync::Mutex;

use magnus::Error;

use super::Scheduler;

struct Entry(*const Scheduler);

// SAFETY: the pointers are followed with the GVL alone, which is what guards a scheduler.
unsafe impl Send for Entry {}

static OPEN: Mutex<Vec<Entry>> = Mutex::new(Vec::new());

fn open() -> std::sync::MutexGuard<'static, Vec<Entry>> {
    OPEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// A scheduler has been opened.
pub fn add(scheduler: &Scheduler) {
    let mut open = open();
    if !open.iter().any(|entry| std::ptr::eq(entry.0, scheduler)) {
        open.push(Entry(scheduler));
    }
}

/// A scheduler has been closed, or is about to be freed.
pub fn remove(scheduler: &Scheduler) {
    open().retain(|entry| !std::ptr::eq(entry.0, scheduler));
}

/// Whether none is open.
pub fn is_empty() -> bool {
    open().is_empty()
}

/// Calls `visit` with each open scheduler.
pub fn each(mut visit: impl FnMut(&Scheduler) -> Result<(), Error>) -> Result<(), Error> {
    // No lock may be held while Ruby runs: `visit` may switch fibers.
    let schedulers: Vec<*const Scheduler> = open().iter().map(|entry| entry.0).collect();
    for scheduler in schedulers {
        if open().iter().any(|entry| std::ptr::eq(entry.0, scheduler)) {
            // SAFETY: it is still open, so its object has not been freed: `Drop` removes the entry first.
            visit(unsafe { &*scheduler })?;
        }
    }
    Ok(())
}
