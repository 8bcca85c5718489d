//! `IO::Buffer`: memory that Ruby lends for the time of a hook.

use magnus::rb_sys::{AsRawValue, protect};
use magnus::{Error, Value};

/// A piece of an `IO::Buffer`'s memory.
#[derive(Debug, Clone, Copy)]
pub struct Memory {
    /// Where it begins.
    pub base: *mut u8,
    /// How many bytes there are.
    pub size: usize,
}

/// The buffer's memory, to read into.
///
/// # Errors
/// Ruby's `IO::Buffer::AccessError` for a read-only one, `AllocationError` for one that has been freed.
pub fn for_writing(buffer: Value) -> Result<Memory, Error> {
    let (mut base, mut size) = (std::ptr::null_mut(), 0);
    protect(|| {
        // SAFETY: called with the GVL; both pointers are valid for the call; an exception stops at `protect`.
        unsafe { rb_sys::rb_io_buffer_get_bytes_for_writing(buffer.as_raw(), &mut base, &mut size) };
        rb_sys::Qnil as rb_sys::VALUE
    })?;
    Ok(Memory { base: base.cast(), size: size as usize })
}

/// The buffer's memory, to write from.
///
/// # Errors
/// Ruby's `IO::Buffer::AllocationError` for one that has been freed.
pub fn for_reading(buffer: Value) -> Result<Memory, Error> {
    let (mut base, mut size) = (std::ptr::null(), 0);
    protect(|| {
        // SAFETY: called with the GVL; both pointers are valid for the call; an exception stops at `protect`.
        unsafe { rb_sys::rb_io_buffer_get_bytes_for_reading(buffer.as_raw(), &mut base, &mut size) };
        rb_sys::Qnil as rb_sys::VALUE
    })?;
    Ok(Memory { base: base.cast_mut().cast(), size: size as usize })
}
