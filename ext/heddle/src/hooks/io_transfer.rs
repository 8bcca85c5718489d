//! `io_read`, `io_write`, `io_pread`, `io_pwrite`. `SINGLE` says what their last two arguments mean; see
//! [`hook_interface::TRANSFERS_ARE_SINGLE`](crate::ruby::hook_interface::TRANSFERS_ARE_SINGLE).

use heddle_core::io::try_io::{FdKind, TryIo};
use magnus::value::Fixnum;
use magnus::{Error, Integer, RString, Ruby, TryConvert, Value};
use nix::errno::Errno;

use crate::io::buffer_slice::{BufferSlice, SliceRange};
use crate::io::descriptors;
use crate::io::read_write::negated;
use crate::io::strategies::{transfer_file, try_now};
use crate::io::transfer::{Direction, Transfer};
use crate::ruby::io_buffer::Memory;
use crate::ruby::outcome::Ignore;
use crate::ruby::receiver::Receiver;
use crate::ruby::{error, io as ruby_io};
use crate::scheduler::Scheduler;

/// A number of bytes that Ruby passes. What is no small number is converted in a frame of its own, so that the hook's
/// is smaller.
pub struct Size(usize);

impl TryConvert for Size {
    #[inline(always)]
    fn try_convert(value: Value) -> Result<Self, Error> {
        let small = Fixnum::from_value(value).and_then(|number| usize::try_from(number.to_i64()).ignored("negative"));
        small.map_or_else(|| convert_size(value), |size| Ok(Size(size)))
    }
}

#[cold]
#[inline(never)]
fn convert_size(value: Value) -> Result<Size, Error> {
    usize::try_convert(value).map(Size)
}

/// Reads at the IO's position. Returns the number of bytes, 0 at the end, or `-errno`.
pub fn io_read<const SINGLE: bool>(
    ruby: &Ruby,
    scheduler: Receiver<Scheduler>,
    io: Value,
    buffer: Value,
    Size(first): Size,
    Size(second): Size,
) -> Result<isize, Error> {
    run(ruby, &scheduler, io, (Direction::Read, None), buffer, SliceRange::new::<SINGLE>(first, second))
}

/// Writes at the IO's position. Returns the number of bytes, or `-errno`.
pub fn io_write<const SINGLE: bool>(
    ruby: &Ruby,
    scheduler: Receiver<Scheduler>,
    io: Value,
    buffer: Value,
    Size(first): Size,
    Size(second): Size,
) -> Result<isize, Error> {
    run(ruby, &scheduler, io, (Direction::Write, None), buffer, SliceRange::new::<SINGLE>(first, second))
}

/// Reads from position `from`.
pub fn io_pread<const SINGLE: bool>(
    ruby: &Ruby,
    scheduler: Receiver<Scheduler>,
    io: Value,
    buffer: Value,
    from: Integer,
    Size(first): Size,
    Size(second): Size,
) -> Result<isize, Error> {
    match position(from)? {
        Some(from) => {
            run(ruby, &scheduler, io, (Direction::Read, Some(from)), buffer, SliceRange::new::<SINGLE>(first, second))
        }
        None => Ok(negated(Errno::EINVAL)),
    }
}

/// Writes at position `from`.
pub fn io_pwrite<const SINGLE: bool>(
    ruby: &Ruby,
    scheduler: Receiver<Scheduler>,
    io: Value,
    buffer: Value,
    from: Integer,
    Size(first): Size,
    Size(second): Size,
) -> Result<isize, Error> {
    match position(from)? {
        Some(from) => {
            run(ruby, &scheduler, io, (Direction::Write, Some(from)), buffer, SliceRange::new::<SINGLE>(first, second))
        }
        None => Ok(negated(Errno::EINVAL)),
    }
}

/// Inlined: each fiber that waits for a socket has the hook's frame on its stack.
#[inline(always)]
fn run(
    ruby: &Ruby,
    scheduler: &Scheduler,
    io: Value,
    (direction, from): (Direction, Option<u64>),
    buffer: Value,
    range: SliceRange,
) -> Result<isize, Error> {
    let writes = direction == Direction::Write;
    let (hook, ()) = scheduler.enter_and(ruby, |record| record.yield_after_unlock |= writes)?;
    Transfer::new(ruby, scheduler, hook.key, (io, ruby_io::fd_kind(io)), (direction, from)).run(buffer, range)
}

/// `IO#pwrite` on Ruby 3.3 and 3.4, where Ruby calls the hook without the GVL: see `lib/heddle/patches/io_pwrite.rb`.
pub fn write_at(ruby: &Ruby, scheduler: &Scheduler, io: Value, string: RString, from: Integer) -> Result<usize, Error> {
    let from = position(from)?.ok_or_else(|| error::system_call(ruby, Errno::EINVAL, "pwrite"))?;
    let hook = scheduler.enter(ruby)?;
    scheduler.consume_budget(ruby, hook.key)?;
    let fd = descriptors::descriptor(ruby, io)?;
    // A frozen copy shares the bytes, and no other fiber can change them while this one waits.
    let string = RString::new_frozen(string);
    // SAFETY: the string is on this stack, so it is neither freed nor moved, and it is frozen.
    let bytes = unsafe { string.as_slice() };
    let memory = Memory { base: bytes.as_ptr().cast_mut(), size: bytes.len() };
    // SAFETY: as above.
    let slice = unsafe { BufferSlice::pinned(memory) };
    // SAFETY: as above; the memory is only read.
    let mut result = unsafe { try_now(Direction::Write, fd, memory, Some(from), FdKind::Other) };
    if result == TryIo::NeedsOperation {
        let to = (Direction::Write, Some(from));
        let transfer = Transfer::new(ruby, scheduler, hook.key, (io, FdKind::Other), to);
        result = transfer_file(&transfer, fd, slice, Some(from))?;
    }
    // A pointer to the bytes does not keep the string alive. This use keeps the reference on the stack until here.
    std::hint::black_box(string);
    match result {
        TryIo::Done(count) => Ok(count),
        TryIo::Failed(errno) => Err(error::system_call(ruby, errno, "pwrite")),
        TryIo::WouldBlock | TryIo::EndsAfter(_) | TryIo::NeedsOperation => {
            Err(error::system_call(ruby, Errno::EAGAIN, "pwrite"))
        }
    }
}

/// A file position; `None` for a negative one, for which the kernel returns EINVAL.
fn position(from: Integer) -> Result<Option<u64>, Error> {
    Ok(u64::try_from(from.to_i64()?).ignored("negative"))
}
