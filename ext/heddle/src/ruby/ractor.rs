//! Ractors. Heddle's schedulers live in the main Ractor, whose GVL guards all that they share.
//!
//! But the modules that Heddle prepends to Ruby's classes are called in every Ractor. Their functions are defined
//! within [`safe`], and check [`is_main`] before they use any shared state.

use std::os::raw::c_void;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::error;
use super::gvl::HoldsGvl;
use magnus::{Error, ExceptionClass, RClass, Ruby, prelude::*};
use rb_sys::{rb_ractor_local_key_struct, rb_ractor_local_storage_type};

/// The type of the main Ractor's mark, which is no object and owns nothing.
static MARK_TYPE: rb_ractor_local_storage_type = rb_ractor_local_storage_type { mark: None, free: None };

static MARK: AtomicPtr<rb_ractor_local_key_struct> = AtomicPtr::new(ptr::null_mut());

/// Marks the current Ractor as the main one. Ruby loads extensions in the main Ractor only.
pub fn note_main(_: &Ruby) {
    // SAFETY: called with the GVL; the type is a static. The pointer that is stored is never followed.
    unsafe {
        let key = rb_sys::rb_ractor_local_storage_ptr_newkey(&raw const MARK_TYPE);
        rb_sys::rb_ractor_local_storage_ptr_set(key, key.cast());
        MARK.store(key, Ordering::Release);
    }
}

/// Whether the current Ractor is the main one.
pub fn is_main(_: &impl HoldsGvl) -> bool {
    let key = MARK.load(Ordering::Acquire);
    // SAFETY: called with the GVL of the current Ractor; Ruby has returned the key, and never frees it.
    let mark: *mut c_void = unsafe { rb_sys::rb_ractor_local_storage_ptr(key) };
    !mark.is_null()
}

/// Allows every Ractor to call the methods that `define` defines. By default, Ruby allows that in the main Ractor only.
pub fn safe<T>(_: &Ruby, define: impl FnOnce() -> T) -> T {
    // SAFETY: called with the GVL while Ruby loads the extension; sets a flag of the current thread.
    unsafe { rb_sys::rb_ext_ractor_safe(true) };
    let result = define();
    // SAFETY: as above.
    unsafe { rb_sys::rb_ext_ractor_safe(false) };
    result
}

/// Ractor::UnsafeError, if the current Ractor is not the main one.
pub fn expect_main(ruby: &Ruby, what: &str) -> Result<(), Error> {
    if is_main(ruby) {
        return Ok(());
    }
    let class: ExceptionClass = ruby.class_object().const_get::<_, RClass>("Ractor")?.const_get("UnsafeError")?;
    Err(error::of(
        class,
        format!("{what} works only in the main Ractor (Heddle::RactorPool, called there, computes in other Ractors)"),
    ))
}
