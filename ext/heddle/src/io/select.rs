//! Waits until one of several descriptors is ready.

use std::time::Instant;

use heddle_core::Interest;
use magnus::{Error, RArray, Ruby, TryConvert, Value, prelude::*};

use super::descriptors;
use crate::ruby::error;
use crate::ruby::io;
use crate::ruby::value::Identity;
use crate::scheduler::Scheduler;
use crate::scheduler::record::FiberKey;
use crate::scheduler::state::{OperationEnd, Selection};
use crate::scheduler::wait::Wait;
use crate::scheduler::waiting::Outcome;

/// An argument of `IO.select`: nil, or an Array of IOs and of objects that have one.
#[derive(Clone, Copy)]
pub struct List {
    /// With an IO in the place of each object.
    ios: Value,
    /// What was given, if that is not the same. The program may change its own Array meanwhile.
    objects: Option<RArray>,
}

impl List {
    /// Asks for the IO of each object that is none. Its `to_io` runs in the calling fiber, where it may wait.
    ///
    /// # Errors
    /// TypeError for an object that has no IO; what `to_io` raises.
    pub fn convert(ruby: &Ruby, given: Value) -> Result<Self, Error> {
        // Ruby refuses what is neither an Array nor nil.
        let Some(objects) = RArray::from_value(given).filter(|list| !list.into_iter().all(io::is_io)) else {
            return Ok(List { ios: given, objects: None });
        };
        let objects = objects.dup();
        let ios = ruby.ary_new();
        for object in objects {
            ios.push(io::converted(object)?)?;
        }
        Ok(List { ios: ios.as_value(), objects: Some(objects) })
    }

    /// The IOs, as Ruby's own `IO.select` takes them.
    pub fn ios(self) -> Value {
        self.ios
    }
}

/// What `IO.select` returns for the lists: `ready`, which Ruby's own has returned for their IOs, with the objects that
/// were given in the places of their IOs.
pub fn selected(ruby: &Ruby, ready: Value, lists: [List; 3]) -> Result<Value, Error> {
    let Some(ready) = RArray::from_value(ready) else { return Ok(ready) };
    for (index, list) in (0..).zip(lists) {
        let Some(objects) = list.objects else { continue };
        // Some of the list's IOs, in its order.
        let mut ready_ios = ready.entry::<RArray>(index)?.into_iter().peekable();
        let selected = ruby.ary_new();
        for (object, io) in objects.into_iter().zip(RArray::try_convert(list.ios)?) {
            if ready_ios.next_if(|ready| Identity::from(*ready) == io.into()).is_some() {
                selected.push(object)?;
            }
        }
        ready.store(index, selected)?;
    }
    Ok(ready.as_value())
}

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
