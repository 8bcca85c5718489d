//! Threads.

use magnus::rb_sys::{AsRawValue, FromRawValue};
use magnus::value::Lazy;
use magnus::{Error, RClass, RString, Ruby, Value, prelude::*};

use super::gvl::HoldsGvl;
use super::outcome::RubyOutcome;
use super::value::{Registered, is_hidden};

/// `value`, if it is a thread.
pub fn of(value: Value) -> Option<Value> {
    let ruby = Ruby::get_with(value);
    (!is_hidden(value) && value.is_kind_of(ruby.class_thread())).then_some(value)
}

/// The current thread.
pub fn current(_: &impl HoldsGvl) -> Value {
    // SAFETY: called with the GVL; does not allocate.
    unsafe { Value::from_raw(rb_sys::rb_thread_current()) }
}

/// The kernel's number of the current thread.
pub fn native_id() -> libc::pid_t {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::gettid() }
}

/// What the thread is called in reports: `main`, its name, or its `object_id`.
pub fn name(thread: Value) -> Result<String, Error> {
    // SAFETY: called with the GVL; neither allocates nor raises.
    if unsafe { rb_sys::rb_thread_main() } == thread.as_raw() {
        return Ok("main".to_owned());
    }
    let name: Option<RString> = thread.funcall("name", ())?;
    match name {
        // SAFETY: the bytes are copied before Ruby is called again.
        Some(name) => Ok(String::from_utf8_lossy(unsafe { name.as_slice() }).into_owned()),
        None => thread.funcall::<_, _, u64>("object_id", ()).map(|id| id.to_string()),
    }
}

/// Whether `Thread#kill` was called on the current thread.
pub fn is_aborting(ruby: &Ruby) -> Result<bool, Error> {
    let status: Option<String> = ruby.thread_current().funcall::<_, _, Value>("status", ()).map(|status| {
        // `status` is a String for a running thread, and false or nil for a thread that has ended.
        RString::from_value(status).and_then(|name| name.to_string().not_an_interrupt("no UTF-8"))
    })?;
    Ok(status.as_deref() == Some("aborting"))
}

static RAISE: Registered = Registered::new();

/// Remembers `Thread#raise` for [`raise_into`], when Heddle is loaded and has not changed the method.
///
/// # Errors
/// What a signal or another thread raises meanwhile. Loading Heddle then fails.
pub fn find_raise(ruby: &Ruby) -> Result<(), Error> {
    let own = ruby.class_thread().funcall("instance_method", ("raise",))?;
    RAISE.get_or_register(own);
    Ok(())
}

/// Raises `exception` in `thread`, as Ruby's `Thread#raise` does: to the current thread, too, it is an interrupt, and
/// not an exception of the current fiber as with `lib/heddle/patches/thread_raise.rb`.
pub fn raise_into(thread: Value, exception: Value) -> Result<(), Error> {
    // Never nil: Heddle is not loaded without it.
    let ruby = Ruby::get_with(exception);
    let own = RAISE.get(&ruby).map_or_else(|| ruby.qnil().as_value(), |own| own.get());
    own.funcall::<_, _, Value>("bind_call", (thread, exception)).map(|_| ())
}

/// Whether the thread waits in a native call, or has ended (`Thread#stop?`).
pub fn is_stopped(thread: Value) -> Result<bool, Error> {
    thread.funcall("stop?", ())
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
pub fn is_main(_: &Ruby) -> bool {
    // SAFETY: called with the GVL; neither allocates nor raises.
    unsafe { rb_sys::rb_thread_main() == rb_sys::rb_thread_current() }
}

static MUTEX: Lazy<RClass> = Lazy::new(|ruby| {
    let class = ruby.class_thread().const_get("Mutex").not_an_interrupt("never: Ruby defines the class");
    let class = class.unwrap_or_else(|| ruby.class_basic_object());
    ruby.gc_register_mark_object(class);
    class
});

/// As [`find_class`](super::value::find_class), for Mutex.
pub fn find_mutex_class(ruby: &Ruby) {
    ruby.get_inner(&MUTEX);
}

/// Whether `value` is a Mutex.
pub fn is_mutex(ruby: &Ruby, value: Value) -> Result<bool, Error> {
    Ok(!is_hidden(value) && value.is_kind_of(ruby.get_inner(&MUTEX)))
}
