//! What is left with an object of Ruby's, and lives as long as that.

use std::sync::OnceLock;

use magnus::rb_sys::{AsRawValue, FromRawValue, protect};
use magnus::{Error, Value};

use super::value::{PinnedValue, interned};

/// A kind of note. An object has one of each kind at most.
pub struct HiddenVariable {
    name: &'static str,
    number: OnceLock<rb_sys::ID>,
}

impl HiddenVariable {
    /// To be a static. A name without an @ is one that no Ruby code can use.
    pub const fn new(name: &'static str) -> Self {
        HiddenVariable { name, number: OnceLock::new() }
    }

    /// Leaves `note` with the object.
    ///
    /// # Errors
    /// The object is frozen; no memory.
    pub fn leave(&self, object: PinnedValue, note: Value) -> Result<(), Error> {
        // SAFETY: called with the GVL on valid objects; an exception stops at `protect`.
        protect(|| unsafe { rb_sys::rb_ivar_set(object.raw(), self.number(), note.as_raw()) }).map(|_| ())
    }

    /// What was left with the object, or nil.
    pub fn of(&self, object: PinnedValue) -> Value {
        // SAFETY: called with the GVL on a valid object; neither allocates nor raises; a valid object or nil.
        unsafe { Value::from_raw(rb_sys::rb_attr_get(object.raw(), self.number())) }
    }

    fn number(&self) -> rb_sys::ID {
        interned(&self.number, self.name)
    }
}
