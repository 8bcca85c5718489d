//! Waiting until a descriptor is ready.

use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use heddle_core::io::operations::Ticket;
use heddle_core::io::try_io;
use heddle_core::{Interest, Operation};
use magnus::{Error, Ruby, Value};
use nix::errno::Errno;

use super::descriptors;
use crate::ruby::error;
use crate::scheduler::Scheduler;
use crate::scheduler::record::FiberKey;
use crate::scheduler::state::OperationEnd;
use crate::scheduler::wait::Wait;

/// Waits for readiness; `None` when the time has elapsed.
///
/// # Errors
/// What was raised into the fiber; IOError if the IO was closed meanwhile; SystemCallError.
pub fn wait_ready(
    ruby: &Ruby,
    scheduler: &Scheduler,
    key: FiberKey,
    io: Value,
    interest: Interest,
    timeout: Option<Duration>,
) -> Result<Option<Interest>, Error> {
    if timeout.is_some_and(|timeout| timeout.is_zero()) {
        scheduler.consume_budget(ruby, key)?;
        return poll_now(ruby, descriptors::descriptor(ruby, io)?, interest);
    }
    let deadline = scheduler.deadline_after(timeout);
    let mut fd = descriptors::descriptor(ruby, io)?;
    loop {
        let wait = Wait::Ready(fd, interest);
        let result = scheduler.await_readiness(ruby, key, wait, (fd, interest), deadline)?;
        // The IO may have been closed meanwhile, and its number may name another file by now.
        fd = descriptors::descriptor(ruby, io)?;
        match result {
            None => return Ok(None),
            Some(ready) if ready > 0 => return Ok(Some(Interest(ready as u8))),
            // Ready for nothing, or cancelled by the kernel: wait again.
            Some(0) => {}
            Some(result) if result == -libc::ECANCELED => {}
            Some(error) => return Err(error::system_call(ruby, Errno::from_raw(-error), "io_wait")),
        }
    }
}

fn poll_now(ruby: &Ruby, fd: RawFd, interest: Interest) -> Result<Option<Interest>, Error> {
    // poll(2)'s bits have the values of Ruby's constants.
    match try_io::poll_now(fd, interest.0.into()) {
        Ok(0) => Ok(None),
        Ok(ready) => Ok(Some(Interest(ready as u8))),
        Err(errno) => Err(error::system_call(ruby, errno, "io_wait")),
    }
}

impl Scheduler {
    /// Submits a wait for readiness. The caller must take its result or call [`Scheduler::cancel_readiness`].
    #[inline(never)]
    pub fn begin_readiness(
        &self,
        ruby: &Ruby,
        key: FiberKey,
        (fd, interest): (RawFd, Interest),
    ) -> Result<Ticket, Error> {
        // SAFETY: waiting for readiness needs no memory.
        unsafe { self.start_operation(ruby, key, Operation::Ready { fd, interest }) }
    }

    /// Waits until a descriptor is ready. The [`Interest`] bits, or a negated errno; `None` when the time has elapsed.
    ///
    /// # Errors
    /// What was raised into the fiber; IOError if the descriptor was closed meanwhile.
    pub fn await_readiness(
        &self,
        ruby: &Ruby,
        key: FiberKey,
        wait: Wait,
        readiness: (RawFd, Interest),
        deadline: Option<Instant>,
    ) -> Result<Option<i32>, Error> {
        let ticket = self.begin_readiness(ruby, key, readiness)?;
        let waited = self.await_end_of_readiness(ruby, key, wait, ticket, deadline);
        self.end_readiness(ruby, ticket, waited)
    }

    /// The wait itself, after [`Scheduler::begin_readiness`] and before [`Scheduler::end_readiness`].
    #[inline(always)]
    pub fn await_end_of_readiness(
        &self,
        ruby: &Ruby,
        key: FiberKey,
        wait: Wait,
        ticket: Ticket,
        deadline: Option<Instant>,
    ) -> Result<(), Error> {
        self.wait_until(ruby, key, wait, deadline, &mut |state| state.operations.is_finished(ticket))
    }

    /// How a wait for readiness has ended: see [`Scheduler::await_readiness`].
    pub fn end_readiness(&self, ruby: &Ruby, ticket: Ticket, waited: Result<(), Error>) -> Result<Option<i32>, Error> {
        let ended = match &waited {
            Ok(()) => self.state.borrow_mut().operations.take_result(ticket),
            Err(_kept) => None,
        };
        let ended = ended.or_else(|| self.cancel_readiness(ticket));
        waited?;
        match ended {
            None => Ok(None),
            Some(OperationEnd::Result(result)) => Ok(Some(result)),
            Some(OperationEnd::Closed) => Err(error::stream_closed(ruby)),
        }
    }

    /// Cancels a wait for readiness. It uses no memory, so no fiber has to wait for its completion. Returns how it
    /// ended, if it has ended already.
    pub fn cancel_readiness(&self, ticket: Ticket) -> Option<OperationEnd> {
        let under_way = self.state.borrow().operations.under_way(ticket);
        let ended = self.state.borrow_mut().operations.abandon(ticket);
        if let Some(token) = under_way
            && let Some(reactor) = self.io.reactor.borrow_mut().as_mut()
        {
            reactor.backend.cancel(token);
        }
        ended
    }
}
