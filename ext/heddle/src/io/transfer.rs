//! Reading and writing: the path of every `io_read`, `io_write`, `io_pread` and `io_pwrite`.

use std::os::fd::RawFd;

use heddle_core::try_io::{FdKind, TryIo, is_listening};
use magnus::{Error, Ruby, Value, prelude::*};
use nix::errno::Errno;

use super::buffer_slice::{BufferSlice, Direction, SliceRange};
use super::descriptors;
use super::readiness::wait_ready;
use super::strategies::{send_recv, transfer_file, try_now};
use crate::ruby::call_sites::CallSite;
use crate::ruby::{error, io, time};
use crate::scheduler::Scheduler;
use crate::scheduler::fibers::FiberKey;
use crate::scheduler::state::Requeue;

/// Reads or writes, and waits as needed. Returns the number of bytes or a negated errno.
pub fn transfer(
    ruby: &Ruby,
    scheduler: &Scheduler,
    io: Value,
    direction: Direction,
    buffer: Value,
    range: SliceRange,
    from: Option<u64>,
) -> Result<isize, Error> {
    let hook = scheduler.enter(ruby)?;
    if direction == Direction::Write {
        scheduler.mark_yield_after_unlock(hook.key);
    }
    let call_site = CallSite::new(&scheduler.io.call_sites);
    let kind = io::fd_kind(io);
    let may_send_recv = |timeout: Value| {
        let plain = kind == FdKind::Socket && from.is_none() && range.min_length == 0 && timeout.is_nil();
        // A non-blocking read must return EAGAIN rather than wait. Non-blocking writes do not call the hook.
        plain && !(direction == Direction::Read && call_site.traits().never_waits)
    };
    if kind == FdKind::Socket && scheduler.io.batches.get() {
        let (fd, timeout) = descriptors::descriptor_and_timeout(ruby, io, direction.interest())?;
        // The kernel would wait for data before it tried, and a listening socket never becomes ready for that.
        let refuses = direction == Direction::Read && io::may_listen(io) && is_listening(fd);
        if !refuses && may_send_recv(timeout) {
            let slice = BufferSlice::of(ruby, direction, buffer, range)?;
            if let Some(result) = send_recv(ruby, scheduler, &call_site, hook.key, direction, (io, fd), slice)? {
                return Ok(result);
            }
        }
    }
    if kind == FdKind::Socket && direction == Direction::Read {
        scheduler.yield_before_answer(ruby, hook.key, io::descriptor(io)?)?;
    }
    scheduler.consume_budget(ruby, hook.key)?;
    let mut slice = BufferSlice::of(ruby, direction, buffer, range)?;
    let mut done = 0;
    loop {
        // Looked up in each round, as other fibers may have run and closed the IO.
        let (fd, timeout) = descriptors::descriptor_and_timeout(ruby, io, direction.interest())?;
        let from = from.map(|from| from + done as u64);
        // SAFETY: no other fiber has run since the slice was made.
        let mut result = unsafe { try_now(direction, fd, slice.memory(), from, kind) };
        if result == TryIo::NeedsOperation {
            result = transfer_file(ruby, scheduler, &call_site, hook.key, direction, (io, fd), (slice, from))?;
        }
        match result {
            TryIo::Done(count) => {
                done += count;
                if kind == FdKind::Socket && direction == Direction::Write {
                    scheduler.expect_answer(hook.key, fd);
                }
                if count == 0 || done >= range.min_length || count == slice.size() {
                    return Ok(done as isize);
                }
                slice = slice.after(count);
            }
            TryIo::Failed(errno) => return Ok(if done > 0 { done as isize } else { negated(errno) }),
            TryIo::EndsAfter(time) => {
                if wait_ready(ruby, scheduler, hook.key, io, direction.interest(), Some(time))?.is_none() {
                    return Ok(done as isize);
                }
            }
            TryIo::WouldBlock | TryIo::NeedsOperation => {
                if may_send_recv(timeout) {
                    slice = slice.renewed(ruby, &call_site, direction)?;
                    if let Some(result) = send_recv(ruby, scheduler, &call_site, hook.key, direction, (io, fd), slice)?
                    {
                        return Ok(result);
                    }
                }
                let caller = call_site.traits();
                if range.min_length == 0 && !caller.expects_to_wait {
                    scheduler.set_would_block(hook.key, (!caller.never_waits).then_some(fd));
                    return Ok(negated(Errno::EAGAIN));
                }
                let timeout = time::optional_interval(io::timeout(io)?)?;
                if wait_ready(ruby, scheduler, hook.key, io, direction.interest(), timeout)?.is_none() {
                    if caller.expects_to_wait {
                        return Err(error::io_timeout(ruby));
                    }
                    return Ok(if done > 0 { done as isize } else { negated(Errno::ETIMEDOUT) });
                }
            }
        }
        slice = slice.renewed(ruby, &call_site, direction)?;
    }
}

impl Scheduler {
    /// Notes that the fiber has sent on a socket, where it probably receives an answer next.
    fn expect_answer(&self, key: FiberKey, fd: RawFd) {
        if let Some(record) = self.state.borrow_mut().fibers.get_mut(key) {
            record.answer_on = Some(fd);
        }
    }

    /// Yields before a receive, if the fiber has just sent on the same socket. The answer has probably not arrived, so
    /// trying now would fail and cost a wait in the backend. Once the other fibers have run, the answer may have
    /// arrived.
    fn yield_before_answer(&self, ruby: &Ruby, key: FiberKey, fd: RawFd) -> Result<(), Error> {
        let yields = {
            let mut state = self.state.borrow_mut();
            let expected = state.fibers.get_mut(key).and_then(|record| record.answer_on.take());
            expected == Some(fd) && state.queue.has_woken()
        };
        let may_be_due = yields && self.yield_within(ruby, key, Requeue::Last)?;
        if may_be_due { self.raise_due(key) } else { Ok(()) }
    }

    fn set_would_block(&self, key: FiberKey, fd: Option<RawFd>) {
        if let Some(record) = self.state.borrow_mut().fibers.get_mut(key) {
            record.would_block = fd;
        }
    }

    pub fn take_would_block(&self, key: FiberKey) -> Option<RawFd> {
        self.state.borrow_mut().fibers.get_mut(key)?.would_block.take()
    }
}

/// The errno as a hook returns it.
pub fn negated(errno: Errno) -> isize {
    -(errno as isize)
}
