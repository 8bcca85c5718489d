//! `io_select`: `IO.select`.

use heddle_core::Interest;
use magnus::{Error, RModule, Ruby, Value, prelude::*};

use crate::io::select::ActiveSelection;
use crate::ruby::constant::Constant;
use crate::ruby::time;
use crate::scheduler::Scheduler;
use crate::scheduler::waiting::{Outcome, deadline_after};
use crate::ticker::throttle::TickMask;

/// The part that is written in Ruby.
static SELECT_NOW: Constant = Constant::new(&["Heddle", "SelectNow"]);

/// `IO.select`. Ruby's own does the work, without waiting, so that conversions, buffered data and errors are Ruby's.
pub fn io_select(ruby: &Ruby, scheduler: &Scheduler, arguments: &[Value]) -> Result<Value, Error> {
    ruby.check_arity(arguments.len(), 1..=4)?;
    let argument = |index| arguments.get(index).copied().unwrap_or_else(|| ruby.qnil().as_value());
    let (readers, writers, exceptions, timeout) = (argument(0), argument(1), argument(2), argument(3));
    let timeout = time::select_interval(timeout)?;
    let deadline = deadline_after(timeout);
    let hook = scheduler.enter(ruby)?;
    scheduler.consume_budget(ruby, hook.key)?;
    let select_now: RModule = SELECT_NOW.get(ruby)?;
    loop {
        let ready = select_without_waiting(select_now, readers, writers, exceptions)?;
        if !ready.is_nil() || timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Ok(ready);
        }
        let selection = ActiveSelection::begin(scheduler);
        selection.add(ruby, readers, Interest::READABLE)?;
        selection.add(ruby, writers, Interest::WRITABLE)?;
        selection.add(ruby, exceptions, Interest::PRIORITY)?;
        if selection.wait(ruby, hook.key, deadline)? == Outcome::TimedOut {
            // A descriptor may have become ready since the timeout elapsed.
            return select_without_waiting(select_now, readers, writers, exceptions);
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
    let _mask = TickMask::new();
    select_now.funcall("call", (readers, writers, exceptions))
}
