//! Calling blocks.

use magnus::block::Proc;
use magnus::rb_sys::{AsRawValue, FromRawValue, protect};
use magnus::{Error, Value, prelude::*};

/// Calls a block without arguments. `Proc::call` would allocate an Array for them.
pub fn call(block: Proc) -> Result<Value, Error> {
    let block = block.as_value().as_raw();
    let nil = rb_sys::Qnil as rb_sys::VALUE;
    // SAFETY: called with the GVL on a Proc; no arguments are read, and there is no block; an exception stops at
    // `protect`.
    protect(|| unsafe { rb_sys::rb_proc_call_with_block(block, 0, std::ptr::null(), nil) })
        // SAFETY: what a block has returned is a valid object.
        .map(|raw| unsafe { Value::from_raw(raw) })
}
