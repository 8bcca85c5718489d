//! Instance variables that Ruby code cannot see.

use std::sync::OnceLock;

use magnus::rb_sys::{AsRawValue, FromRawValue, protect};
use magnus::{Error, Ruby, Value};

use super::value::interned;

/// The name of a hidden instance variable.
pub struct HiddenVariable {
    name: &'static str,
    number: OnceLock<rb_sys::ID>,
}

impl HiddenVariable {
    /// For a static. Ruby code cannot use a name without an @.
    pub const fn new(name: &'static str) -> Self {
        HiddenVariable { name, number: OnceLock::new() }
    }

    /// Sets the object's variable.
    ///
    /// # Errors
    /// The object is frozen; no memory.
    pub fn set(&self, object: Value, value: Value) -> Result<(), Error> {
        // SAFETY: called with the GVL on valid objects; an exception stops at `protect`.
        protect(|| unsafe { rb_sys::rb_ivar_set(object.as_raw(), self.number(object), value.as_raw()) }).map(|_| ())
    }

    /// The value of the object's variable, or nil.
    pub fn get(&self, object: Value) -> Value {
        // SAFETY: called with the GVL on a valid object; neither allocates nor raises; a valid object or nil.
        unsafe { Value::from_raw(rb_sys::rb_attr_get(object.as_raw(), self.number(object))) }
    }

    fn number(&self, object: Value) -> rb_sys::ID {
        interned(&Ruby::get_with(object), &self.number, self.name)
    }
}
