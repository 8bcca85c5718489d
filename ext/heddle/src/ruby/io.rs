//! IO objects.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU64, Ordering};

use heddle_core::Interest;
use heddle_core::io::files;
use heddle_core::io::try_io::FdKind;
use magnus::rb_sys::{AsRawValue, FromRawValue, protect};
use magnus::{Error, Ruby, Value};
use rb_sys::VALUE;

use super::io_buffer::{self, Contents};
use super::pending_interrupts::Deferred;

const SOCKET_CLASS_NAME: &str = "BasicSocket";

/// The descriptor of an IO, or of the IO that the object's `to_io` returns.
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

/// Whether it is an IO itself, and not an object that has one.
pub fn is_io(object: Value) -> bool {
    // SAFETY: called with the GVL on a valid object, of which the type is read.
    unsafe { rb_sys::RB_TYPE_P(object.as_raw(), rb_sys::ruby_value_type::RUBY_T_FILE) }
}

/// The object, if it is an IO, or else the IO that its `to_io` returns.
///
/// # Errors
/// TypeError if it has none; what `to_io` raises.
pub fn converted(object: Value) -> Result<Value, Error> {
    // SAFETY: called with the GVL on a valid object; what it raises stops at `protect`, and nothing is owned here.
    let io = protect(|| unsafe { rb_sys::rb_io_get_io(object.as_raw()) })?;
    // SAFETY: an IO.
    Ok(unsafe { Value::from_raw(io) })
}

/// The descriptor of an IO; `None` if it is closed or uninitialised, and for an object that is no IO.
///
/// Where no error is wanted, [`descriptor`] must not be asked: Ruby runs `initialize` to make the IOError, and checks
/// interrupts at its end. What it raises there takes the IOError's place, and would get lost with it.
pub fn open_descriptor(io: Value) -> Option<RawFd> {
    if !is_io(io) {
        return None;
    }
    // SAFETY: called with the GVL on a valid object, which is a T_FILE. What its pointer, which is null until the IO is
    // initialised, refers to lives as long as the object. Nothing is raised or allocated.
    unsafe {
        let fptr = (*(io.as_raw() as *const rb_sys::RFile)).fptr;
        (!fptr.is_null()).then(|| (*fptr).fd).filter(|fd| *fd >= 0)
    }
}

/// What [`descriptor`], [`timeout`] and [`io_buffer::contents`] return, under one `protect`.
///
/// # Errors
/// As there.
pub fn transfer_arguments(io: Value, buffer: Value, writable: bool) -> Result<(RawFd, Value, Contents), Error> {
    let (mut fd, mut contents) = (-1, Contents::EMPTY);
    let timeout = protect(|| {
        // SAFETY: as in `descriptor`, and under `protect`.
        unsafe {
            let io = rb_sys::rb_io_get_io(io.as_raw());
            fd = rb_sys::rb_io_descriptor(io);
            contents = io_buffer::contents_or_raise(buffer, writable);
            rb_sys::rb_io_timeout(io)
        }
    })?;
    // SAFETY: a number or nil.
    Ok((fd, unsafe { Value::from_raw(timeout) }, contents))
}

/// `IO#timeout`: seconds, or nil.
pub fn timeout(io: Value) -> Result<Value, Error> {
    // SAFETY: called with the GVL on an IO (`descriptor` has been asked before); what it raises stops at `protect`.
    protect(|| unsafe { rb_sys::rb_io_timeout(io.as_raw()) }).map(|value| unsafe { Value::from_raw(value) })
}

/// The IO that writes for `io`. Another one than `io` only if `io` has a pipe for each direction, like those of
/// `IO.popen`.
pub fn write_io(io: Value) -> Result<Value, Error> {
    // SAFETY: called with the GVL on an IO (`descriptor` has been asked before); what it raises stops at `protect`.
    protect(|| unsafe { rb_sys::rb_io_get_write_io(io.as_raw()) }).map(|value| unsafe { Value::from_raw(value) })
}

/// Whether Ruby gives the number `fd` back when it closes `sides` of `io`, which has one descriptor.
///
/// It gives the number back with the last open side. For a socket, closing the first side is a shutdown(2), which tells
/// the operations of that side the end. Any other IO has one side, or (a terminal) loses both at once. A File for
/// reading and writing has no sides: Ruby raises IOError.
///
/// # Errors
/// FrozenError if one side of a frozen IO is to be closed, as Ruby's own methods raise.
pub fn gives_number_back(io: Value, fd: RawFd, sides: Interest) -> Result<bool, Error> {
    let other_side = match (sides.intersects(Interest::READABLE), sides.intersects(Interest::WRITABLE)) {
        // Not asked for its mode, which a frozen IO does not tell.
        (true, true) => return Ok(true),
        (true, false) => rb_sys::FMODE_WRITABLE,
        (false, _) => rb_sys::FMODE_READABLE,
    };
    let mut mode = 0;
    protect(|| {
        // SAFETY: called with the GVL on an object that `rb_io_get_io` accepts; what it raises stops at `protect`.
        mode = unsafe { rb_sys::rb_io_mode(rb_sys::rb_io_get_io(io.as_raw())) } as u32;
        rb_sys::Qnil as VALUE
    })?;
    let is_other_open = mode & other_side != 0;
    let is_two_way = mode & rb_sys::FMODE_DUPLEX != 0 && files::kind(fd) != Some(libc::S_IFSOCK);
    Ok(is_two_way || !is_other_open)
}

/// The memory of an IO's read buffer. Dropping this frees the memory.
#[derive(Debug)]
pub struct ReadBuffer(std::ptr::NonNull<std::ffi::c_void>);

impl Drop for ReadBuffer {
    fn drop(&mut self) {
        // SAFETY: `take_read_buffer` has taken the memory from Ruby, whose allocator has allocated it.
        unsafe { rb_sys::ruby_xfree(self.0.as_ptr()) };
    }
}

/// A buffer of an IO, as `ruby/io.h` declares it for extensions. rb-sys declares only its size.
#[repr(C, packed)]
struct InternalBuffer {
    memory: *mut std::ffi::c_void,
    offset: std::ffi::c_int,
    length: std::ffi::c_int,
    capacity: std::ffi::c_int,
}

const _: () = assert!(size_of::<InternalBuffer>() == size_of::<rb_sys::rb_io_buffer_t>());

/// Takes the read buffer, with its contents, of an IO that is about to be closed and so does not need it any more.
///
/// Ruby frees the buffer when it closes an IO, even if the kernel still reads into it. `None` if there is no buffer,
/// and on Ruby 4.0 and later, which waits for readers before it frees the buffer.
pub fn take_read_buffer(io: Value) -> Option<ReadBuffer> {
    if cfg!(ruby_gte_4_0) {
        return None;
    }
    open_descriptor(io)?;
    // SAFETY: called with the GVL on an IO that is open, so its `fptr` is valid. `rbuf` is laid out as
    // `InternalBuffer`, and need not be aligned.
    let taken = unsafe {
        let fptr = (*(io.as_raw() as *const rb_sys::RFile)).fptr;
        let buffer = (&raw mut (*fptr).rbuf).cast::<InternalBuffer>();
        let taken = (*buffer).memory;
        let empty = InternalBuffer { memory: std::ptr::null_mut(), offset: 0, length: 0, capacity: 0 };
        buffer.write_unaligned(empty);
        taken
    };
    std::ptr::NonNull::new(taken).map(ReadBuffer)
}

/// A number for the object. Another object may have it once this one has been collected.
pub fn identity(io: Value) -> usize {
    io.as_raw() as usize
}

/// The kind of file that an IO's class implies. It may be wrong: a File can be a FIFO, and an IO of any class can be
/// opened by descriptor number.
pub fn fd_kind(io: Value) -> FdKind {
    /// `BasicSocket`, once it is defined. Never collected.
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
        socket = find_class(&Ruby::get_with(io), SOCKET_CLASS_NAME);
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

/// Whether a socket may be a listening one. `TCPSocket` and `UNIXSocket` only connect.
pub fn may_listen(io: Value) -> bool {
    /// `TCPSocket` and `UNIXSocket`, once they are defined.
    static CONNECTING: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

    // SAFETY: called with the GVL on a valid object; does not raise.
    let class = unsafe { rb_sys::rb_obj_class(io.as_raw()) };
    let is_class = |(known, name): (&AtomicU64, &str)| {
        if known.load(Ordering::Relaxed) == 0 {
            known.store(find_class(&Ruby::get_with(io), name) as u64, Ordering::Relaxed);
        }
        known.load(Ordering::Relaxed) as VALUE == class
    };
    !CONNECTING.iter().zip(["TCPSocket", "UNIXSocket"]).any(is_class)
}

fn find_class(_: &Ruby, class_name: &str) -> VALUE {
    // SAFETY: called with the GVL. The constant is looked up only if it is defined, and an autoload's error stops at
    // `protect`. The class is registered with the collector, which then neither frees nor moves it, as the caller
    // stores its address.
    let found = protect(|| unsafe {
        let name = rb_sys::rb_intern2(class_name.as_ptr().cast(), class_name.len() as _);
        if rb_sys::rb_const_defined(rb_sys::rb_cObject, name) == 0 {
            return 0;
        }
        let class = rb_sys::rb_const_get(rb_sys::rb_cObject, name);
        rb_sys::rb_gc_register_mark_object(class);
        class
    });
    found.deferred().unwrap_or(0)
}
