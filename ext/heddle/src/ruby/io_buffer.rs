//! `IO::Buffer`: memory that Ruby passes to a hook.

use heddle_core::{RawSlice, RawSliceMut};
use magnus::rb_sys::{AsRawValue, protect};
use magnus::{Error, Value};
use rb_sys::VALUE;

/// Memory to read into, or to write from.
#[derive(Debug, Clone, Copy)]
pub struct Memory {
    /// Its address.
    pub base: *mut u8,
    /// Its length in bytes.
    pub size: usize,
}

impl Memory {
    /// The memory for a system call that reads it.
    ///
    /// # Safety
    /// It is valid for reads for as long as the result is used: the buffer's owner may free it when another fiber runs.
    pub unsafe fn as_readable<'a>(self) -> RawSlice<'a> {
        // SAFETY: by this function's contract.
        unsafe { RawSlice::new(self.base, self.size) }
    }

    /// The memory for a system call that writes to it.
    ///
    /// # Safety
    /// As for [`Memory::as_readable`], and it is valid for writes, too.
    pub unsafe fn as_writable<'a>(self) -> RawSliceMut<'a> {
        // SAFETY: by this function's contract.
        unsafe { RawSliceMut::new(self.base, self.size) }
    }
}

/// A buffer's memory, and how long it may stay valid.
#[derive(Debug, Clone, Copy)]
pub struct Contents {
    /// All of the buffer's memory.
    pub memory: Memory,
    /// Whether Ruby seems to have made the buffer for this hook, over memory that stays in place until the hook
    /// returns. Also true for a slice within `IO::Buffer#locked`, which has the same flags. Such a slice becomes
    /// invalid when the program frees the buffer that it is a slice of.
    pub looks_pinned: bool,
}

impl Contents {
    /// No memory.
    pub const EMPTY: Contents =
        Contents { memory: Memory { base: std::ptr::null_mut(), size: 0 }, looks_pinned: false };
}

/// The flags of a buffer that Ruby makes for a hook: locked, perhaps read-only, and not the owner of its memory.
const FLAGS_OF_PINNED: [u32; 2] = [
    rb_sys::rb_io_buffer_flags::RB_IO_BUFFER_LOCKED as u32,
    rb_sys::rb_io_buffer_flags::RB_IO_BUFFER_LOCKED as u32 | rb_sys::rb_io_buffer_flags::RB_IO_BUFFER_READONLY as u32,
];

unsafe extern "C" {
    /// Declared here, as `rb_sys` declares the result as an enum, of which combined flags are no value.
    #[link_name = "rb_io_buffer_get_bytes"]
    fn flags_and_bytes(buffer: VALUE, base: *mut *mut std::ffi::c_void, size: *mut rb_sys::size_t) -> u32;
}

/// The buffer's memory, to read into if `writable`, and otherwise to write from.
///
/// # Errors
/// Ruby's `IO::Buffer::AccessError` for a read-only buffer that is to be writable, `InvalidatedError` for a slice of a
/// freed buffer. A freed buffer itself is empty.
pub fn contents(buffer: Value, writable: bool) -> Result<Contents, Error> {
    let mut contents = Contents::EMPTY;
    protect(|| {
        // SAFETY: called with the GVL, under `protect`.
        contents = unsafe { contents_or_raise(buffer, writable) };
        rb_sys::Qnil as VALUE
    })?;
    Ok(contents)
}

/// Like [`contents`].
///
/// # Safety
/// Called under `protect`: it raises by `longjmp`.
pub unsafe fn contents_or_raise(buffer: Value, writable: bool) -> Contents {
    let (mut base, mut size) = (std::ptr::null_mut(), 0);
    // SAFETY: by this function's contract. All pointers are valid for the calls, and the pointees' types differ in
    // `const` only.
    let flags = unsafe {
        let flags = flags_and_bytes(buffer.as_raw(), &raw mut base, &raw mut size);
        if writable {
            rb_sys::rb_io_buffer_get_bytes_for_writing(buffer.as_raw(), &raw mut base, &raw mut size);
        } else {
            let base: *mut *mut std::ffi::c_void = &raw mut base;
            rb_sys::rb_io_buffer_get_bytes_for_reading(buffer.as_raw(), base.cast(), &raw mut size);
        }
        flags
    };
    let memory = Memory { base: base.cast(), size: size as usize };
    Contents { memory, looks_pinned: FLAGS_OF_PINNED.contains(&flags) }
}
