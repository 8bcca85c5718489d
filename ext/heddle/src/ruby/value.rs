//! Ruby objects that Rust structures hold on the heap.

use std::sync::OnceLock;

use magnus::gc::Marker;
use magnus::rb_sys::{AsRawValue, FromRawValue, protect};
use magnus::{Error, Value};
use rb_sys::VALUE;

/// An object that is kept in a Rust structure on the heap, where Ruby's garbage collector does not look by itself. Who
/// holds one marks it in the `mark` function of the object that owns the structure; marking also pins it, so the
/// address stays good as a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PinnedValue(VALUE);

impl PinnedValue {
    /// Holds `value`.
    pub fn new(value: Value) -> Self {
        PinnedValue(value.as_raw())
    }

    /// The object.
    pub fn get(self) -> Value {
        // SAFETY: a `PinnedValue` is made from a valid value alone, and its owner keeps it marked and pinned.
        unsafe { Value::from_raw(self.0) }
    }

    /// Tells the garbage collector that the object is in use and must stay where it is.
    pub fn mark(self, marker: &Marker) {
        marker.mark(self.get());
    }

    /// The raw value, for the other modules of `ruby`.
    pub(super) fn raw(self) -> VALUE {
        self.0
    }

    /// Holds a raw value that Ruby just returned.
    ///
    /// # Safety
    /// It is a valid object.
    pub(super) unsafe fn from_raw(raw: VALUE) -> Self {
        PinnedValue(raw)
    }
}

/// Whether two references mean the same object.
pub fn same(one: Value, other: Value) -> bool {
    one.as_raw() == other.as_raw()
}

/// Whether Ruby keeps the object to itself: then it has no class, and no method may be called on it. Hooks get to see
/// such as blockers, when a fiber waits for another one's `require`.
pub fn is_hidden(value: Value) -> bool {
    let raw = value.as_raw();
    // SAFETY: what is no special constant is an object, which begins with an RBasic.
    !rb_sys::SPECIAL_CONST_P(raw) && unsafe { (*(raw as *const rb_sys::RBasic)).klass } == 0
}

/// What `Kernel#to_s` says of any object: its class and address.
pub fn any_to_s(value: Value) -> Result<Value, Error> {
    // SAFETY: called with the GVL on a valid object; what it raises stops at `protect`.
    protect(|| unsafe { rb_sys::rb_any_to_s(value.as_raw()) }).map(|string| unsafe { Value::from_raw(string) })
}

/// Ruby's number for a name, which is looked up once.
pub(super) fn interned(number: &OnceLock<rb_sys::ID>, name: &str) -> rb_sys::ID {
    // SAFETY: called with the GVL; the pointer and the length are those of a string that is not kept.
    *number.get_or_init(|| unsafe { rb_sys::rb_intern2(name.as_ptr().cast(), name.len() as std::os::raw::c_long) })
}
