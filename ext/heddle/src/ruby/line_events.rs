//! Events within lines, as TracePoint notices them.

use std::panic::catch_unwind;
use std::sync::OnceLock;

use magnus::rb_sys::{AsRawValue, protect};
use magnus::{Error, Ruby};
use rb_sys::{ID, VALUE, rb_event_flag_t};

use super::outcome::Ignore;
use super::thread;

const LINE: rb_event_flag_t = rb_sys::RUBY_EVENT_LINE as rb_event_flag_t;
const RETURN: rb_event_flag_t = rb_sys::RUBY_EVENT_C_RETURN as rb_event_flag_t;

/// What happens in the innermost frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineEvent {
    /// A line begins.
    Begins,
    /// A method that is written in C has returned to a line.
    Returned,
}

type Watcher = fn(&Ruby, LineEvent);

/// What [`watch`] was given.
static WATCHER: OnceLock<Watcher> = OnceLock::new();

/// While `during` runs, calls `watcher` at each event of the current thread. Ruby first calls what was registered
/// later, such as TracePoints. All calls take the same function.
///
/// # Errors
/// NoMemoryError.
pub fn watch<T>(ruby: &Ruby, watcher: Watcher, during: impl FnOnce() -> T) -> Result<T, Error> {
    WATCHER.get_or_init(|| watcher);
    let thread = thread::current(ruby).as_raw();
    protect(|| {
        // SAFETY: called with the GVL on a thread object; the function stays loaded, as Ruby unloads no extension. It
        // gets nil as its data.
        unsafe { rb_sys::rb_thread_add_event_hook(thread, Some(on_event), LINE | RETURN, rb_sys::Qnil as VALUE) };
        rb_sys::Qnil as VALUE
    })?;
    let done = during();
    // SAFETY: called with the GVL; the current thread's object is alive.
    unsafe { rb_sys::rb_thread_remove_event_hook(thread, Some(on_event)) };
    Ok(done)
}

unsafe extern "C" fn on_event(flag: rb_event_flag_t, _: VALUE, _: VALUE, _: ID, _: VALUE) {
    let Some(watcher) = WATCHER.get() else { return };
    let event = if flag == LINE { LineEvent::Begins } else { LineEvent::Returned };
    // A panic must not unwind into C.
    let ran = catch_unwind(|| {
        // SAFETY: Ruby calls this on one of its threads, with the GVL.
        watcher(&unsafe { Ruby::get_unchecked() }, event);
    });
    ran.ignored("the panic hook has reported it");
}
