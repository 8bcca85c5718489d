//! `IO::Buffer`: memory that Ruby lends for the time of a hook.

use magnus::rb_sys::{AsRawValue, protect};
use magnus::{Error, Value};
use rb_sys::VALUE;

/// A piece of memory to read into, or to write from.
#[derive(Debug, Clone, Copy)]
pub struct Memory {
    /// Where it begins.
    pub base: *mut u8,
    /// How many bytes there are.
    pub size: usize,
}

/// What Ruby tells of a buffer.
#[derive(Debug, Clone, Copy)]
pub struct Contents {
    /// The whole of it.
    pub memory: Memory,
    /// Ruby has made the buffer for this hook alone, round memory that it keeps in place until the hook returns. Also
    /// said of a slice within `IO::Buffer#locked`, which looks the same, and can be freed with what it is a slice of.
    pub looks_pinned: bool,
}

/// Locked, perhaps for reading only, and memory of nobody's that the program knows.
const FLAGS_OF_PINNED: [u32; 2] = [
    rb_sys::rb_io_buffer_flags::RB_IO_BUFFER_LOCKED as u32,
    rb_sys::rb_io_buffer_flags::RB_IO_BUFFER_LOCKED as u32 | rb_sys::rb_io_buffer_flags::RB_IO_BUFFER_READONLY as u32,
];

unsafe extern "C" {
    /// As `rb_sys` declares it, flags together would be no value of its enum.
    #[link_name = "rb_io_buffer_get_bytes"]
    fn flags_and_bytes(buffer: VALUE, base: *mut *mut std::ffi::c_void, size: *mut rb_sys::size_t) -> u32;
}

/// The buffer's memory, to read into.
///
/// # Errors
/// Ruby's `IO::Buffer::AccessError` for a read-only one, `InvalidatedError` for a slice of one that has been freed. One
/// that has been freed itself has no bytes.
pub fn for_writing(buffer: Value) -> Result<Contents, Error> {
    contents(buffer, |buffer, base, size| {
        // SAFETY: called with the GVL and under `protect`; both pointers are valid for the call.
        unsafe { rb_sys::rb_io_buffer_get_bytes_for_writing(buffer, base, size) }
    })
}

/// The buffer's memory, to write from.
///
/// # Errors
/// Ruby's `IO::Buffer::InvalidatedError` for a slice of one that has been freed. One that has been freed itself has no
/// bytes.
pub fn for_reading(buffer: Value) -> Result<Contents, Error> {
    contents(buffer, |buffer, base, size| {
        // SAFETY: called with the GVL and under `protect`; both pointers are valid for the call, and the type that is
        // pointed to differs in `const` only.
        unsafe { rb_sys::rb_io_buffer_get_bytes_for_reading(buffer, base.cast(), size) }
    })
}

fn contents(buffer: Value, get: fn(VALUE, *mut *mut std::ffi::c_void, *mut rb_sys::size_t)) -> Result<Contents, Error> {
    let (mut base, mut size, mut flags) = (std::ptr::null_mut(), 0, 0);
    protect(|| {
        // SAFETY: called with the GVL; both pointers are valid for the call; an exception stops at `protect`.
        flags = unsafe { flags_and_bytes(buffer.as_raw(), &raw mut base, &raw mut size) };
        get(buffer.as_raw(), &raw mut base, &raw mut size);
        rb_sys::Qnil as VALUE
    })?;
    let memory = Memory { base: base.cast(), size: size as usize };
    Ok(Contents { memory, looks_pinned: FLAGS_OF_PINNED.contains(&flags) })
}
