//! `io_read`, `io_write`, `io_pread`, `io_pwrite`.

mod piece;
mod ways;

use std::os::fd::RawFd;

use heddle_core::Interest;
use heddle_core::attempt::{Attempt, Likely, is_listening};
use magnus::{Error, Integer, RString, Ruby, Value, prelude::*};
use nix::errno::Errno;

use self::piece::{Direction, Extent, Piece};
use self::ways::{attempt, exchange, transfer_file};
use super::readiness::wait_ready;
use crate::io::descriptors;
use crate::ruby::io_buffer::Memory;
use crate::ruby::receiver::Receiver;
use crate::ruby::{error, io, time};
use crate::scheduler::Scheduler;
use crate::scheduler::callers::CallSite;
use crate::scheduler::fibers::FiberKey;

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
    let fd = descriptors::descriptor(ruby, io, Interest::WRITABLE)?;
    // A frozen copy shares the bytes, and nobody can change them while the fiber waits.
    let string = RString::new_frozen(string);
    // SAFETY: the string is on this stack, so it is neither freed nor moved, and it is frozen.
    let bytes = unsafe { string.as_slice() };
    let memory = Memory { base: bytes.as_ptr().cast_mut(), size: bytes.len() };
    // SAFETY: as above.
    let piece = unsafe { Piece::pinned(memory) };
    // SAFETY: as above; the memory is only read.
    let mut result = unsafe { attempt(Direction::Write, fd, memory, Some(from), Likely::Other) };
    if result == Attempt::NeedsOperation {
        let call_site = CallSite::new(&scheduler.callers);
        let to = (piece, Some(from));
        result = transfer_file(ruby, scheduler, &call_site, visit.key, Direction::Write, (io, fd), to)?;
    }
    // The bytes alone do not keep the string alive; seen here, it stays on the stack until now.
    std::hint::black_box(string);
    match result {
        Attempt::Done(count) => Ok(count),
        Attempt::Failed(errno) => Err(error::system_call(ruby, errno, "pwrite")),
        Attempt::WouldBlock | Attempt::EndsAfter(_) | Attempt::NeedsOperation => {
            Err(error::system_call(ruby, Errno::EAGAIN, "pwrite"))
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
    let call_site = CallSite::new(&scheduler.callers);
    let likely = io::likely_kind(io);
    let exchanges = |timeout: Value| {
        let plain = likely == Likely::Socket && from.is_none() && extent.least == 0 && timeout.is_nil();
        // Methods that want EAGAIN rather than wait. Those that write so never come here.
        plain && !(direction == Direction::Read && call_site.traits().never_waits)
    };
    if likely == Likely::Socket && scheduler.batches.get() {
        let (fd, timeout) = descriptors::descriptor_and_timeout(ruby, io, direction.interest())?;
        // The kernel would wait before it tried, and a listening socket never becomes ready to read.
        let refuses = direction == Direction::Read && io::may_listen(io) && is_listening(fd);
        if !refuses && exchanges(timeout) {
            let piece = Piece::of(ruby, direction, buffer, extent)?;
            if let Some(result) = exchange(ruby, scheduler, &call_site, visit.key, direction, (io, fd), piece)? {
                return Ok(result);
            }
        }
    }
    if likely == Likely::Socket && direction == Direction::Read {
        scheduler.let_answer_come(ruby, visit.key, io::descriptor(io)?)?;
    }
    scheduler.be_fair(ruby, visit.key)?;
    let mut piece = Piece::of(ruby, direction, buffer, extent)?;
    let mut done = 0;
    loop {
        // Each time anew: other fibers may have run, and the IO may have been closed.
        let (fd, timeout) = descriptors::descriptor_and_timeout(ruby, io, direction.interest())?;
        let from = from.map(|from| from + done as u64);
        // SAFETY: no other fiber has run since the piece was made.
        let mut result = unsafe { attempt(direction, fd, piece.memory(), from, likely) };
        if result == Attempt::NeedsOperation {
            result = transfer_file(ruby, scheduler, &call_site, visit.key, direction, (io, fd), (piece, from))?;
        }
        match result {
            Attempt::Done(count) => {
                done += count;
                if likely == Likely::Socket && direction == Direction::Write {
                    scheduler.expect_answer(visit.key, fd);
                }
                if count == 0 || done >= extent.least || count == piece.size() {
                    return Ok(done as isize);
                }
                piece = piece.after(count);
            }
            Attempt::Failed(errno) => return Ok(if done > 0 { done as isize } else { negated(errno) }),
            Attempt::EndsAfter(time) => {
                if wait_ready(ruby, scheduler, visit.key, io, direction.interest(), Some(time))?.is_none() {
                    return Ok(done as isize);
                }
            }
            Attempt::WouldBlock | Attempt::NeedsOperation => {
                if exchanges(timeout) {
                    piece = piece.renewed(ruby, &call_site, direction)?;
                    if let Some(result) = exchange(ruby, scheduler, &call_site, visit.key, direction, (io, fd), piece)?
                    {
                        return Ok(result);
                    }
                }
                let caller = call_site.traits();
                if extent.least == 0 && !caller.expects_to_wait {
                    scheduler.set_would_block(visit.key, (!caller.never_waits).then_some(fd));
                    return Ok(negated(Errno::EAGAIN));
                }
                let timeout = time::optional_interval(io::timeout(io)?)?;
                if wait_ready(ruby, scheduler, visit.key, io, direction.interest(), timeout)?.is_none() {
                    if caller.expects_to_wait {
                        return Err(error::io_timeout(ruby));
                    }
                    return Ok(if done > 0 { done as isize } else { negated(Errno::ETIMEDOUT) });
                }
            }
        }
        piece = piece.renewed(ruby, &call_site, direction)?;
    }
}

impl Scheduler {
    /// The fiber has sent on a socket.
    fn expect_answer(&self, key: FiberKey, fd: RawFd) {
        if let Some(record) = self.turns.borrow_mut().fibers.get_mut(key) {
            record.answer_on = Some(fd);
        }
    }

    /// The fiber is about to receive. If it has sent before, the answer is still on its way: to try now would be in vain,
    /// and the backend would have to be asked to wait for it. After the others' turns it may be there.
    fn let_answer_come(&self, ruby: &Ruby, key: FiberKey, fd: RawFd) -> Result<(), Error> {
        let others_first = {
            let mut turns = self.turns.borrow_mut();
            let expected = turns.fibers.get_mut(key).and_then(|record| record.answer_on.take());
            expected == Some(fd) && turns.queue.has_woken()
        };
        let may_be_due = others_first && self.pass_turn(ruby, key, |turns| turns.give_up_turn(key))?;
        if may_be_due { self.raise_due(key) } else { Ok(()) }
    }

    fn set_would_block(&self, key: FiberKey, fd: Option<RawFd>) {
        if let Some(record) = self.turns.borrow_mut().fibers.get_mut(key) {
            record.would_block = fd;
        }
    }

    pub(super) fn take_would_block(&self, key: FiberKey) -> Option<RawFd> {
        self.turns.borrow_mut().fibers.get_mut(key)?.would_block.take()
    }
}

/// A file position; `None` for a negative one, which the kernel calls invalid.
fn position(from: Integer) -> Result<Option<u64>, Error> {
    Ok(u64::try_from(from.to_i64()?).ok())
}

fn negated(errno: Errno) -> isize {
    -(errno as isize)
}
