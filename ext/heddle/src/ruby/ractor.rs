//! Ractors. Heddle's schedulers live in the main Ractor, whose GVL guards all that they share.
//!
//! What Heddle prepends to Ruby's own classes is called in every Ractor, though. Those functions are defined by
//! [`safe`], and ask [`is_main`] before they touch anything else.

use std::os::raw::c_void;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use magnus::{Error, ExceptionClass, RClass, Ruby, prelude::*};
use rb_sys::{rb_ractor_local_key_struct, rb_ractor_local_storage_type};

/// The mark is no object and owns nothing.
static MARK_TYPE: rb_ractor_local_storage_type = rb_ractor_local_storage_type { mark: None, free: None };

static MARK: AtomicPtr<rb_ractor_local_key_struct> = AtomicPtr::new(ptr::null_mut());

/// Notes that the current Ractor is the main one. Ruby loads extensions in no other.
pub fn note_main() {
    // SAFETY: called with the GVL; the type is a static. The pointer that is stored is never followed.
    unsafe {
        let key = rb_sys::rb_ractor_local_storage_ptr_newkey(&raw const MARK_TYPE);
        rb_sys::rb_ractor_local_storage_ptr_set(key, key.cast());
        MARK.store(key, Ordering::Release);
    }
}

/// Whether the current Ractor is the main one.
pub fn is_main() -> bool {
    let key = MARK.load(Ordering::Acquire);
    // SAFETY: called with the GVL of the current Ractor; the key is the one that Ruby gave, and is never freed.
    let mark: *mut c_void = unsafe { rb_sys::rb_ractor_local_storage_ptr(key) };
    !mark.is_null()
}

/// Lets the methods that `define` defines be called in every Ractor. Without this, Ruby refuses them outside the main
/// one.
pub fn safe<T>(define: impl FnOnce() -> T) -> T {
    // SAFETY: called with the GVL while Ruby loads the extension; sets a flag of the current thread.
    unsafe { rb_sys::rb_ext_ractor_safe(true) };
    let result = define();
    // SAFETY: as above.
    unsafe { rb_sys::rb_ext_ractor_safe(false) };
    result
}

/// Ractor::UnsafeError, if the current Ractor is not the main one.
pub fn expect_main(ruby: &Ruby, what: &str) -> Result<(), Error> {
    if is_main() {
        return Ok(());
    }
    let class: ExceptionClass = ruby.class_object().const_get::<_, RClass>("Ractor")?.const_get("UnsafeError")?;
    Err(Error::new(
        class,
        format!("{what} works only in the main Ractor (Heddle::RactorPool, called there, computes in other Ractors)"),
    ))
}
