//! What other threads and signals want of this thread: `Thread#raise`, `Thread#kill`, traps.

use std::os::raw::c_int;

use magnus::Error;
use magnus::rb_sys::protect;

use super::thread;
use super::value::PinnedValue;

/// Whether an interrupt waits for `thread`, the current one, to look at it.
pub fn pending(thread: PinnedValue) -> bool {
    // SAFETY: called with the GVL on a thread object; only reads flags.
    unsafe { rb_sys::rb_thread_interrupted(thread.raw()) != 0 }
}

unsafe extern "C" {
    /// Exported by every Ruby, but not in the headers that rb-sys reads: whether a signal waits for its handler.
    fn rb_thread_check_trap_pending() -> c_int;
}

/// Whether a trap waits to run in the current thread. Unlike [`pending`], also in a postponed job, which Ruby runs after
/// it has taken note of the others, and before it sees to them.
pub fn is_trap_due() -> bool {
    // SAFETY: called with the GVL; only reads a counter.
    thread::is_main() && unsafe { rb_thread_check_trap_pending() } != 0
}

/// Has Ruby look for what is to be raised at the current thread.
pub fn look_again() {
    // SAFETY: called with the GVL on the thread that runs; it is marked as interrupted, nothing is switched or raised.
    unsafe { rb_sys::rb_thread_wakeup_alive(thread::current().raw()) };
}

/// Handles the pending interrupts: runs traps, raises what was raised at this thread.
pub fn check() -> Result<(), Error> {
    protect(|| {
        // SAFETY: called with the GVL; what it raises stops at `protect`, and the closure owns nothing.
        unsafe { rb_sys::rb_thread_check_ints() };
        rb_sys::Qnil as rb_sys::VALUE
    })
    .map(|_| ())
}
