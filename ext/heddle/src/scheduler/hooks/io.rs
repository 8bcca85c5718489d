//! `io_wait`, `io_read`, `io_write`, `io_pread`, `io_pwrite`.

use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use heddle_core::attempt::{self, Attempt, Likely};
use heddle_core::{Interest, Operation};
use magnus::{Error, Integer, RString, Ruby, Value, prelude::*};
use nix::errno::Errno;

use crate::ruby::io_buffer::{self, Memory};
use crate::ruby::receiver::Receiver;
use crate::ruby::{error, io, time};
use crate::scheduler::Scheduler;
use crate::scheduler::callers::Callers;
use crate::scheduler::fibers::FiberKey;
use crate::scheduler::wait::Wait;
use crate::scheduler::waiting::{AtHand, deadline_after};

/// Waits until the IO is ready for one of `events`. The events that it is ready for, or false when the time is up.
/// Without a timeout of its own, the IO's counts.
pub fn io_wait(
    ruby: &Ruby,
    scheduler: Receiver<'_, Scheduler>,
    io: Value,
    events: Value,
    timeout: Value,
) -> Result<Value, Error> {
    // Whoever tried before it waited tells by this why it failed, if the time is up: Ruby 3.3's `recv` does.
    let errno = Errno::last_raw();
    let waited = wait_for_events(ruby, &scheduler, io, events, timeout);
    Errno::set_raw(errno);
    waited
}

fn wait_for_events(
    ruby: &Ruby,
    scheduler: &Scheduler,
    io: Value,
    events: Value,
    timeout: Value,
) -> Result<Value, Error> {
    let interest = parse_events(ruby, events)?;
    let timeout = time::optional_interval(timeout)?;
    let visit = scheduler.enter(ruby)?;
    let fd = io::descriptor(io)?;
    let in_transfer = timeout.is_none() && scheduler.take_would_block(visit.key) == Some(fd);
    let timeout = match timeout {
        Some(timeout) => Some(timeout),
        None => time::optional_interval(io::timeout(io)?)?,
    };
    match wait_ready(ruby, scheduler, visit.key, io, fd, interest, timeout)? {
        Some(ready) => Ok(ruby.integer_from_i64(i64::from(ready.0)).as_value()),
        // Told 'false', Ruby 3.3 raises EAGAIN out of `IO#read`; without a scheduler it raises this.
        None if in_transfer => Err(error::io_timeout(ruby)),
        None => Ok(ruby.qfalse().as_value()),
    }
}

/// Reads at the IO's position. Bytes, 0 at the end, or `-errno`.
pub fn io_read(
    ruby: &Ruby,
    scheduler: Receiver<'_, Scheduler>,
    io: Value,
    buffer: Value,
    length: usize,
    offset: usize,
) -> Result<isize, Error> {
    transfer(ruby, &scheduler, io, Direction::Read, buffer, Extent::new(length, offset), None)
}

/// Writes at the IO's position. Bytes, or `-errno`.
pub fn io_write(
    ruby: &Ruby,
    scheduler: Receiver<'_, Scheduler>,
    io: Value,
    buffer: Value,
    length: usize,
    offset: usize,
) -> Result<isize, Error> {
    transfer(ruby, &scheduler, io, Direction::Write, buffer, Extent::new(length, offset), None)
}

/// Reads from position `from`.
pub fn io_pread(
    ruby: &Ruby,
    scheduler: Receiver<'_, Scheduler>,
    io: Value,
    buffer: Value,
    from: Integer,
    length: usize,
    offset: usize,
) -> Result<isize, Error> {
    match position(from)? {
        Some(from) => transfer(ruby, &scheduler, io, Direction::Read, buffer, Extent::new(length, offset), Some(from)),
        None => Ok(negated(Errno::EINVAL)),
    }
}

/// Writes at position `from`.
pub fn io_pwrite(
    ruby: &Ruby,
    scheduler: Receiver<'_, Scheduler>,
    io: Value,
    buffer: Value,
    from: Integer,
    length: usize,
    offset: usize,
) -> Result<isize, Error> {
    match position(from)? {
        Some(from) => transfer(ruby, &scheduler, io, Direction::Write, buffer, Extent::new(length, offset), Some(from)),
        None => Ok(negated(Errno::EINVAL)),
    }
}

/// `IO#pwrite` on Ruby 3.3 and 3.4, where the hook must not be used: see `lib/heddle/io_pwrite.rb`.
pub fn write_at(ruby: &Ruby, scheduler: &Scheduler, io: Value, string: RString, from: Integer) -> Result<usize, Error> {
    let from = position(from)?.ok_or_else(|| error::system_call(ruby, Errno::EINVAL, "pwrite"))?;
    let visit = scheduler.enter(ruby)?;
    scheduler.be_fair(ruby, visit.key)?;
    let fd = io::descriptor(io)?;
    // A frozen copy shares the bytes, and nobody can change them while the fiber waits.
    let string = RString::new_frozen(string);
    // SAFETY: the string is on this stack, so it is neither freed nor moved, and it is frozen.
    let bytes = unsafe { string.as_slice() };
    let memory = Memory { base: bytes.as_ptr().cast_mut(), size: bytes.len() };
    // SAFETY: as above; `memory` is only read.
    let mut result = unsafe { attempt(Direction::Write, fd, memory, Some(from), Likely::Other) };
    if result == Attempt::NeedsOperation {
        // SAFETY: as above, and the call does not return before the operation is over.
        result = unsafe { transfer_file(ruby, scheduler, visit.key, Direction::Write, fd, memory, Some(from))? };
    }
    // The bytes alone do not keep the string alive; seen here, it stays on the stack until now.
    std::hint::black_box(string);
    match result {
        Attempt::Done(count) => Ok(count),
        Attempt::Failed(errno) => Err(error::system_call(ruby, errno, "pwrite")),
        Attempt::WouldBlock | Attempt::NeedsOperation => Err(error::system_call(ruby, Errno::EAGAIN, "pwrite")),
    }
}

/// Which part of a buffer a hook is about, and how much of it at least.
#[derive(Debug, Clone, Copy)]
struct Extent {
    /// Where in the buffer to begin.
    offset: usize,
    /// How many bytes to transfer at least; 0 is a single attempt that answers EAGAIN rather than wait.
    least: usize,
    /// How many bytes to transfer at most.
    most: usize,
}

impl Extent {
    /// Until Ruby 4.0 the arguments are `(length, offset)`, and `length` is a minimum.
    #[cfg(not(ruby_gte_4_1))]
    fn new(length: usize, offset: usize) -> Self {
        Extent { offset, least: length, most: usize::MAX }
    }

    /// From Ruby 4.1 on the arguments are `(offset, length)`, and `length` is the size of a single transfer.
    #[cfg(ruby_gte_4_1)]
    fn new(offset: usize, length: usize) -> Self {
        Extent { offset, least: 0, most: length }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Read,
    Write,
}

impl Direction {
    /// What the descriptor has to be ready for.
    fn interest(self) -> Interest {
        match self {
            Direction::Read => Interest::READABLE,
            Direction::Write => Interest::WRITABLE,
        }
    }
}

fn transfer(
    ruby: &Ruby,
    scheduler: &Scheduler,
    io: Value,
    direction: Direction,
    buffer: Value,
    extent: Extent,
    from: Option<u64>,
) -> Result<isize, Error> {
    let visit = scheduler.enter(ruby)?;
    if direction == Direction::Write {
        scheduler.owe_turn(visit.key);
    }
    let likely = io::likely_kind(io);
    let exchanges = |timeout: Value| {
        let plain = likely == Likely::Socket && extent.least == 0 && timeout.is_nil();
        plain && !is_never_to_wait(scheduler, direction)
    };
    if likely == Likely::Socket && scheduler.batches.get() {
        let (fd, timeout) = io::descriptor_and_timeout(io)?;
        let memory = part_of(ruby, direction, buffer, extent)?;
        if exchanges(timeout)
            // SAFETY: Ruby keeps the buffer locked for as long as the hook lasts.
            && let Some(result) = unsafe { exchange(ruby, scheduler, visit.key, direction, fd, memory)? }
        {
            return Ok(result);
        }
    }
    scheduler.be_fair(ruby, visit.key)?;
    // Looked up only now, as the others may have had their turns: it may have been closed.
    let (fd, timeout) = io::descriptor_and_timeout(io)?;
    let memory = part_of(ruby, direction, buffer, extent)?;
    let mut done = 0;
    loop {
        let rest = Memory { base: memory.base.wrapping_add(done), size: memory.size - done };
        // SAFETY: `rest` lies in the buffer, which Ruby keeps locked for as long as the hook lasts.
        let mut result = unsafe { attempt(direction, fd, rest, from.map(|from| from + done as u64), likely) };
        if result == Attempt::NeedsOperation {
            let from = from.map(|from| from + done as u64);
            // SAFETY: as above, and the call does not return before the operation is over.
            result = unsafe { transfer_file(ruby, scheduler, visit.key, direction, fd, rest, from)? };
        }
        match result {
            Attempt::Done(count) => {
                done += count;
                if count == 0 || done >= extent.least || done == memory.size {
                    return Ok(done as isize);
                }
            }
            Attempt::Failed(errno) => return Ok(if done > 0 { done as isize } else { negated(errno) }),
            Attempt::WouldBlock | Attempt::NeedsOperation => {
                if exchanges(timeout)
                    // SAFETY: as above.
                    && let Some(result) = unsafe { exchange(ruby, scheduler, visit.key, direction, fd, memory)? }
                {
                    return Ok(result);
                }
                let caller = Callers::traits(&scheduler.callers);
                if extent.least == 0 && !caller.expects_to_wait {
                    scheduler.set_would_block(visit.key, (!caller.never_waits).then_some(fd));
                    return Ok(negated(Errno::EAGAIN));
                }
                let timeout = time::optional_interval(io::timeout(io)?)?;
                if wait_ready(ruby, scheduler, visit.key, io, fd, direction.interest(), timeout)?.is_none() {
                    return Ok(if done > 0 { done as isize } else { negated(Errno::ETIMEDOUT) });
                }
            }
        }
    }
}

/// Whether the method that called wants EAGAIN rather than wait. Those that write so never come here.
fn is_never_to_wait(scheduler: &Scheduler, direction: Direction) -> bool {
    direction == Direction::Read && Callers::traits(&scheduler.callers).never_waits
}

impl Scheduler {
    fn set_would_block(&self, key: FiberKey, fd: Option<RawFd>) {
        if let Some(record) = self.turns.borrow_mut().fibers.get_mut(key) {
            record.would_block = fd;
        }
    }

    fn take_would_block(&self, key: FiberKey) -> Option<RawFd> {
        self.turns.borrow_mut().fibers.get_mut(key)?.would_block.take()
    }
}

/// # Safety
/// `memory` is valid.
unsafe fn attempt(direction: Direction, fd: RawFd, memory: Memory, from: Option<u64>, likely: Likely) -> Attempt {
    // SAFETY: by this function's contract.
    unsafe {
        match (direction, from) {
            (Direction::Read, None) => attempt::read(fd, memory.base, memory.size, likely),
            (Direction::Read, Some(from)) => attempt::read_at(fd, memory.base, memory.size, from),
            (Direction::Write, None) => attempt::write(fd, memory.base, memory.size, likely),
            (Direction::Write, Some(from)) => attempt::write_at(fd, memory.base, memory.size, from),
        }
    }
}

/// Receives or sends, together with what other fibers do, and waits for it if need be. The number of bytes or a negated
/// errno; `None` if that is no socket after all.
///
/// # Safety
/// `memory` is valid for as long as this call lasts.
unsafe fn exchange(
    ruby: &Ruby,
    scheduler: &Scheduler,
    key: FiberKey,
    direction: Direction,
    fd: RawFd,
    memory: Memory,
) -> Result<Option<isize>, Error> {
    let interest = direction.interest();
    let operation = match direction {
        Direction::Read => Operation::Receive { fd, buffer: memory.base, length: memory.size },
        Direction::Write => Operation::Send { fd, buffer: memory.base, length: memory.size },
    };
    if memory.size == 0 {
        // The kernel would wait for data before it gives none of it.
        return Ok(None);
    }
    // SAFETY: by this function's contract.
    let transfer = || match unsafe { attempt(direction, fd, memory, None, Likely::Socket) } {
        Attempt::Done(count) => i32::try_from(count).ok(),
        _ => None,
    };
    let is_ready = || attempt::poll_now(fd, interest.0.into()).is_ok_and(|ready| ready != 0);
    let at_hand = AtHand { is_ready: &is_ready, transfer: &transfer };
    loop {
        // SAFETY: by this function's contract.
        match unsafe { scheduler.operate(ruby, key, Wait::Transfer(fd, interest), operation, Some(&at_hand))? } {
            result if result == -libc::ENOTSOCK => return Ok(None),
            // By a signal, or by nobody that we know.
            result if result == -libc::EINTR || result == -libc::ECANCELED => {}
            result => return Ok(Some(result as isize)),
        }
    }
}

/// What is always ready, and may block all the same: done at once where that is known to be quick, else by the kernel or
/// a worker.
///
/// # Safety
/// `memory` is valid for as long as this call lasts.
unsafe fn transfer_file(
    ruby: &Ruby,
    scheduler: &Scheduler,
    key: FiberKey,
    direction: Direction,
    fd: RawFd,
    memory: Memory,
    offset: Option<u64>,
) -> Result<Attempt, Error> {
    if direction == Direction::Write {
        let begin = Instant::now();
        // With an offset it may be a device.
        if scheduler.patience.borrow().allows(fd, memory.size, begin) && (offset.is_none() || attempt::is_file(fd)) {
            // SAFETY: by this function's contract.
            let result = unsafe { attempt::write_file(fd, memory.base, memory.size, offset) };
            scheduler.patience.borrow_mut().note(fd, begin, Instant::now());
            return Ok(result);
        }
    }
    // SAFETY: by this function's contract.
    unsafe { operate(ruby, scheduler, key, direction, fd, memory, offset) }
}

/// Has the kernel, or a worker, do what cannot be done at once.
///
/// # Safety
/// `memory` is valid for as long as this call lasts.
unsafe fn operate(
    ruby: &Ruby,
    scheduler: &Scheduler,
    key: FiberKey,
    direction: Direction,
    fd: RawFd,
    memory: Memory,
    offset: Option<u64>,
) -> Result<Attempt, Error> {
    let operation = match direction {
        Direction::Read => Operation::Read { fd, buffer: memory.base, length: memory.size, offset },
        Direction::Write => Operation::Write { fd, buffer: memory.base, length: memory.size, offset },
    };
    // SAFETY: by this function's contract.
    let result = unsafe { scheduler.operate(ruby, key, Wait::Transfer(fd, direction.interest()), operation, None)? };
    Ok(match result {
        count if count >= 0 => Attempt::Done(count as usize),
        // Cancelled by nobody that we know: Ruby waits, and tries again.
        error if error == -libc::EAGAIN || error == -libc::ECANCELED => Attempt::WouldBlock,
        error => Attempt::Failed(Errno::from_raw(-error)),
    })
}

/// Waits for readiness; `None` when the time is up.
pub fn wait_ready(
    ruby: &Ruby,
    scheduler: &Scheduler,
    key: FiberKey,
    io: Value,
    fd: RawFd,
    interest: Interest,
    timeout: Option<Duration>,
) -> Result<Option<Interest>, Error> {
    if timeout.is_some_and(|timeout| timeout.is_zero()) {
        scheduler.be_fair(ruby, key)?;
        return poll_now(ruby, fd, interest);
    }
    let deadline = deadline_after(timeout);
    loop {
        let wait = Wait::Ready(fd, interest);
        let result = scheduler.await_readiness(ruby, key, wait, (fd, interest), deadline)?;
        // It may have been closed meanwhile, and its number may mean another file by now.
        io::descriptor(io)?;
        match result {
            None => return Ok(None),
            Some(ready) if ready > 0 => return Ok(Some(Interest(ready as u8))),
            // Ready for nothing, or cancelled by nobody that we know: look again.
            Some(0) => {}
            Some(result) if result == -libc::ECANCELED => {}
            Some(error) => return Err(error::system_call(ruby, Errno::from_raw(-error), "io_wait")),
        }
    }
}

fn poll_now(ruby: &Ruby, fd: RawFd, interest: Interest) -> Result<Option<Interest>, Error> {
    // poll(2)'s bits have the values of Ruby's constants.
    match attempt::poll_now(fd, interest.0.into()) {
        Ok(0) => Ok(None),
        Ok(ready) => Ok(Some(Interest(ready as u8))),
        Err(errno) => Err(error::system_call(ruby, errno, "io_wait")),
    }
}

fn part_of(ruby: &Ruby, direction: Direction, buffer: Value, extent: Extent) -> Result<Memory, Error> {
    let memory = match direction {
        Direction::Read => io_buffer::for_writing(buffer)?,
        Direction::Write => io_buffer::for_reading(buffer)?,
    };
    let available = memory.size.checked_sub(extent.offset);
    match available {
        Some(available) if available >= extent.least => {
            Ok(Memory { base: memory.base.wrapping_add(extent.offset), size: available.min(extent.most) })
        }
        _ => Err(Error::new(
            ruby.exception_arg_error(),
            format!("a buffer of {} bytes has no {} bytes from offset {} on", memory.size, extent.least, extent.offset),
        )),
    }
}

fn parse_events(ruby: &Ruby, events: Value) -> Result<Interest, Error> {
    let mask = Integer::try_convert(events)?.to_i64()?;
    match u8::try_from(mask) {
        Ok(mask) if mask & Interest::ALL.0 != 0 && mask & !Interest::ALL.0 == 0 => Ok(Interest(mask)),
        _ => Err(Error::new(
            ruby.exception_arg_error(),
            format!("events must be IO::READABLE, IO::PRIORITY and IO::WRITABLE or'ed together, not {mask}"),
        )),
    }
}

/// A file position; `None` for a negative one, which the kernel calls invalid.
fn position(from: Integer) -> Result<Option<u64>, Error> {
    Ok(u64::try_from(from.to_i64()?).ok())
}

fn negated(errno: Errno) -> isize {
    -(errno as isize)
}
