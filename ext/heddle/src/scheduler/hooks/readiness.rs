//! `io_wait`, and how the other hooks wait until a descriptor is ready.

use std::os::fd::RawFd;
use std::time::Duration;

use heddle_core::Interest;
use heddle_core::attempt;
use magnus::{Error, Integer, Ruby, Value, prelude::*};
use nix::errno::Errno;

use crate::io::descriptors;
use crate::ruby::receiver::Receiver;
use crate::ruby::{error, io, time};
use crate::scheduler::Scheduler;
use crate::scheduler::fibers::FiberKey;
use crate::scheduler::wait::Wait;
use crate::scheduler::waiting::deadline_after;

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
    let fd = descriptors::descriptor(ruby, io, interest)?;
    let in_transfer = timeout.is_none() && scheduler.take_would_block(visit.key) == Some(fd);
    let timeout = match timeout {
        Some(timeout) => Some(timeout),
        None => time::optional_interval(io::timeout(io)?)?,
    };
    match wait_ready(ruby, scheduler, visit.key, io, interest, timeout)? {
        Some(ready) => Ok(ruby.integer_from_i64(i64::from(ready.0)).as_value()),
        // Told 'false', Ruby 3.3 raises EAGAIN out of `IO#read`; without a scheduler it raises this.
        None if in_transfer => Err(error::io_timeout(ruby)),
        None => Ok(ruby.qfalse().as_value()),
    }
}

/// Waits for readiness; `None` when the time is up.
pub fn wait_ready(
    ruby: &Ruby,
    scheduler: &Scheduler,
    key: FiberKey,
    io: Value,
    interest: Interest,
    timeout: Option<Duration>,
) -> Result<Option<Interest>, Error> {
    if timeout.is_some_and(|timeout| timeout.is_zero()) {
        scheduler.be_fair(ruby, key)?;
        return poll_now(ruby, descriptors::descriptor(ruby, io, interest)?, interest);
    }
    let deadline = deadline_after(timeout);
    let mut fd = descriptors::descriptor(ruby, io, interest)?;
    loop {
        let wait = Wait::Ready(fd, interest);
        let result = scheduler.await_readiness(ruby, key, wait, (fd, interest), deadline)?;
        // It may have been closed meanwhile, and its number may mean another file by now.
        fd = descriptors::descriptor(ruby, io, interest)?;
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
