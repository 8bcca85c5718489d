//! Hooks of `TracePoint.new(:raise)`, as error trackers have them to collect local variables.

use magnus::rb_sys::{FromRawValue, protect};
use magnus::{Error, RString, Ruby, Value, prelude::*};
use rb_sys::{VALUE, rb_event_flag_t};

use super::insides::RAISE_HOOK;
use super::pending_interrupts::Deferred;

const RAISE: rb_event_flag_t = rb_sys::RUBY_EVENT_RAISE as rb_event_flag_t;

/// Whether such a hook runs in the current fiber. Ruby calls it while it raises an exception, and ends the program with
/// `exception reentered` if another one leaves it. What is to be raised instead of an answer is pending in the thread.
pub fn is_running(ruby: &Ruby) -> bool {
    describe_hook(ruby).deferred().is_none_or(|hook| hook.starts_with(RAISE_HOOK))
}

/// Ruby describes any TracePoint by the hook that runs in the fiber, even if that is another one's.
fn describe_hook(_: &Ruby) -> Result<String, Error> {
    unsafe extern "C" fn never(_: VALUE, _: *mut std::ffi::c_void) {}

    // SAFETY: called with the GVL; what Ruby raises stops at `protect`. The function outlives the TracePoint, as Ruby
    // unloads no extension, and is never called, as nothing enables the TracePoint.
    let trace_point = protect(|| unsafe { rb_sys::rb_tracepoint_new(0, RAISE, Some(never), std::ptr::null_mut()) })?;
    // SAFETY: Ruby has just returned it.
    let trace_point = unsafe { Value::from_raw(trace_point) };
    trace_point.funcall::<_, _, RString>("inspect", ())?.to_string()
}
