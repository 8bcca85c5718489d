//! What the scheduler stores in a fiber's record for structured concurrency.

use std::collections::VecDeque;

use magnus::Value;
use magnus::gc::Marker;
use magnus::prelude::*;

use super::raise::Shield;
use crate::ruby::value::PinnedValue;

/// Part of a fiber's record.
#[derive(Debug, Default)]
pub struct TaskData {
    /// The values that were posted to the fiber and that it has not taken. Most fibers never get one.
    #[expect(clippy::box_collection, reason = "takes one word of each fiber's record instead of four")]
    inbox: Option<Box<VecDeque<PinnedValue>>>,
    /// The object that is notified of the fiber's end.
    exit_observer: Option<PinnedValue>,
    /// See [`Shield`].
    pub shield: Shield,
    /// The number of the innermost scope that the fiber is in.
    pub scope: Option<u64>,
}

impl TaskData {
    /// Adds a resume value. A nil only wakes the fiber, so it is added to an empty inbox only. Otherwise two fibers
    /// that schedule each other for ever would fill the memory.
    pub fn post(&mut self, value: Value) {
        if !self.has_posted() || !value.is_nil() {
            // SAFETY: `TaskData::mark` marks it.
            let value = unsafe { PinnedValue::assume_marked(value) };
            self.inbox.get_or_insert_default().push_back(value);
        }
    }

    /// Takes the value that was posted first.
    pub fn take_posted(&mut self) -> Option<Value> {
        self.inbox.as_mut()?.pop_front().map(PinnedValue::get)
    }

    /// Whether there are values that the fiber has not taken.
    pub fn has_posted(&self) -> bool {
        self.inbox.as_ref().is_some_and(|inbox| !inbox.is_empty())
    }

    /// Makes `observer` the object that is notified of the fiber's end.
    pub fn observe_exit(&mut self, observer: Value) {
        // SAFETY: `TaskData::mark` marks it.
        self.exit_observer = Some(unsafe { PinnedValue::assume_marked(observer) });
    }

    /// Takes the object that is notified of the fiber's end.
    pub fn take_exit_observer(&mut self) -> Option<Value> {
        self.exit_observer.take().map(PinnedValue::get)
    }

    /// The object that is notified of the fiber's end.
    pub fn exit_observer(&self) -> Option<Value> {
        self.exit_observer.map(PinnedValue::get)
    }

    /// Marks all Ruby objects that this refers to.
    pub fn mark(&self, marker: &Marker) {
        self.inbox.iter().flat_map(|inbox| inbox.iter()).chain(&self.exit_observer).for_each(|held| held.mark(marker));
    }
}
