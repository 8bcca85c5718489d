//! Child processes.

use magnus::rb_sys::{FromRawValue, protect};
use magnus::{Error, Ruby, Value};

/// `Process::Status.wait(pid, flags | WNOHANG)`: the status of a child that has ended, or nil. Never waits.
pub fn status_if_ended(_: &Ruby, pid: i32, flags: i32) -> Result<Value, Error> {
    // SAFETY: called with the GVL; with WNOHANG it calls no hook; what it raises stops at `protect`.
    protect(|| unsafe { rb_sys::rb_process_status_wait(pid, flags | libc::WNOHANG) })
        // SAFETY: a valid object.
        .map(|value| unsafe { Value::from_raw(value) })
}
