//! Ruby objects that Rust structures hold on the heap.

use std::sync::OnceLock;

use magnus::gc::Marker;
use magnus::rb_sys::{AsRawValue, FromRawValue, protect};
use magnus::{Error, RClass, Ruby, TypedData, Value};
use rb_sys::VALUE;

use super::gc;

/// A reference to an object that a Rust structure on the heap may hold, where Ruby's garbage collector does not look.
///
/// # Contract
/// As long as a `PinnedValue` is used, one of these holds, so the object is neither freed nor moved, and its address
/// can serve as a key:
///
/// * It is on a stack, as an argument or a local variable is. The collector scans stacks, and pins what it finds there.
/// * It is in a structure whose Ruby object calls [`PinnedValue::mark`] on it in its `mark` function, which pins it,
///   too.
/// * It was made by [`PinnedValue::register`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PinnedValue(VALUE);

impl PinnedValue {
    /// A reference for which the caller guarantees the [contract](PinnedValue#contract): a caller that stores it on the
    /// heap also marks it there.
    pub fn assume_marked(value: Value) -> Self {
        PinnedValue(value.as_raw())
    }

    /// Registers an object with the collector, so that it lives, in place, until the process ends. For statics,
    /// whatever happens to the result.
    pub fn register(value: Value) -> Self {
        let pinned = PinnedValue(value.as_raw());
        gc::keep_for_ever(pinned);
        pinned
    }

    /// The object.
    pub fn get(self) -> Value {
        // SAFETY: a `PinnedValue` is made from a valid object alone, and by the contract that has not been freed or
        // moved.
        unsafe { Value::from_raw(self.0) }
    }

    /// Tells the garbage collector that the object is in use and must stay in place.
    pub fn mark(self, marker: &Marker) {
        marker.mark(self.get());
    }

    /// The object's address. Not to be read from.
    pub fn address(self) -> u64 {
        self.0
    }

    /// The raw value, for the modules of `ruby`.
    pub(super) fn raw(self) -> VALUE {
        self.0
    }

    /// A reference to an object that Ruby has just returned.
    ///
    /// # Safety
    /// `raw` is a valid object, and the [contract](PinnedValue#contract) holds.
    pub(super) unsafe fn from_raw(raw: VALUE) -> Self {
        PinnedValue(raw)
    }
}

/// Whether two references refer to the same object.
pub fn same(one: Value, other: Value) -> bool {
    one.as_raw() == other.as_raw()
}

/// Whether the object is internal to Ruby, has no class, and so must not receive method calls. Ruby passes such an
/// object as the blocker when a fiber waits for another fiber's `require`.
pub fn is_hidden(value: Value) -> bool {
    let raw = value.as_raw();
    // SAFETY: a value that is no special constant refers to an object, which begins with an RBasic.
    !rb_sys::SPECIAL_CONST_P(raw) && unsafe { (*(raw as *const rb_sys::RBasic)).klass } == 0
}

/// The class of an object, or its singleton class; `None` for a number and the like, and for an object inside Ruby.
/// Does not allocate.
pub fn class_of(object: PinnedValue) -> Option<PinnedValue> {
    if rb_sys::SPECIAL_CONST_P(object.0) || is_hidden(object.get()) {
        return None;
    }
    // SAFETY: a value that is no special constant refers to an object, which begins with an RBasic. The object keeps
    // its class alive, and in place as long as it is marked by a stack or a `PinnedValue`.
    Some(PinnedValue(unsafe { (*(object.0 as *const rb_sys::RBasic)).klass }))
}

/// The result of `Kernel#to_s` for any object: its class and address.
pub fn any_to_s(value: Value) -> Result<Value, Error> {
    // SAFETY: called with the GVL on a valid object; what it raises stops at `protect`.
    protect(|| unsafe { rb_sys::rb_any_to_s(value.as_raw()) }).map(|string| unsafe { Value::from_raw(string) })
}

/// Ruby's number for a name, which is looked up once.
pub(super) fn interned(number: &OnceLock<rb_sys::ID>, name: &str) -> rb_sys::ID {
    // SAFETY: called with the GVL; the pointer and the length are those of a string, which Ruby copies.
    *number.get_or_init(|| unsafe { rb_sys::rb_intern2(name.as_ptr().cast(), name.len() as std::os::raw::c_long) })
}

/// Has magnus look up the class of a type now, while Ruby loads the extension. Looked up later, by several threads at a
/// time, it could stop them all: magnus keeps a lock that waits without releasing the GVL, and the thread that has the
/// lock may lose the GVL while it looks up the constant.
pub fn find_class<T: TypedData>(ruby: &Ruby) {
    let _: RClass = T::class(ruby);
}
