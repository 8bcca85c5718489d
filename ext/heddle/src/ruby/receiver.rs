//! The object that a method is called on, and others whose Rust side is borrowed.

use std::ops::Deref;
use std::ptr::NonNull;

use magnus::rb_sys::AsRawValue;
use magnus::typed_data::Obj;
use magnus::{Error, TryConvert, TypedData, Value, prelude::*};
use rb_sys::stable_api::StableApiDefinition;

use super::value::is_of_type;

/// The Rust side of a method's `self`, for use as an argument. Unlike `&T`, its conversion needs no `rb_protect`, which
/// costs a quarter of a switch.
///
/// `&T`'s lifetime would be unbounded, as the conversion starts from a plain object. Here a borrow lasts as long as the
/// receiver at most, and the receiver keeps the object on the stack, and so alive. It must not be moved to the heap,
/// where the garbage collector does not find it.
pub struct Receiver<T> {
    data: NonNull<T>,
    object: Value,
}

impl<T> Receiver<T> {
    /// The object itself.
    pub fn as_value(&self) -> Value {
        self.object
    }
}

impl<T> Deref for Receiver<T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the object's data, which is freed with the object alone, and `self.object` keeps the object alive.
        unsafe { self.data.as_ref() }
    }
}

impl<T> Drop for Receiver<T> {
    #[inline]
    fn drop(&mut self) {
        // This use keeps the object on the stack until here.
        std::hint::black_box(self.object);
    }
}

impl<T: TypedData> Receiver<T> {
    /// Converts the object with magnus, whose error names the types.
    #[cold]
    fn convert_slowly(object: Value) -> Result<Self, Error> {
        <&T>::try_convert(object).map(|data| Receiver { data: NonNull::from(data), object })
    }
}

impl<T: TypedData> TryConvert for Receiver<T> {
    #[inline]
    fn try_convert(value: Value) -> Result<Self, Error> {
        if !is_of_type::<T>(value) {
            return Receiver::convert_slowly(value);
        }
        let ruby = rb_sys::stable_api::get_default();
        // SAFETY: the object is of that type, so its data is null, or a `T` that `T`'s allocator has stored.
        let data = NonNull::new(unsafe { ruby.rtypeddata_get_data(value.as_raw()) }.cast::<T>());
        data.map_or_else(|| Receiver::convert_slowly(value), |data| Ok(Receiver { data, object: value }))
    }
}

/// Keeps an object alive until this is dropped. For an object that is not the receiver of a running method: the program
/// may drop its last reference while the Rust side is borrowed, and the collector does not see a Rust borrow.
pub struct KeptAlive<T: TypedData>(Obj<T>);

impl<T: TypedData> KeptAlive<T> {
    /// Keeps `object` alive, for as long as this stays on the stack.
    pub fn new(object: Obj<T>) -> Self {
        KeptAlive(object)
    }
}

impl<T: TypedData> Deref for KeptAlive<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: TypedData> Drop for KeptAlive<T> {
    fn drop(&mut self) {
        std::hint::black_box(self.0.as_value());
    }
}
