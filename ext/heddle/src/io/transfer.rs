//! A read or a write: what it is, and what the ways to do it need to know of it.

use std::cell::Cell;
use std::os::fd::RawFd;

use heddle_core::Interest;
use heddle_core::io::try_io::{FdKind, TryIo, poll_now};
use magnus::{Error, Ruby, Value};

use super::descriptors;
use crate::ruby::call_sites::{CallSiteTraits, CallSites};
use crate::ruby::error;
use crate::ruby::outcome::Ignore;
use crate::scheduler::Scheduler;
use crate::scheduler::record::FiberKey;

/// Which way the bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Into memory.
    Read,
    /// From memory.
    Write,
}

impl Direction {
    /// Whether the memory must be writable.
    pub fn needs_writable(self) -> bool {
        self == Direction::Read
    }

    /// The readiness that the transfer needs.
    pub fn interest(self) -> Interest {
        match self {
            Direction::Read => Interest::READABLE,
            Direction::Write => Interest::WRITABLE,
        }
    }
}

/// A read or a write that a hook was called for.
pub struct Transfer<'a> {
    pub ruby: &'a Ruby,
    pub scheduler: &'a Scheduler,
    /// The current fiber, in a hook.
    pub key: FiberKey,
    pub io: Value,
    pub direction: Direction,
    /// What the IO probably is.
    pub kind: FdKind,
    /// The position in the file; `None` is the IO's own.
    pub from: Option<u64>,
    /// See [`Transfer::caller`].
    caller: Cell<Option<CallSiteTraits>>,
}

impl<'a> Transfer<'a> {
    /// A transfer of the current fiber, which has entered a hook.
    pub fn new(
        ruby: &'a Ruby,
        scheduler: &'a Scheduler,
        key: FiberKey,
        (io, kind): (Value, FdKind),
        (direction, from): (Direction, Option<u64>),
    ) -> Self {
        Transfer { ruby, scheduler, key, io, direction, kind, from, caller: Cell::new(None) }
    }

    /// The traits of the method that called the hook, looked up once at most.
    #[inline]
    pub fn caller(&self) -> CallSiteTraits {
        self.caller.get().unwrap_or_else(|| {
            let traits = CallSites::traits(self.ruby, &self.scheduler.io.call_sites);
            self.caller.set(Some(traits));
            traits
        })
    }

    /// Whether the descriptor is ready for the transfer now. `false` if the IO is closed.
    pub fn is_ready(&self) -> bool {
        let ready =
            self.open_descriptor().and_then(|fd| poll_now(fd, self.direction.interest().0.into()).ignored("closed"));
        ready.is_some_and(|ready| ready != 0)
    }

    /// What the hook returns when the IO's timeout has expired.
    ///
    /// # Errors
    /// IO::TimeoutError, except in a method of `IO::Buffer`, which returns a negated errno for every error of the IO.
    #[cold]
    #[inline(never)]
    pub fn timed_out(&self) -> Result<isize, Error> {
        if self.caller().lends_own_buffer { Ok(-(libc::ETIMEDOUT as isize)) } else { Err(error::io_timeout(self.ruby)) }
    }

    /// Records a system call that does not wait.
    #[cold]
    #[inline(never)]
    pub fn trace_attempt(&self, fd: RawFd, attempt: impl FnOnce() -> TryIo) -> TryIo {
        let result = attempt();
        let outcome = match result {
            TryIo::Done(count) => {
                i32::try_from(count).ignored("beyond what Linux transfers at once").unwrap_or(i32::MAX)
            }
            TryIo::Failed(errno) => -(errno as i32),
            // A wait follows, which is recorded.
            TryIo::WouldBlock | TryIo::NeedsOperation | TryIo::EndsAfter(_) => return result,
        };
        if let Some(trace) = self.scheduler.state.borrow().trace() {
            trace.attempt(self.key, self.direction == Direction::Write, fd, outcome);
        }
        result
    }

    /// The IO's descriptor, looked up again. Not inlined into functions that wait.
    #[inline(never)]
    pub fn descriptor(&self) -> Result<RawFd, Error> {
        descriptors::descriptor(self.ruby, self.io)
    }

    /// See [`descriptors::open_descriptor`].
    pub fn open_descriptor(&self) -> Option<RawFd> {
        descriptors::open_descriptor(self.ruby, self.io)
    }
}
