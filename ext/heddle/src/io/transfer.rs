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
    let sends_and_receives = |timeout: Value| {
        let plain = kind == FdKind::Socket && from.is_none() && range.least == 0 && timeout.is_nil();
        // Methods that want EAGAIN rather than wait. Those that write so never come here.
        plain && !(direction == Direction::Read && call_site.traits().never_waits)
    };
    if kind == FdKind::Socket && scheduler.io.batches.get() {
        let (fd, timeout) = descriptors::descriptor_and_timeout(ruby, io, direction.interest())?;
        // The kernel would wait before it tried, and a listening socket never becomes ready to read.
        let refuses = direction == Direction::Read && io::may_listen(io) && is_listening(fd);
        if !refuses && sends_and_receives(timeout) {
            let slice = BufferSlice::of(ruby, direction, buffer, range)?;
            if let Some(result) = send_recv(ruby, scheduler, &call_site, hook.key, direction, (io, fd), slice)? {
                return Ok(result);
            }
        }
    }
    if kind == FdKind::Socket && direction == Direction::Read {
        scheduler.let_answer_come(ruby, hook.key, io::descriptor(io)?)?;
    }
    scheduler.consume_budget(ruby, hook.key)?;
    let mut slice = BufferSlice::of(ruby, direction, buffer, range)?;
    let mut done = 0;
    loop {
        // Each time anew: other fibers may have run, and the IO may have been closed.
        let (fd, timeout) = descriptors::descriptor_and_timeout(ruby, io, direction.interest())?;
        let from = from.map(|from| from + done as u64);
        // SAFETY: no other fiber has run since the piece was made.
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
                if count == 0 || done >= range.least || count == slice.size() {
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
                if sends_and_receives(timeout) {
                    slice = slice.renewed(ruby, &call_site, direction)?;
                    if let Some(result) = send_recv(ruby, scheduler, &call_site, hook.key, direction, (io, fd), slice)?
                    {
                        return Ok(result);
                    }
                }
                let caller = call_site.traits();
                if range.least == 0 && !caller.expects_to_wait {
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
    /// The fiber has sent on a socket.
    fn expect_answer(&self, key: FiberKey, fd: RawFd) {
        if let Some(record) = self.state.borrow_mut().fibers.get_mut(key) {
            record.answer_on = Some(fd);
        }
    }

    /// The fiber is about to receive. If it has sent before, the answer is still on its way: to try now would be in vain,
    /// and the backend would have to be asked to wait for it. After the others' turns it may be there.
    fn let_answer_come(&self, ruby: &Ruby, key: FiberKey, fd: RawFd) -> Result<(), Error> {
        let others_first = {
            let mut state = self.state.borrow_mut();
            let expected = state.fibers.get_mut(key).and_then(|record| record.answer_on.take());
            expected == Some(fd) && state.queue.has_woken()
        };
        let may_be_due = others_first && self.yield_within(ruby, key, Requeue::Last)?;
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

/// The error as a hook returns it.
pub fn negated(errno: Errno) -> isize {
    -(errno as isize)
}
