//! The thread and the process that a scheduler belongs to.

use std::cell::Cell;

use magnus::typed_data::Obj;
use magnus::{Error, Ruby, TryConvert, prelude::*};

use super::Scheduler;
use crate::ruby::receiver::KeptAlive;
use crate::ruby::value::PinnedValue;
use crate::ruby::{error, fiber, fork, ractor, thread};

/// See the module.
#[derive(Default)]
pub struct Owner {
    /// The thread that called the first hook.
    pub thread: Cell<Option<PinnedValue>>,
    /// The fork generation of the process; see [`fork`].
    pub generation: Cell<u64>,
    /// See [`fiber::fall_back_fiber`].
    pub fall_back: Cell<Option<PinnedValue>>,
}

impl Scheduler {
    /// The current thread's scheduler, if it is a Heddle scheduler. Only the main Ractor has one.
    pub fn of_thread() -> Option<KeptAlive<Self>> {
        let scheduler = fiber::scheduler();
        if scheduler.is_nil() || !ractor::is_main() {
            return None;
        }
        Obj::try_convert(scheduler).ok().map(KeptAlive::new)
    }

    /// The current thread's scheduler, if it is a Heddle scheduler that this thread has used, in this process.
    pub fn in_use() -> Option<KeptAlive<Self>> {
        Scheduler::of_thread().filter(|scheduler| scheduler.is_in_use())
    }

    /// Whether the current thread has used the scheduler in this process.
    pub fn is_in_use(&self) -> bool {
        self.is_owned_by(thread::current()) && !self.is_inherited()
    }

    /// Whether `thread` is the owner.
    pub fn is_owned_by(&self, thread: PinnedValue) -> bool {
        self.owner.thread.get() == Some(thread)
    }

    /// # Errors
    /// FiberError on any thread but the owner's.
    pub fn expect_owner(&self, ruby: &Ruby) -> Result<(), Error> {
        match self.owner.thread.get() {
            Some(owner) if owner != thread::current() => Err(error::fiber_error(ruby, "fiber called across threads")),
            _ => Ok(()),
        }
    }

    /// Whether the scheduler comes from the parent of this process and has not been used here.
    pub fn is_inherited(&self) -> bool {
        self.owner.generation.get() != fork::generation()
    }
}
