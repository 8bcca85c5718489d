//! The garbage collector.

use super::value::PinnedValue;

/// The number of garbage collections so far. As long as it does not change, no object is freed or moved.
pub fn collections() -> rb_sys::size_t {
    // SAFETY: called with the GVL; only reads a counter.
    unsafe { rb_sys::rb_gc_count() }
}

/// Keeps the object alive, and in place, until the process ends.
pub fn keep_for_ever(object: PinnedValue) {
    // SAFETY: called with the GVL on a valid object.
    unsafe { rb_sys::rb_gc_register_mark_object(object.raw()) };
}
