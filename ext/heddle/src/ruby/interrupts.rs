//! What other threads and signals want of this thread: `Thread#raise`, `Thread#kill`, traps.

use magnus::Error;
use magnus::rb_sys::protect;

use super::value::Held;

/// Whether an interrupt waits for `thread`, the current one, to look at it.
pub fn pending(thread: Held) -> bool {
    // SAFETY: called with the GVL on a thread object; only reads flags.
    unsafe { rb_sys::rb_thread_interrupted(thread.raw()) != 0 }
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

/// Like [`check`], after `prepare`: a trap may call anything, so the books must be right before.
pub fn check_after(prepare: impl FnOnce()) -> Result<(), Error> {
    prepare();
    check()
}
