//! The garbage collector.

use std::sync::OnceLock;

use magnus::rb_sys::{AsRawValue, protect};
use magnus::{Error, RModule, Ruby, Value, kwargs, prelude::*};
use rb_sys::{ID, VALUE, rb_event_flag_t};

use super::constant::Constant;
use super::gvl::Collecting;
use super::outcome::RubyOutcome;
use super::pending_interrupts::Deferred;

/// The number of garbage collections so far. As long as it does not change, no object is freed or moved.
pub fn collections(_: &Ruby) -> rb_sys::size_t {
    // SAFETY: called with the GVL; only reads a counter.
    unsafe { rb_sys::rb_gc_count() }
}

/// The number of major garbage collections so far. Where Ruby's collector does not tell it, that of all collections.
pub fn major_collections(ruby: &Ruby) -> u64 {
    let key = ruby.to_symbol("major_gc_count");
    // SAFETY: called with the GVL; for a Symbol the result is a number, which `protect` passes on; a key that the
    // collector does not know raises, and that stops at `protect`.
    let found = protect(|| unsafe { rb_sys::rb_gc_stat(key.as_raw()) as VALUE });
    found.not_an_interrupt("an unknown key").unwrap_or_else(|| collections(ruby))
}

/// `GC.start`: a major garbage collection, or a minor one, which frees only what no major one has marked. Collects even
/// if the program has disabled the collector.
pub fn collect(ruby: &Ruby, major: bool) {
    static GC: Constant = Constant::new(&["GC"]);
    let arguments = (kwargs!("full_mark" => major),);
    GC.get::<RModule>(ruby).and_then(|gc| gc.funcall::<_, _, Value>("start", arguments)).deferred();
}

/// What [`watch`] was given.
static WATCHER: OnceLock<fn(&Collecting, bool)> = OnceLock::new();

const BEGINS: rb_event_flag_t = rb_sys::RUBY_INTERNAL_EVENT_GC_ENTER as rb_event_flag_t;
const ENDS: rb_event_flag_t = rb_sys::RUBY_INTERNAL_EVENT_GC_EXIT as rb_event_flag_t;

/// Calls `watcher` when the collector begins to work, with true, and when it stops, with false, until [`unwatch`]. It
/// runs within the collector, with the GVL: it must make no Ruby object, call no Ruby, and not panic. All calls take
/// the same function.
///
/// # Errors
/// NoMemoryError.
pub fn watch(ruby: &Ruby, watcher: fn(&Collecting, bool)) -> Result<(), Error> {
    unwatch(ruby);
    WATCHER.get_or_init(|| watcher);
    protect(|| {
        // SAFETY: called with the GVL; the function stays loaded, as Ruby unloads no extension. It gets nil as its
        // data. These events change no code of the program, unlike those of methods and lines.
        unsafe { rb_sys::rb_add_event_hook(Some(on_event), BEGINS | ENDS, rb_sys::Qnil as VALUE) };
        rb_sys::Qnil as VALUE
    })
    .map(|_| ())
}

/// The inverse of [`watch`].
pub fn unwatch(_: &Ruby) {
    // SAFETY: called with the GVL; does nothing if the function is not registered.
    unsafe { rb_sys::rb_remove_event_hook(Some(on_event)) };
}

unsafe extern "C" fn on_event(event: rb_event_flag_t, _: VALUE, _: VALUE, _: ID, _: VALUE) {
    if let Some(watcher) = WATCHER.get() {
        // SAFETY: the collector calls this with the GVL.
        watcher(&unsafe { Collecting::assume() }, event == BEGINS);
    }
}
