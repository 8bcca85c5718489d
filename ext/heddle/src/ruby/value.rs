//! Ruby objects that Rust structures hold on the heap.

use std::marker::PhantomData;
use std::sync::OnceLock;

use magnus::gc::Marker;
use magnus::rb_sys::{AsRawValue, FromRawValue, protect};
use magnus::typed_data::Obj;
use magnus::value::ReprValue;
use magnus::{Error, RClass, Ruby, TryConvert, TypedData, Value};
use rb_sys::VALUE;
use rb_sys::stable_api::StableApiDefinition;

use super::gvl::assert_stays_with_gvl;
use super::outcome::RubyOutcome;

/// A reference to an object that a Rust structure on the heap holds, where Ruby's garbage collector does not look. An
/// object on the stack is a [`Value`].
///
/// # Contract
/// As long as a `PinnedValue` is used, one of these holds, so the object is neither freed nor moved, and its address
/// can serve as a key:
///
/// * It is in a structure whose Ruby object calls [`PinnedValue::mark`] on it in its `mark` function, which pins it.
/// * It was copied from there to the stack. The collector scans stacks, and pins what it finds there.
/// * It is in a [`Registered`].
///
/// A copy on the stack may outlive the structure, as a [`Value`] may: the collector finds it as long as it is used.
/// What must not be is a copy in other memory, in a `Vec` for instance, which no `mark` function knows. The compiler
/// does not refuse it. So what collects several fibers collects their keys, and looks each fiber up when it needs that
/// ([`Fibers::fiber`](crate::scheduler::state::fibers::Fibers::fiber)).
///
/// It is a proof that its thread holds the GVL, as `Value` is: it is not `Send`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PinnedValue(VALUE, PhantomData<*mut ()>);

assert_stays_with_gvl!(PinnedValue);

impl PinnedValue {
    /// A reference for a structure on the heap.
    ///
    /// # Safety
    /// The [contract](PinnedValue#contract): the owner of the structure marks it.
    pub unsafe fn assume_marked(value: impl ReprValue) -> Self {
        PinnedValue(value.as_raw(), PhantomData)
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
}

/// Which object a reference refers to, for look-ups and comparisons. It keeps no object alive, so another object may
/// have the same identity later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Identity(VALUE);

impl<T: ReprValue> From<T> for Identity {
    fn from(value: T) -> Self {
        Identity(value.as_raw())
    }
}

impl From<PinnedValue> for Identity {
    fn from(value: PinnedValue) -> Self {
        Identity(value.0)
    }
}

impl PartialEq<Value> for PinnedValue {
    fn eq(&self, other: &Value) -> bool {
        same(*self, *other)
    }
}

/// An object that lives, in place, until the process ends. For statics. A thread without the GVL cannot have it.
pub struct Registered(OnceLock<VALUE>);

impl Registered {
    /// Without an object.
    pub const fn new() -> Self {
        Registered(OnceLock::new())
    }

    /// Registers the object with the collector. Returns the object that this has, which is an earlier one if there is
    /// one.
    pub fn get_or_register(&self, value: Value) -> PinnedValue {
        // Not while this is locked: it may collect garbage, for which each Ractor has to stop, and another Ractor's
        // thread would wait for the lock meanwhile.
        keep_for_ever(value);
        PinnedValue(*self.0.get_or_init(|| value.as_raw()), PhantomData)
    }

    /// The object, if there is one.
    pub fn get(&self, _: &Ruby) -> Option<PinnedValue> {
        self.0.get().map(|raw| PinnedValue(*raw, PhantomData))
    }
}

/// Keeps the object alive, and in place, until the process ends.
pub fn keep_for_ever(object: Value) {
    // SAFETY: called with the GVL on a valid object.
    unsafe { rb_sys::rb_gc_register_mark_object(object.as_raw()) };
}

/// The object, if it is a `T` of Rust's.
///
/// The type is asked first: for the message of its error magnus calls methods, at whose ends Ruby checks interrupts,
/// and drops what they raise.
pub fn cast<T: TypedData>(value: Value) -> Option<Obj<T>> {
    if is_of_type::<T>(value) { Obj::try_convert(value).not_an_interrupt("never: the type was asked") } else { None }
}

/// Whether the object is a `T` of Rust's. Calls no method.
#[inline]
pub(super) fn is_of_type<T: TypedData>(value: Value) -> bool {
    let data_type = std::ptr::from_ref(T::data_type()).cast::<rb_sys::rb_data_type_t>();
    let (object, ruby) = (value.as_raw(), rb_sys::stable_api::get_default());
    // SAFETY: called with the GVL on a valid object, and each check runs only if the one before it is true, as Ruby's
    // own macros require. `DataType` is a transparent `rb_data_type_t`.
    unsafe {
        ruby.type_p(object, rb_sys::ruby_value_type::RUBY_T_DATA)
            && ruby.rtypeddata_p(object)
            && ruby.rtypeddata_type(object) == data_type
    }
}

/// Whether two references refer to the same object.
pub fn same(one: impl Into<Identity>, other: impl Into<Identity>) -> bool {
    one.into() == other.into()
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
pub fn class_of(object: Value) -> Option<Value> {
    let raw = object.as_raw();
    if rb_sys::SPECIAL_CONST_P(raw) || is_hidden(object) {
        return None;
    }
    // SAFETY: a value that is no special constant refers to an object, which begins with an RBasic. The object keeps
    // its class alive.
    Some(unsafe { Value::from_raw((*(raw as *const rb_sys::RBasic)).klass) })
}

/// Converts what is to be a number, as Ruby's own methods do.
///
/// # Errors
/// TypeError and RangeError, and what the object's `to_int` raises.
pub fn to_long(object: Value) -> Result<i64, Error> {
    let mut number = 0;
    // SAFETY: called with the GVL on a valid object; what it raises stops at `protect`.
    protect(|| unsafe {
        number = rb_sys::rb_num2long(object.as_raw());
        rb_sys::Qnil as VALUE
    })?;
    Ok(number)
}

/// The object's address. Not to be read from.
pub fn address(object: Value) -> u64 {
    object.as_raw()
}

/// The result of `Kernel#to_s` for any object: its class and address.
pub fn any_to_s(value: Value) -> Result<Value, Error> {
    // SAFETY: called with the GVL on a valid object; what it raises stops at `protect`.
    protect(|| unsafe { rb_sys::rb_any_to_s(value.as_raw()) }).map(|string| unsafe { Value::from_raw(string) })
}

/// Ruby's number for a name, which is looked up once.
pub(super) fn interned(_: &Ruby, number: &OnceLock<rb_sys::ID>, name: &str) -> rb_sys::ID {
    // SAFETY: called with the GVL; the pointer and the length are those of a string, which Ruby copies.
    *number.get_or_init(|| unsafe { rb_sys::rb_intern2(name.as_ptr().cast(), name.len() as std::os::raw::c_long) })
}

/// Has magnus look up the class of a type now, while Ruby loads the extension. Looked up later, by several threads at a
/// time, it could stop them all: magnus keeps a lock that waits without releasing the GVL, and the thread that has the
/// lock may lose the GVL while it looks up the constant.
pub fn find_class<T: TypedData>(ruby: &Ruby) {
    let _: RClass = T::class(ruby);
}
