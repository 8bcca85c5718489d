//! `io_select`: `IO.select`.

use std::time::Instant;

use heddle_core::{Interest, Operation};
use magnus::scan_args::scan_args;
use magnus::{Error, RArray, RModule, Ruby, Value, prelude::*};

use crate::io::descriptors;
use crate::preempt::pace::Silence;
use crate::ruby::{error, time};
use crate::scheduler::Scheduler;
use crate::scheduler::fibers::FiberKey;
use crate::scheduler::turns::{Ended, Selection};
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
    let timeout = time::select_interval(timeout)?;
    let deadline = deadline_after(timeout);
    let visit = scheduler.enter(ruby)?;
    scheduler.be_fair(ruby, visit.key)?;
    let select_now: RModule = ruby.class_object().const_get::<_, RModule>("Heddle")?.const_get("SelectNow")?;
    loop {
        let ready = ask_now(select_now, readers, writers, exceptions)?;
        if !ready.is_nil() || timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Ok(ready);
        }
        let selection = Selecting::begin(scheduler);
        selection.add(ruby, readers, Interest::READABLE)?;
        selection.add(ruby, writers, Interest::WRITABLE)?;
        selection.add(ruby, exceptions, Interest::PRIORITY)?;
        if selection.wait(ruby, visit.key, deadline)? == Outcome::TimedOut {
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

/// A [`Selection`] of the scheduler's, which is over when this is dropped.
struct Selecting<'a> {
    scheduler: &'a Scheduler,
    place: usize,
}

impl<'a> Selecting<'a> {
    fn begin(scheduler: &'a Scheduler) -> Self {
        let place = scheduler.turns.borrow_mut().selections.insert(Selection::default());
        Selecting { scheduler, place }
    }

    /// Adds the IOs of a list.
    fn add(&self, ruby: &Ruby, list: Value, interest: Interest) -> Result<(), Error> {
        if list.is_nil() {
            return Ok(());
        }
        for element in RArray::try_convert(list)?.into_iter() {
            let fd = descriptors::descriptor(ruby, element, interest)?;
            self.with(|selection| match selection.wanted.iter_mut().find(|(known, _)| *known == fd) {
                Some((_, known)) => *known = *known | interest,
                None => selection.wanted.push((fd, interest)),
            });
        }
        Ok(())
    }

    /// Waits until one of them is ready.
    fn wait(&self, ruby: &Ruby, key: FiberKey, deadline: Option<Instant>) -> Result<Outcome<()>, Error> {
        let mut next = 0;
        while let Some((fd, interest)) = self.with(|selection| selection.wanted.get(next).copied()) {
            // SAFETY: waiting for readiness needs no memory.
            let token = unsafe { self.scheduler.begin(ruby, key, Operation::Ready { fd, interest })? };
            self.with(|selection| selection.tokens.push(token));
            next += 1;
        }
        let outcome = self.scheduler.wait(ruby, key, Wait::Select, deadline, |turns| {
            let tokens = &turns.selections[self.place].tokens;
            tokens.iter().any(|token| turns.operations.is_finished(*token)).then_some(())
        })?;
        if self.end() { Err(error::stream_closed(ruby)) } else { Ok(outcome) }
    }

    fn with<T>(&self, act: impl FnOnce(&mut Selection) -> T) -> T {
        act(&mut self.scheduler.turns.borrow_mut().selections[self.place])
    }

    /// Nothing is waited for any more. Whether one of the IOs was closed meanwhile.
    fn end(&self) -> bool {
        let mut closed = false;
        while let Some(token) = self.with(|selection| selection.tokens.pop()) {
            closed |= self.scheduler.cancel_readiness(token) == Some(Ended::Closed);
        }
        closed
    }
}

impl Drop for Selecting<'_> {
    fn drop(&mut self) {
        self.end();
        self.scheduler.turns.borrow_mut().selections.remove(self.place);
    }
}
