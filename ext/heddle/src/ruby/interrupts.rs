//! Interrupts of the current thread by other threads and signals: `Thread#raise`, `Thread#kill`, traps.

use std::os::raw::c_int;

use magnus::rb_sys::{AsRawValue, protect};
use magnus::{Error, Ruby, Value};

use super::thread;

/// Whether an interrupt is pending for `thread`, the current one.
pub fn pending(thread: Value) -> bool {
    // SAFETY: called with the GVL on a thread object; only reads flags.
    unsafe { rb_sys::rb_thread_interrupted(thread.as_raw()) != 0 }
}

unsafe extern "C" {
    /// Exported by every Ruby, but not in the headers that rb-sys reads: whether a signal waits for its handler.
    fn rb_thread_check_trap_pending() -> c_int;
}

/// Whether a trap is to run in the current thread. Unlike [`pending`], this is right in a postponed job, too: Ruby
/// clears the flags of pending interrupts before it runs the job, and handles the interrupts afterwards.
pub fn is_trap_pending(ruby: &Ruby) -> bool {
    // SAFETY: called with the GVL; only reads a counter.
    thread::is_main(ruby) && unsafe { rb_thread_check_trap_pending() } != 0
}

/// Makes Ruby check the current thread's pending interrupts at its next safe point.
pub fn request_check(ruby: &Ruby) {
    // SAFETY: called with the GVL on the current thread, which is flagged as interrupted. Nothing is switched or
    // raised.
    unsafe { rb_sys::rb_thread_wakeup_alive(thread::current(ruby).as_raw()) };
}

/// Handles the pending interrupts: runs traps, and raises what was raised at this thread.
pub fn check(_: &Ruby) -> Result<(), Error> {
    protect(|| {
        // SAFETY: called with the GVL; what it raises stops at `protect`, and the closure owns nothing.
        unsafe { rb_sys::rb_thread_check_ints() };
        rb_sys::Qnil as rb_sys::VALUE
    })
    .map(|_| ())
}
