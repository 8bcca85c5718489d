//! Reading and writing: the path of every `io_read`, `io_write`, `io_pread` and `io_pwrite`.

use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use heddle_core::io::operations::Ticket;
use heddle_core::io::try_io::{FdKind, TryIo, is_listening};
use magnus::{Error, Ruby, Value, prelude::*};
use nix::errno::Errno;

use super::buffer_slice::{BufferSlice, SliceRange};
use super::descriptors;
use super::readiness::wait_ready;
use super::strategies::{UNDONE, is_undone, send_recv, send_recv_bounced, transfer_file, try_now};
use super::transfer::{Direction, Transfer};
use crate::ruby::io_buffer::Memory;
use crate::ruby::{io, time};
use crate::scheduler::Scheduler;
use crate::scheduler::record::FiberKey;
use crate::scheduler::state::Requeue;
use crate::scheduler::wait::Wait;

/// What came of the beginning of a transfer.
enum Begun {
    /// It is over: the number of bytes or a negated errno; see [`is_undone`].
    Done(isize),
    /// It has to wait for the socket, for as long as the IO's timeout allows. A backend that submits in batches
    /// transfers this memory then, which is pinned.
    Waits(RawFd, Memory, Value),
}

/// Waits until the socket is ready. If that is within the timeout, the next attempt tells what has become of the socket.
///
/// # Errors
/// Those of [`Transfer::timed_out`], and as [`Scheduler::await_readiness`].
#[inline(never)]
fn wait_for_peer(transfer: &Transfer<'_>, fd: RawFd, timeout: Value) -> Result<isize, Error> {
    if timeout.is_nil() {
        wait_for_peer_until(transfer, fd, || Ok(None))
    } else {
        wait_for_peer_within(transfer, fd, timeout)
    }
}

/// In a frame of its own, a deadline takes no memory of fibers that wait without one.
#[inline(never)]
fn wait_for_peer_within(transfer: &Transfer<'_>, fd: RawFd, timeout: Value) -> Result<isize, Error> {
    wait_for_peer_until(transfer, fd, || transfer.scheduler.deadline_of(timeout))
}

#[inline(always)]
fn wait_for_peer_until(
    transfer: &Transfer<'_>,
    fd: RawFd,
    deadline: impl FnOnce() -> Result<Option<Instant>, Error>,
) -> Result<isize, Error> {
    let &Transfer { ruby, scheduler, key, direction, .. } = transfer;
    let ticket = scheduler.begin_readiness(ruby, key, (fd, direction.interest()))?;
    let wait = Wait::Transfer(fd, direction.interest());
    let waited = deadline().and_then(|end| scheduler.await_end_of_readiness(ruby, key, wait, ticket, end));
    end_wait_for_peer(transfer, ticket, waited)
}

/// Each fiber that waits has the caller's frame on its stack, so this has one of its own.
#[inline(never)]
fn end_wait_for_peer(transfer: &Transfer<'_>, ticket: Ticket, waited: Result<(), Error>) -> Result<isize, Error> {
    let ready = transfer.scheduler.end_readiness(transfer.ruby, ticket, waited)?;
    // What has become ready since the backend was last polled is transferred, as by a backend that submits in batches.
    if ready.is_some() || transfer.is_ready() { Ok(UNDONE) } else { transfer.timed_out() }
}

impl Transfer<'_> {
    /// Reads or writes, and waits as needed. Returns the number of bytes or a negated errno.
    ///
    /// Each fiber that waits for a socket has this function's frame on its stack, so what comes before and after the
    /// wait has frames of its own.
    #[inline(always)]
    pub fn run(&self, buffer: Value, range: SliceRange) -> Result<isize, Error> {
        if range.max_length == 0 {
            return self.transfer_nothing(buffer, range);
        }
        if self.kind == FdKind::Socket {
            let batches = self.scheduler.io.batches.get();
            let begun = if batches { self.begin_in_backend(buffer, range) } else { self.try_socket(buffer, range) };
            let result = match begun? {
                Begun::Done(result) => result,
                // SAFETY: the memory is pinned, as `begin_in_backend` has returned it.
                Begun::Waits(fd, memory, timeout) if batches => unsafe { send_recv(self, fd, memory, timeout)? },
                Begun::Waits(fd, _, timeout) => wait_for_peer(self, fd, timeout)?,
            };
            if !is_undone(result) {
                return Ok(result);
            }
        }
        self.run_at_once(buffer, range)
    }

    /// Without a system call, as the kernel may have no data for a read of 0 bytes, or wait for it.
    #[cold]
    #[inline(never)]
    fn transfer_nothing(&self, buffer: Value, range: SliceRange) -> Result<isize, Error> {
        self.arguments(buffer, range).map(|_| 0)
    }

    /// For a backend that submits in batches: what it can send or receive. With a bounce buffer it has done so when
    /// this returns.
    #[inline(never)]
    fn begin_in_backend(&self, buffer: Value, range: SliceRange) -> Result<Begun, Error> {
        let (fd, timeout, slice) = self.arguments(buffer, range)?;
        // The kernel would wait for data before it tried, and a listening socket never becomes ready for that.
        let refuses = self.direction == Direction::Read && io::may_listen(self.io) && is_listening(fd);
        // The kernel would wait for data before it received 0 bytes, too.
        if refuses || !(self.is_plain(range) && self.may_wait()) || slice.size() == 0 {
            Ok(Begun::Done(UNDONE))
        } else if slice.is_pinned(self) {
            Ok(Begun::Waits(fd, slice.memory(), timeout))
        } else {
            send_recv_bounced(self, fd, slice, timeout).map(Begun::Done)
        }
    }

    /// For a backend that does not submit in batches: tries one system call that does not block.
    #[inline(never)]
    fn try_socket(&self, buffer: Value, range: SliceRange) -> Result<Begun, Error> {
        if self.direction == Direction::Read {
            self.scheduler.yield_before_answer(self.ruby, self.key, self.io)?;
        }
        self.scheduler.consume_budget(self.ruby, self.key)?;
        let (fd, timeout, slice) = self.arguments(buffer, range)?;
        if !self.is_plain(range) {
            return Ok(Begun::Done(UNDONE));
        }
        // SAFETY: no other fiber has run since the slice was made, above.
        match unsafe { self.attempt(fd, slice, None) } {
            TryIo::Done(count) => {
                self.note_sent(fd);
                Ok(Begun::Done(count as isize))
            }
            TryIo::Failed(errno) => Ok(Begun::Done(negated(errno))),
            TryIo::WouldBlock if self.may_wait() => Ok(Begun::Waits(fd, slice.memory(), timeout)),
            TryIo::WouldBlock => {
                self.scheduler.set_would_block(self.key, None);
                Ok(Begun::Done(negated(Errno::EAGAIN)))
            }
            TryIo::NeedsOperation | TryIo::EndsAfter(_) => Ok(Begun::Done(UNDONE)),
        }
    }

    /// Tries system calls that do not block, and waits in between.
    #[inline(never)]
    fn run_at_once(&self, buffer: Value, range: SliceRange) -> Result<isize, Error> {
        // For a socket without batches, `try_socket` has consumed it.
        if self.kind != FdKind::Socket || self.scheduler.io.batches.get() {
            self.scheduler.consume_budget(self.ruby, self.key)?;
        }
        let (mut fd, _, mut slice) = self.arguments(buffer, range)?;
        let mut done = 0;
        loop {
            let from = self.from.map(|from| from + done as u64);
            // SAFETY: the slice was made, or renewed, after other fibers have run.
            let mut result = unsafe { self.attempt(fd, slice, from) };
            if result == TryIo::NeedsOperation {
                result = transfer_file(self, fd, slice, from)?;
            }
            match result {
                TryIo::Done(count) => {
                    done += count;
                    self.note_sent(fd);
                    if count == 0 || done >= range.min_length || count == slice.size() {
                        return Ok(done as isize);
                    }
                    slice = slice.after(count);
                }
                TryIo::Failed(errno) => return Ok(if done > 0 { done as isize } else { negated(errno) }),
                TryIo::EndsAfter(time) => {
                    if !self.wait_until_ready(Some(time))? {
                        return Ok(done as isize);
                    }
                }
                TryIo::WouldBlock | TryIo::NeedsOperation => {
                    let caller = self.caller();
                    if range.min_length == 0 && !caller.expects_to_wait {
                        self.scheduler.set_would_block(self.key, (!caller.never_waits).then_some(fd));
                        return Ok(negated(Errno::EAGAIN));
                    }
                    if !self.wait_until_ready(time::optional_interval(io::timeout(self.io)?)?)? {
                        return if done > 0 { Ok(done as isize) } else { self.timed_out() };
                    }
                }
            }
            // Looked up again, as other fibers may have run, and freed the buffer or closed the IO.
            slice = slice.renewed(self)?;
            fd = self.descriptor()?;
        }
    }

    /// A system call that does not block.
    ///
    /// # Safety
    /// No other fiber may have run since the slice was made.
    #[inline]
    unsafe fn attempt(&self, fd: RawFd, slice: BufferSlice, from: Option<u64>) -> TryIo {
        // SAFETY: the caller's obligation is the same.
        let attempt = || unsafe { try_now(self.direction, fd, slice.memory(), from, self.kind) };
        if self.scheduler.is_traced() { self.trace_attempt(fd, attempt) } else { attempt() }
    }

    /// Something was sent or received.
    fn note_sent(&self, fd: RawFd) {
        if self.kind == FdKind::Socket && self.direction == Direction::Write {
            self.scheduler.expect_answer(self.key, fd);
        }
    }

    /// The descriptor, its timeout, and the memory.
    fn arguments(&self, buffer: Value, range: SliceRange) -> Result<(RawFd, Value, BufferSlice), Error> {
        let memory = (buffer, self.direction.needs_writable());
        let (fd, timeout, contents) = descriptors::transfer_arguments(self.ruby, self.io, memory)?;
        Ok((fd, timeout, BufferSlice::within(self.ruby, contents, buffer, range)?))
    }

    /// Whether an operation of the backend could send or receive.
    fn is_plain(&self, range: SliceRange) -> bool {
        self.kind == FdKind::Socket && self.from.is_none() && range.min_length == 0
    }

    /// A non-blocking read must return EAGAIN rather than wait. Non-blocking writes do not call the hook.
    fn may_wait(&self) -> bool {
        !(self.direction == Direction::Read && self.caller().never_waits)
    }

    /// Whether the descriptor has become ready within the time.
    fn wait_until_ready(&self, timeout: Option<Duration>) -> Result<bool, Error> {
        let interest = self.direction.interest();
        wait_ready(self.ruby, self.scheduler, self.key, self.io, interest, timeout).map(|ready| ready.is_some())
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
    fn yield_before_answer(&self, ruby: &Ruby, key: FiberKey, io: Value) -> Result<(), Error> {
        let expected = {
            let mut state = self.state.borrow_mut();
            let expected = state.fibers.get_mut(key).and_then(|record| record.answer_on.take());
            expected.filter(|_| state.fibers.queue().has_unpreempted())
        };
        let yields = expected.is_some() && expected == Some(io::descriptor(io)?);
        let may_have_raise = yields && self.yield_within(ruby, key, Requeue::Last)?;
        if may_have_raise { self.raise_pending(key) } else { Ok(()) }
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
