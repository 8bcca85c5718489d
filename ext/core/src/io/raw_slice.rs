//! Memory for the kernel to read or write, which other code may use at the same time.
//!
//! A buffer of Ruby's is memory that a program may read and change through other references. A `&[u8]` or `&mut [u8]`
//! to it would promise the compiler the opposite. These types only pass the memory to system calls. Their constructors
//! take the promise that it is valid, so the calls themselves are safe.

use std::marker::PhantomData;

/// Memory that is valid for reads during `'a`.
#[derive(Debug, Clone, Copy)]
pub struct RawSlice<'a> {
    base: *const u8,
    length: usize,
    memory: PhantomData<&'a u8>,
}

impl RawSlice<'_> {
    /// # Safety
    /// `base` is valid for reads of `length` bytes during the lifetime, which the caller chooses.
    pub unsafe fn new(base: *const u8, length: usize) -> Self {
        RawSlice { base, length, memory: PhantomData }
    }

    /// The address.
    pub fn as_ptr(self) -> *const u8 {
        self.base
    }

    /// The length in bytes.
    pub fn len(self) -> usize {
        self.length
    }

    /// Whether the length is zero.
    pub fn is_empty(self) -> bool {
        self.length == 0
    }

    /// The first `length` bytes, or all if there are fewer.
    pub fn truncated(self, length: usize) -> Self {
        RawSlice { length: self.length.min(length), ..self }
    }
}

impl<'a> From<&'a [u8]> for RawSlice<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        RawSlice { base: bytes.as_ptr(), length: bytes.len(), memory: PhantomData }
    }
}

/// Memory that is valid for writes during `'a`.
#[derive(Debug, Clone, Copy)]
pub struct RawSliceMut<'a> {
    base: *mut u8,
    length: usize,
    memory: PhantomData<&'a u8>,
}

impl RawSliceMut<'_> {
    /// # Safety
    /// `base` is valid for writes of `length` bytes during the lifetime, which the caller chooses.
    pub unsafe fn new(base: *mut u8, length: usize) -> Self {
        RawSliceMut { base, length, memory: PhantomData }
    }

    /// The address.
    pub fn as_mut_ptr(self) -> *mut u8 {
        self.base
    }

    /// The length in bytes.
    pub fn len(self) -> usize {
        self.length
    }

    /// Whether the length is zero.
    pub fn is_empty(self) -> bool {
        self.length == 0
    }
}

impl<'a> From<&'a mut [u8]> for RawSliceMut<'a> {
    fn from(bytes: &'a mut [u8]) -> Self {
        RawSliceMut { base: bytes.as_mut_ptr(), length: bytes.len(), memory: PhantomData }
    }
}
