//! The ways to read and to write: by a non-blocking system call, by an operation of the backend, or by a blocking
//! write.

use std::os::fd::RawFd;
use std::time::Instant;

use heddle_core::Operation;
use heddle_core::io::operations::Ticket;
use heddle_core::io::try_io::{self, FdKind, TryIo};
use magnus::{Error, Value, prelude::*};
use nix::errno::Errno;

use super::buffer_slice::BufferSlice;
use super::operation::ImmediateTransfer;
use super::transfer::{Direction, Transfer};
use crate::ruby::io;
use crate::ruby::io_buffer::Memory;
use crate::ruby::outcome::Ignore;
use crate::scheduler::wait::Wait;

/// Nothing was transferred, and the transfer is to be tried at once.
pub const UNDONE: isize = -(libc::EINTR as isize);

/// Whether a result of [`send_recv`] means that nothing was transferred, and that the transfer is to be tried at once:
/// the descriptor is no socket, or the operation was interrupted by a signal or cancelled by the kernel itself.
pub fn is_undone(result: isize) -> bool {
    const UNDONE: [isize; 3] = [-(libc::ENOTSOCK as isize), -(libc::EINTR as isize), -(libc::ECANCELED as isize)];
    UNDONE.contains(&result)
}

/// Reads or writes without blocking.
///
/// # Safety
/// `memory` is valid until this returns, and writable if this reads into it.
pub unsafe fn try_now(direction: Direction, fd: RawFd, memory: Memory, from: Option<u64>, kind: FdKind) -> TryIo {
    match direction {
        Direction::Read => {
            // SAFETY: by this function's contract.
            let buffer = unsafe { memory.as_writable() };
            from.map_or_else(|| try_io::read(fd, buffer, kind), |from| try_io::read_at(fd, buffer, from))
        }
        Direction::Write => {
            // SAFETY: by this function's contract.
            let buffer = unsafe { memory.as_readable() };
            from.map_or_else(|| try_io::write(fd, buffer, kind), |from| try_io::write_at(fd, buffer, from))
        }
    }
}

/// Like [`send_recv`], for a slice that may have to be replaced by a bounce buffer.
#[cold]
#[inline(never)]
pub fn send_recv_bounced(
    transfer: &Transfer<'_>,
    fd: RawFd,
    slice: BufferSlice,
    timeout: Value,
) -> Result<isize, Error> {
    slice.while_pinned(
        transfer,
        // SAFETY: the memory is valid until this returns.
        |memory| unsafe { send_recv(transfer, fd, memory, timeout) },
        |count| (*count).max(0) as usize,
    )
}

/// Receives or sends what an interrupted operation has not.
struct ImmediateSendRecv<'a> {
    transfer: &'a Transfer<'a>,
    memory: Memory,
}

impl ImmediateTransfer for ImmediateSendRecv<'_> {
    fn is_ready(&self) -> bool {
        self.transfer.is_ready()
    }

    fn transfer(&self) -> Option<i32> {
        let fd = self.transfer.open_descriptor()?;
        // SAFETY: the memory is valid as long as `send_recv` runs, which made this.
        match unsafe { try_now(self.transfer.direction, fd, self.memory, None, FdKind::Socket) } {
            TryIo::Done(count) => i32::try_from(count).ignored("beyond what Linux transfers at once"),
            _ => None,
        }
    }
}

/// Receives or sends by an operation of the backend, and waits for its completion, for as long as `timeout` allows.
/// Returns the number of bytes or a negated errno: see [`is_undone`].
///
/// These are the steps of [`Scheduler::operate`]. What the socket can transfer when an exception arrives is transferred
/// as well; what arrives later is for the next operation. Each fiber that waits for a socket has this function's frame
/// on its stack, so what comes before and after the wait has frames of its own.
///
/// # Safety
/// `memory` is valid for as long as this call lasts.
#[inline(never)]
pub unsafe fn send_recv(transfer: &Transfer<'_>, fd: RawFd, memory: Memory, timeout: Value) -> Result<isize, Error> {
    if timeout.is_nil() {
        // SAFETY: by this function's contract.
        unsafe { send_recv_until(transfer, fd, memory, || Ok(None)) }
    } else {
        // SAFETY: by this function's contract.
        unsafe { send_recv_within(transfer, fd, memory, timeout) }
    }
}

/// In a frame of its own, a deadline takes no memory of fibers that wait without one.
///
/// # Safety
/// As for [`send_recv`].
#[inline(never)]
unsafe fn send_recv_within(transfer: &Transfer<'_>, fd: RawFd, memory: Memory, timeout: Value) -> Result<isize, Error> {
    // SAFETY: by this function's contract.
    unsafe { send_recv_until(transfer, fd, memory, || transfer.scheduler.deadline_of(timeout)) }
}

/// # Safety
/// As for [`send_recv`].
#[inline(always)]
unsafe fn send_recv_until(
    transfer: &Transfer<'_>,
    fd: RawFd,
    memory: Memory,
    deadline: impl FnOnce() -> Result<Option<Instant>, Error>,
) -> Result<isize, Error> {
    // SAFETY: by this function's contract, as every path from here waits for the completion.
    let ticket = unsafe { submit(transfer, fd, memory)? };
    let wait = wait_of(transfer, fd);
    let waited =
        deadline().and_then(|end| transfer.scheduler.await_end(transfer.ruby, transfer.key, wait, ticket, end));
    match transfer.scheduler.take_result(ticket, &waited) {
        Some(result) => Ok(result as isize),
        None => end_early(transfer, fd, memory, ticket, waited),
    }
}

/// Submits the operation of [`send_recv`], unless an exception is pending in the fiber.
///
/// # Safety
/// As for [`Scheduler::start_operation`].
#[inline(never)]
unsafe fn submit(transfer: &Transfer<'_>, fd: RawFd, memory: Memory) -> Result<Ticket, Error> {
    let (buffer, length) = (memory.base, memory.size);
    let operation = match transfer.direction {
        Direction::Read => Operation::Receive { fd, buffer, length },
        Direction::Write => Operation::Send { fd, buffer, length },
    };
    transfer.scheduler.raise_pending(transfer.key)?;
    // SAFETY: the caller's obligation is the same.
    unsafe { transfer.scheduler.start_operation(transfer.ruby, transfer.key, operation) }
}

fn wait_of(transfer: &Transfer<'_>, fd: RawFd) -> Wait {
    Wait::Transfer(fd, transfer.direction.interest())
}

#[cold]
#[inline(never)]
fn end_early(
    transfer: &Transfer<'_>,
    fd: RawFd,
    memory: Memory,
    ticket: Ticket,
    waited: Result<(), Error>,
) -> Result<isize, Error> {
    let &Transfer { ruby, scheduler, key, .. } = transfer;
    let (wait, immediate) = (wait_of(transfer, fd), ImmediateSendRecv { transfer, memory });
    match scheduler.end_early(ruby, key, (wait, ticket), waited, Some(&immediate))? {
        Some(result) => Ok(result as isize),
        None => transfer.timed_out(),
    }
}

/// Reads from or writes to a file, which is always ready and may block. Writes immediately where that is known to be
/// quick, and otherwise by an operation of the backend.
#[inline(never)]
pub fn transfer_file(
    transfer: &Transfer<'_>,
    fd: RawFd,
    slice: BufferSlice,
    offset: Option<u64>,
) -> Result<TryIo, Error> {
    if transfer.direction == Direction::Write {
        let memory = slice.memory();
        let owner = io::identity(transfer.io);
        let backoff = &transfer.scheduler.io.slow_file_backoff;
        let begin = Instant::now();
        // A descriptor with an offset may be a device.
        if backoff.borrow_mut().allows(fd, owner, memory.size, begin) && (offset.is_none() || try_io::is_file(fd)) {
            // SAFETY: no other fiber has run since the slice was made.
            let write = || try_io::write_file(fd, unsafe { memory.as_readable() }, offset);
            let result = if transfer.scheduler.is_traced() { transfer.trace_attempt(fd, write) } else { write() };
            backoff.borrow_mut().record_write(fd, begin, Instant::now());
            return Ok(result);
        }
    }
    slice.while_pinned(
        transfer,
        // SAFETY: the memory is valid until this returns.
        |memory| unsafe { operate(transfer, fd, memory, offset) },
        |result| if let TryIo::Done(count) = result { *count } else { 0 },
    )
}

/// Reads or writes by an operation of the backend.
///
/// # Safety
/// `memory` is valid for as long as this call lasts.
unsafe fn operate(transfer: &Transfer<'_>, fd: RawFd, memory: Memory, offset: Option<u64>) -> Result<TryIo, Error> {
    let &Transfer { ruby, scheduler, key, direction, .. } = transfer;
    // io_uring does not advance the position of a FUSE file without a cache, so this does.
    let may_block = scheduler.io.slow_file_backoff.borrow_mut().is_remote(fd);
    let sets_position = offset.is_none() && may_block;
    let is_appended = || direction == Direction::Write && try_io::appends(fd);
    let begin = if sets_position && !is_appended() { try_io::position(fd) } else { None };
    let offset = offset.or(begin);
    let operation = match direction {
        Direction::Read => Operation::Read { fd, buffer: memory.base, length: memory.size, offset, may_block },
        Direction::Write => Operation::Write { fd, buffer: memory.base, length: memory.size, offset, may_block },
    };
    // SAFETY: by this function's contract.
    let result = unsafe { scheduler.operate(ruby, key, Wait::Transfer(fd, direction.interest()), operation)? };
    if let (Some(begin), Ok(count)) = (begin, u64::try_from(result)) {
        try_io::seek(fd, begin + count);
    }
    Ok(match result {
        count if count >= 0 => TryIo::Done(count as usize),
        // ECANCELED: cancelled by the kernel itself. Ruby waits and tries again.
        error if error == -libc::EAGAIN || error == -libc::ECANCELED => TryIo::WouldBlock,
        error => TryIo::Failed(Errno::from_raw(-error)),
    })
}
