//! `io_select`: `IO.select`.

use std::os::fd::RawFd;

use heddle_core::{Interest, Operation, Token};
use magnus::scan_args::scan_args;
use magnus::{Error, RArray, RModule, Ruby, Value, prelude::*};

use crate::preempt::pace::Silence;
use crate::ruby::{io, time};
use crate::scheduler::Scheduler;
use crate::scheduler::fibers::FiberKey;
use crate::scheduler::wait::Wait;
use crate::scheduler::waiting::{Outcome, deadline_after};

/// Ruby's own `IO.select`, asked only when it need not wait: so conversions, buffered data and errors are Ruby's.
pub fn io_select(ruby: &Ruby, scheduler: &Scheduler, arguments: &[Value]) -> Result<Value, Error> {
    let arguments = scan_args::<(Value,), (Option<Value>, Option<Value>, Option<Value>), (), (), (), ()>(arguments)?;
    let nil = ruby.qnil().as_value();
    let (readers, writers, exceptions, timeout) = (
        arguments.required.0,
        arguments.optional.0.unwrap_or(nil),
        arguments.optional.1.unwrap_or(nil),
        arguments.optional.2.unwrap_or(nil),
    );
    let timeout = time::optional_interval(timeout)?;
    let deadline = deadline_after(timeout);
    let visit = scheduler.enter(ruby)?;
    scheduler.be_fair(ruby, visit.key)?;
    let select_now: RModule = ruby.class_object().const_get::<_, RModule>("Heddle")?.const_get("SelectNow")?;
    loop {
        let ready = ask_now(select_now, readers, writers, exceptions)?;
        if !ready.is_nil() || timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Ok(ready);
        }
        let mut interests = Vec::new();
        collect(readers, Interest::READABLE, &mut interests)?;
        collect(writers, Interest::WRITABLE, &mut interests)?;
        collect(exceptions, Interest::PRIORITY, &mut interests)?;
        if wait_for_any(ruby, scheduler, visit.key, &interests, deadline)? == Outcome::TimedOut {
            // What came in the last moment still counts.
            return ask_now(select_now, readers, writers, exceptions);
        }
    }
}

/// What is ready at this moment. If a tick were pending, Ruby would not even look, and answer that nothing is: again and
/// again, where a garbage collection takes longer than a tick.
fn ask_now(select_now: RModule, readers: Value, writers: Value, exceptions: Value) -> Result<Value, Error> {
    let _silence = Silence::keep();
    select_now.funcall("call", (readers, writers, exceptions))
}

fn collect(list: Value, interest: Interest, into: &mut Vec<(RawFd, Interest)>) -> Result<(), Error> {
    if list.is_nil() {
        return Ok(());
    }
    for element in RArray::try_convert(list)?.into_iter() {
        let fd = io::descriptor(element)?;
        match into.iter_mut().find(|(known, _)| *known == fd) {
            Some((_, known)) => *known = *known | interest,
            None => into.push((fd, interest)),
        }
    }
    Ok(())
}

fn wait_for_any(
    ruby: &Ruby,
    scheduler: &Scheduler,
    key: FiberKey,
    interests: &[(RawFd, Interest)],
    deadline: Option<std::time::Instant>,
) -> Result<Outcome<()>, Error> {
    interests.iter().for_each(|(fd, interest)| scheduler.turns.borrow_mut().begin_select(key, *fd, *interest));
    let tokens: Vec<Token> = interests
        .iter()
        // SAFETY: waiting for readiness needs no memory.
        .map(|&(fd, interest)| unsafe { scheduler.begin(key, Operation::Ready { fd, interest }) })
        .collect();
    let outcome = scheduler.wait(ruby, key, Wait::Select, deadline, |turns| {
        tokens.iter().any(|token| turns.is_finished(*token)).then_some(())
    });
    tokens.into_iter().for_each(|token| scheduler.cancel_readiness(token));
    interests.iter().for_each(|(fd, _)| scheduler.turns.borrow_mut().end_select(key, *fd));
    outcome
}
