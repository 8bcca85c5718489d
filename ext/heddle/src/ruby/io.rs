//! IO objects.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU64, Ordering};

use heddle_core::try_io::FdKind;
use magnus::rb_sys::{AsRawValue, FromRawValue, protect};
use magnus::{Error, Value};
use rb_sys::VALUE;

const SOCKET_CLASS_NAME: &str = "BasicSocket";

/// The descriptor of an IO, or of what `to_io` makes of the object.
///
/// # Errors
/// IOError if it is closed or uninitialised, TypeError if it is no IO.
pub fn descriptor(io: Value) -> Result<RawFd, Error> {
    let mut fd = -1;
    protect(|| {
        // SAFETY: called with the GVL on valid objects; what they raise stops at `protect`, and nothing is owned here.
        fd = unsafe { rb_sys::rb_io_descriptor(rb_sys::rb_io_get_io(io.as_raw())) };
        rb_sys::Qnil as rb_sys::VALUE
    })?;
    Ok(fd)
}

/// What [`descriptor`] and [`timeout`] say, at the price of one.
pub fn descriptor_and_timeout(io: Value) -> Result<(RawFd, Value), Error> {
    let mut fd = -1;
    let timeout = protect(|| {
        // SAFETY: as in `descriptor`.
        unsafe {
            let io = rb_sys::rb_io_get_io(io.as_raw());
            fd = rb_sys::rb_io_descriptor(io);
            rb_sys::rb_io_timeout(io)
        }
    })?;
    // SAFETY: a number or nil.
    Ok((fd, unsafe { Value::from_raw(timeout) }))
}

/// `IO#timeout`: seconds, or nil.
pub fn timeout(io: Value) -> Result<Value, Error> {
    // SAFETY: called with the GVL on an IO (`descriptor` has been asked before); what it raises stops at `protect`.
    protect(|| unsafe { rb_sys::rb_io_timeout(io.as_raw()) }).map(|value| unsafe { Value::from_raw(value) })
}

/// The IO that writes for `io`: itself, but for one with a pipe of its own for each direction, as `IO.popen` makes it.
pub fn write_io(io: Value) -> Result<Value, Error> {
    // SAFETY: called with the GVL on an IO (`descriptor` has been asked before); what it raises stops at `protect`.
    protect(|| unsafe { rb_sys::rb_io_get_write_io(io.as_raw()) }).map(|value| unsafe { Value::from_raw(value) })
}

/// The memory of an IO's read buffer, taken away from it. It is freed with this.
#[derive(Debug)]
pub struct ReadBuffer(std::ptr::NonNull<std::ffi::c_void>);

impl Drop for ReadBuffer {
    fn drop(&mut self) {
        // SAFETY: `take_read_buffer` has taken it from Ruby, which had it from its own allocator.
        unsafe { rb_sys::ruby_xfree(self.0.as_ptr()) };
    }
}

/// A buffer of an IO, as `ruby/io.h` declares it for extensions; rb-sys knows its size alone.
#[repr(C, packed)]
struct InternalBuffer {
    memory: *mut std::ffi::c_void,
    offset: std::ffi::c_int,
    length: std::ffi::c_int,
    capacity: std::ffi::c_int,
}

const _: () = assert!(size_of::<InternalBuffer>() == size_of::<rb_sys::rb_io_buffer_t>());

/// Takes an IO's read buffer, and all that has been read ahead into it. The IO is about to be closed, so it needs none.
///
/// Ruby frees the buffer when it closes an IO, whether or not the kernel is still reading into it. `None` if there is
/// none, and from Ruby 4.0 on, which itself waits for readers before it frees anything.
pub fn take_read_buffer(io: Value) -> Option<ReadBuffer> {
    if cfg!(ruby_gte_4_0) {
        return None;
    }
    let mut taken = std::ptr::null_mut();
    protect(|| {
        // SAFETY: called with the GVL on a valid object. The first two calls raise, and stop at `protect`, unless it is an
        // IO that is open, whose `fptr` is valid. `rbuf` is laid out as `InternalBuffer`, and need not be aligned.
        unsafe {
            let io = rb_sys::rb_io_get_io(io.as_raw());
            let fptr = (*(io as *const rb_sys::RFile)).fptr;
            rb_sys::rb_io_check_closed(fptr);
            let buffer = (&raw mut (*fptr).rbuf).cast::<InternalBuffer>();
            taken = (*buffer).memory;
            let empty = InternalBuffer { memory: std::ptr::null_mut(), offset: 0, length: 0, capacity: 0 };
            buffer.write_unaligned(empty);
        }
        rb_sys::Qnil as rb_sys::VALUE
    })
    .ok()?;
    std::ptr::NonNull::new(taken).map(ReadBuffer)
}

/// A number for the object. Another one may have it once the object is gone.
pub fn identity(io: Value) -> usize {
    io.as_raw() as usize
}

/// What Ruby says that an IO is. It may be wrong: a File can be a pipe that was opened by its name, and whatever there is
/// can be opened by its number.
pub fn fd_kind(io: Value) -> FdKind {
    /// `BasicSocket`, once it is there; it is never taken away again.
    static SOCKET_CLASS: AtomicU64 = AtomicU64::new(0);

    // SAFETY: called with the GVL on a valid object; does not raise. The classes are Ruby's own and always there.
    let (class, plain, file) = unsafe { (rb_sys::rb_obj_class(io.as_raw()), rb_sys::rb_cIO, rb_sys::rb_cFile) };
    if class == plain {
        return FdKind::Other;
    } else if class == file {
        return FdKind::File;
    }
    let mut socket = SOCKET_CLASS.load(Ordering::Relaxed) as VALUE;
    if socket == 0 {
        socket = find_class(SOCKET_CLASS_NAME);
        SOCKET_CLASS.store(socket as u64, Ordering::Relaxed);
    }
    // SAFETY: called with the GVL on valid objects; does not raise.
    let is_a = |class| unsafe { rb_sys::rb_obj_is_kind_of(io.as_raw(), class) } == rb_sys::Qtrue as VALUE;
    if socket != 0 && is_a(socket) {
        FdKind::Socket
    } else if is_a(file) {
        FdKind::File
    } else {
        FdKind::Other
    }
}

/// Whether a socket may be one that listens: those that only connect have classes of their own.
pub fn may_listen(io: Value) -> bool {
    /// `TCPSocket` and `UNIXSocket`, once they are there.
    static CONNECTING: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

    // SAFETY: called with the GVL on a valid object; does not raise.
    let class = unsafe { rb_sys::rb_obj_class(io.as_raw()) };
    let is_class = |(known, name): (&AtomicU64, &str)| {
        if known.load(Ordering::Relaxed) == 0 {
            known.store(find_class(name) as u64, Ordering::Relaxed);
        }
        known.load(Ordering::Relaxed) as VALUE == class
    };
    !CONNECTING.iter().zip(["TCPSocket", "UNIXSocket"]).any(is_class)
}

fn find_class(class_name: &str) -> VALUE {
    // SAFETY: called with the GVL. The constant is looked up only if it is defined, and an autoload's error stops at
    // `protect`; the class is kept from being freed and moved, as its address is remembered.
    let found = protect(|| unsafe {
        let name = rb_sys::rb_intern2(class_name.as_ptr().cast(), class_name.len() as _);
        if rb_sys::rb_const_defined(rb_sys::rb_cObject, name) == 0 {
            return 0;
        }
        let class = rb_sys::rb_const_get(rb_sys::rb_cObject, name);
        rb_sys::rb_gc_register_mark_object(class);
        class
    });
    found.unwrap_or(0)
}
