//! Waits until one of several descriptors is ready.

use std::time::Instant;

use heddle_core::Interest;
use magnus::{Error, RArray, Ruby, TryConvert, Value, prelude::*};

use super::descriptors;
use crate::ruby::error;
use crate::scheduler::Scheduler;
use crate::scheduler::record::FiberKey;
use crate::scheduler::state::{OperationEnd, Selection};
use crate::scheduler::wait::Wait;
use crate::scheduler::waiting::Outcome;

/// A [`Selection`] that ends when this is dropped. The scheduler owns its memory, as a fiber that waits may be
/// collected without ever being unwound.
pub struct ActiveSelection<'a> {
    scheduler: &'a Scheduler,
    slot: usize,
}

impl<'a> ActiveSelection<'a> {
    /// An empty selection.
    pub fn begin(scheduler: &'a Scheduler) -> Self {
        let slot = scheduler.state.borrow_mut().resources.begin_selection();
        ActiveSelection { scheduler, slot }
    }

    /// Adds the IOs of an Array, or nothing for nil.
    pub fn add(&self, ruby: &Ruby, list: Value, interest: Interest) -> Result<(), Error> {
        if list.is_nil() {
            return Ok(());
        }
        for element in RArray::try_convert(list)?.into_iter() {
            let fd = descriptors::descriptor(ruby, element)?;
            self.with(|selection| selection.want(fd, interest));
        }
        Ok(())
    }

    /// Waits until one of the IOs is ready.
    pub fn wait(&self, ruby: &Ruby, key: FiberKey, deadline: Option<Instant>) -> Result<Outcome<()>, Error> {
        self.with(Selection::merge);
        let mut next = 0;
        while let Some((fd, interest)) = self.with(|selection| selection.wanted(next)) {
            let ticket = self.scheduler.begin_readiness(ruby, key, (fd, interest))?;
            self.with(|selection| selection.tickets.push(ticket));
            next += 1;
        }
        let outcome = self.scheduler.wait(ruby, key, Wait::Select, deadline, |state| {
            let tickets = state.resources.selected(self.slot);
            tickets.iter().any(|ticket| state.operations.is_finished(*ticket)).then_some(())
        })?;
        if self.end() { Err(error::stream_closed(ruby)) } else { Ok(outcome) }
    }

    fn with<T>(&self, act: impl FnOnce(&mut Selection) -> T) -> T {
        act(self.scheduler.state.borrow_mut().resources.selection(self.slot))
    }

    /// Cancels all waits. Returns whether one of the IOs was closed meanwhile.
    fn end(&self) -> bool {
        let mut closed = false;
        while let Some(ticket) = self.with(|selection| selection.tickets.pop()) {
            closed |= self.scheduler.cancel_readiness(ticket) == Some(OperationEnd::Closed);
        }
        closed
    }
}

impl Drop for ActiveSelection<'_> {
    fn drop(&mut self) {
        self.end();
        self.scheduler.state.borrow_mut().resources.end_selection(self.slot);
    }
}
