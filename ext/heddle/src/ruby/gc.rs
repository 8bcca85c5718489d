//! The garbage collector.

use super::value::PinnedValue;

/// How many garbage collections there have been. While that stays the same, no object has been freed or moved whose
/// address was seen.
pub fn collections() -> rb_sys::size_t {
    // SAFETY: called with the GVL; only reads a counter.
    unsafe { rb_sys::rb_gc_count() }
}

/// The object is never freed.
pub fn keep_for_ever(object: PinnedValue) {
    // SAFETY: called with the GVL on a valid object.
    unsafe { rb_sys::rb_gc_register_mark_object(object.raw()) };
}
