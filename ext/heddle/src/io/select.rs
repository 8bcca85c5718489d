//! Waiting until one of several descriptors is ready.

use std::time::Instant;

use heddle_core::Interest;
use magnus::{Error, RArray, Ruby, TryConvert, Value, prelude::*};

use super::descriptors;
use crate::ruby::error;
use crate::scheduler::Scheduler;
use crate::scheduler::fibers::FiberKey;
use crate::scheduler::state::{Ended, Selection};
use crate::scheduler::wait::Wait;
use crate::scheduler::waiting::Outcome;

/// A [`Selection`], which ends when this is dropped. Its memory belongs to the scheduler, as the fiber's stack may be left
/// for good while it waits.
pub struct Selecting<'a> {
    scheduler: &'a Scheduler,
    place: usize,
}

impl<'a> Selecting<'a> {
    /// An empty selection.
    pub fn begin(scheduler: &'a Scheduler) -> Self {
        let place = scheduler.state.borrow_mut().selections.insert(Selection::default());
        Selecting { scheduler, place }
    }

    /// Adds the IOs of a list.
    pub fn add(&self, ruby: &Ruby, list: Value, interest: Interest) -> Result<(), Error> {
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
    pub fn wait(&self, ruby: &Ruby, key: FiberKey, deadline: Option<Instant>) -> Result<Outcome<()>, Error> {
        let mut next = 0;
        while let Some((fd, interest)) = self.with(|selection| selection.wanted.get(next).copied()) {
            let token = self.scheduler.begin_readiness(ruby, key, (fd, interest))?;
            self.with(|selection| selection.tokens.push(token));
            next += 1;
        }
        let outcome = self.scheduler.wait(ruby, key, Wait::Select, deadline, |state| {
            let tokens = &state.selections[self.place].tokens;
            tokens.iter().any(|token| state.operations.is_finished(*token)).then_some(())
        })?;
        if self.end() { Err(error::stream_closed(ruby)) } else { Ok(outcome) }
    }

    fn with<T>(&self, act: impl FnOnce(&mut Selection) -> T) -> T {
        act(&mut self.scheduler.state.borrow_mut().selections[self.place])
    }

    /// Cancels all waits. Returns whether one of the IOs was closed meanwhile.
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
        self.scheduler.state.borrow_mut().selections.remove(self.place);
    }
}
