//! `io_wait`.

use heddle_core::Interest;
use magnus::{Error, Integer, Ruby, TryConvert, Value, prelude::*};
use nix::errno::Errno;

use crate::io::descriptors;
use crate::io::readiness::wait_ready;
use crate::ruby::receiver::Receiver;
use crate::ruby::{error, io, time};
use crate::scheduler::Scheduler;

/// Waits until the IO is ready for one of `events`. Returns the events that it is ready for, or false if the timeout
/// elapsed. Without `timeout`, the IO's timeout applies.
pub fn io_wait(
    ruby: &Ruby,
    scheduler: Receiver<Scheduler>,
    io: Value,
    events: Value,
    timeout: Value,
) -> Result<Value, Error> {
    // Preserves errno: Ruby 3.3's `recv` tries first, and after a timeout raises the errno of that try.
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
    let hook = scheduler.enter(ruby)?;
    let fd = descriptors::descriptor(ruby, io, interest)?;
    let in_transfer = timeout.is_none() && scheduler.take_would_block(hook.key) == Some(fd);
    let timeout = match timeout {
        Some(timeout) => Some(timeout),
        None => time::optional_interval(io::timeout(io)?)?,
    };
    match wait_ready(ruby, scheduler, hook.key, io, interest, timeout)? {
        Some(ready) => Ok(ruby.integer_from_i64(i64::from(ready.0)).as_value()),
        // After 'false' Ruby 3.3 would raise EAGAIN in `IO#read`. Without a scheduler it raises this error.
        None if in_transfer => Err(error::io_timeout(ruby)),
        None => Ok(ruby.qfalse().as_value()),
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
