//! Threads.

use magnus::rb_sys::AsRawValue;
use magnus::value::Lazy;
use magnus::{Error, RClass, RString, Ruby, Value, prelude::*};

use rb_sys::stable_api::StableApiDefinition;

use super::value::{PinnedValue, is_hidden};

/// `value`, if it is a thread.
pub fn of(value: Value) -> Option<PinnedValue> {
    let ruby = Ruby::get_with(value);
    (!is_hidden(value) && value.is_kind_of(ruby.class_thread())).then(|| PinnedValue::assume_marked(value))
}

/// The current thread.
pub fn current() -> PinnedValue {
    // SAFETY: called with the GVL; does not allocate.
    unsafe { PinnedValue::from_raw(rb_sys::rb_thread_current()) }
}

/// What the thread is called in reports: `main`, its name, or its `object_id`.
pub fn name(thread: PinnedValue) -> Result<String, Error> {
    // SAFETY: called with the GVL; neither allocates nor raises.
    if unsafe { rb_sys::rb_thread_main() } == thread.raw() {
        return Ok("main".to_owned());
    }
    let name: Option<RString> = thread.get().funcall("name", ())?;
    match name {
        // SAFETY: the bytes are copied before Ruby is called again.
        Some(name) => Ok(String::from_utf8_lossy(unsafe { name.as_slice() }).into_owned()),
        None => thread.get().funcall::<_, _, u64>("object_id", ()).map(|id| id.to_string()),
    }
}

/// Whether `Thread#kill` was called on the current thread.
pub fn is_aborting(ruby: &Ruby) -> Result<bool, Error> {
    let status: Option<String> = ruby.thread_current().funcall::<_, _, magnus::Value>("status", ()).map(|status| {
        // `status` is a String for a running thread, and false or nil for a thread that has ended.
        magnus::RString::from_value(status).and_then(|name| name.to_string().ok())
    })?;
    Ok(status.as_deref() == Some("aborting"))
}

/// Raises `exception` in `thread`, as `Thread#raise` does.
pub fn raise_into(thread: PinnedValue, exception: magnus::Value) -> Result<(), Error> {
    thread.get().funcall::<_, _, magnus::Value>("raise", (exception,)).map(|_| ())
}

/// Whether the thread waits in a native call, or has ended (`Thread#stop?`).
pub fn is_stopped(thread: PinnedValue) -> Result<bool, Error> {
    thread.get().funcall("stop?", ())
}

/// Whether `value` is a thread that has not ended.
pub fn is_running(ruby: &Ruby, value: Value) -> Result<bool, Error> {
    if !is_hidden(value) && value.is_kind_of(ruby.class_thread()) { value.funcall("alive?", ()) } else { Ok(false) }
}

/// Whether Ruby may move a thread from one native thread to another (M:N threads).
pub fn may_migrate() -> bool {
    /// The variable that enables M:N threads.
    const MANY_TO_MANY_VARIABLE: &str = "RUBY_MN_THREADS";
    std::env::var_os(MANY_TO_MANY_VARIABLE).is_some()
}

/// Whether the current thread is the one that runs signal handlers.
pub fn is_main() -> bool {
    // SAFETY: called with the GVL; neither allocates nor raises.
    unsafe { rb_sys::rb_thread_main() == rb_sys::rb_thread_current() }
}

static MUTEX: Lazy<RClass> = Lazy::new(|ruby| {
    let class = ruby.class_thread().const_get("Mutex").unwrap_or_else(|_| ruby.class_basic_object());
    ruby.gc_register_mark_object(class);
    class
});

/// As [`find_class`](super::value::find_class), for Mutex.
pub fn find_mutex_class(ruby: &Ruby) {
    ruby.get_inner(&MUTEX);
}

/// The address of Ruby's record of the fiber that holds the Mutex, as
/// [`fiber::addresses`](super::fiber::addresses) returns it. Ruby 3.3 and 3.4 store it there, and another Ruby may
/// store something else: only an address that a known fiber has means anything. It is not to be read from.
pub fn holder_address(mutex: Value) -> usize {
    // SAFETY: a Mutex is an object with data of Ruby's, which has several words. The first is read and not followed.
    unsafe {
        let record = rb_sys::stable_api::get_default().rtypeddata_get_data(mutex.as_raw()).cast::<usize>();
        if record.is_null() { 0 } else { record.read() }
    }
}

/// Whether `value` is a Mutex.
pub fn is_mutex(ruby: &Ruby, value: Value) -> Result<bool, Error> {
    Ok(!is_hidden(value) && value.is_kind_of(ruby.get_inner(&MUTEX)))
}
