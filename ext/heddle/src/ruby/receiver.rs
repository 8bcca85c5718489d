//! The object that a method is called on, and others whose Rust side is borrowed.

use std::ops::Deref;

use magnus::rb_sys::AsRawValue;
use magnus::typed_data::Obj;
use magnus::{Error, TryConvert, TypedData, Value, prelude::*};
use rb_sys::stable_api::StableApiDefinition;

/// The Rust side of a method's `self`. As an argument it is what `&T` is, but to find it takes no `rb_protect`, which
/// is a quarter of what a whole switch costs.
pub struct Receiver<'a, T> {
    data: &'a T,
    object: Value,
}

impl<T> Receiver<'_, T> {
    /// The object itself.
    pub fn as_value(&self) -> Value {
        self.object
    }
}

impl<T> Deref for Receiver<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        self.data
    }
}

impl<T: TypedData> Receiver<'_, T> {
    #[cold]
    fn looked_up(object: Value) -> Result<Self, Error> {
        <&T>::try_convert(object).map(|data| Receiver { data, object })
    }
}

impl<T: TypedData> TryConvert for Receiver<'_, T> {
    #[inline]
    fn try_convert(value: Value) -> Result<Self, Error> {
        let data_type = std::ptr::from_ref(T::data_type()).cast::<rb_sys::rb_data_type_t>();
        let (object, ruby) = (value.as_raw(), rb_sys::stable_api::get_default());
        // SAFETY: called with the GVL on a valid object, and each question is asked only if the one before it is answered
        // with yes, as Ruby's own macros want it. `DataType` is a transparent `rb_data_type_t`.
        let is_ours = unsafe {
            ruby.type_p(object, rb_sys::ruby_value_type::RUBY_T_DATA)
                && ruby.rtypeddata_p(object)
                && ruby.rtypeddata_type(object) == data_type
        };
        if !is_ours {
            // Says what is wrong.
            return Receiver::looked_up(value);
        }
        // SAFETY: it is of that type, so this is what `T`'s allocator has put there. Ruby keeps the receiver of a method
        // alive while the method runs.
        let data = unsafe { ruby.rtypeddata_get_data(object).cast::<T>().as_ref() };
        data.map_or_else(|| Receiver::looked_up(value), |data| Ok(Receiver { data, object: value }))
    }
}

/// An object that is kept alive until this is dropped. For one that is not the receiver of a method that runs: the
/// program may let go of it while its Rust side is borrowed, and a borrow alone is nothing that the collector sees.
pub struct KeptAlive<T: TypedData>(Obj<T>);

impl<T: TypedData> KeptAlive<T> {
    /// Keeps `object`, for as long as this stays on a stack.
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
