//! `io_wait`, `io_select`: waiting until IOs are ready.

use heddle_core::Interest;
use magnus::{Error, Integer, RModule, Ruby, TryConvert, Value, prelude::*};
use nix::errno::Errno;

use crate::io::descriptors;
use crate::io::readiness::wait_ready;
use crate::io::select::{self, ActiveSelection, List};
use crate::ruby::constant::Constant;
use crate::ruby::receiver::Receiver;
use crate::ruby::{error, io, time};
use crate::scheduler::Scheduler;
use crate::scheduler::waiting::Outcome;
use crate::ticker::throttle::Suppression;

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
    let fd = descriptors::descriptor(ruby, io)?;
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
        _ => Err(error::of(
            ruby.exception_arg_error(),
            format!("events must be IO::READABLE, IO::PRIORITY and IO::WRITABLE or'ed together, not {mask}"),
        )),
    }
}

/// The part that is written in Ruby.
static SELECT_NOW: Constant = Constant::new(&["Heddle", "SelectNow"]);

/// `IO.select`. Ruby's own does the work, without waiting, so that buffered data and errors are Ruby's.
pub fn io_select(ruby: &Ruby, scheduler: &Scheduler, arguments: &[Value]) -> Result<Value, Error> {
    ruby.check_arity(arguments.len(), 1..=4)?;
    let argument = |index| arguments.get(index).copied().unwrap_or_else(|| ruby.qnil().as_value());
    let (readers, writers, exceptions, timeout) = (argument(0), argument(1), argument(2), argument(3));
    let timeout = time::select_interval(timeout)?;
    let lists = [List::convert(ruby, readers)?, List::convert(ruby, writers)?, List::convert(ruby, exceptions)?];
    let deadline = scheduler.deadline_after(timeout);
    let [readers, writers, exceptions] = lists.map(List::ios);
    let hook = scheduler.enter(ruby)?;
    scheduler.consume_budget(ruby, hook.key)?;
    let select_now: RModule = SELECT_NOW.get(ruby)?;
    loop {
        let ready = select_without_waiting(select_now, readers, writers, exceptions)?;
        if !ready.is_nil() || timeout.is_some_and(|timeout| timeout.is_zero()) {
            return select::selected(ruby, ready, lists);
        }
        let selection = ActiveSelection::begin(scheduler);
        selection.add(ruby, readers, Interest::READABLE)?;
        selection.add(ruby, writers, Interest::WRITABLE)?;
        selection.add(ruby, exceptions, Interest::PRIORITY)?;
        if selection.wait(ruby, hook.key, deadline)? == Outcome::TimedOut {
            // A descriptor may have become ready since the timeout elapsed.
            let ready = select_without_waiting(select_now, readers, writers, exceptions)?;
            return select::selected(ruby, ready, lists);
        }
    }
}

/// The IOs that are ready now. While an interrupt is pending, Ruby reports that none is ready. So ticks are masked:
/// with garbage collections that take longer than a tick, one would be pending in each call.
fn select_without_waiting(
    select_now: RModule,
    readers: Value,
    writers: Value,
    exceptions: Value,
) -> Result<Value, Error> {
    let _mask = Suppression::begin();
    select_now.funcall("call", (readers, writers, exceptions))
}
