//! What the scheduler stores in a fiber's record for structured concurrency.

use std::collections::VecDeque;

use magnus::gc::Marker;
use magnus::prelude::*;

use super::shield::Shield;
use crate::ruby::value::PinnedValue;

/// Part of a fiber's record.
#[derive(Debug, Default)]
pub struct TaskData {
    /// The values that were posted to the fiber and that it has not taken. Most fibers never get one.
    #[expect(clippy::box_collection, reason = "takes one word of each fiber's record instead of four")]
    inbox: Option<Box<VecDeque<PinnedValue>>>,
    /// The object that is notified of the fiber's end.
    pub exit_observer: Option<PinnedValue>,
    /// See [`Shield`].
    pub shield: Shield,
    /// The number of the innermost scope that the fiber is in.
    pub scope: Option<u64>,
}

impl TaskData {
    /// Adds a resume value. A nil only wakes the fiber, so it is added to an empty inbox only. Otherwise two fibers
    /// that schedule each other for ever would fill the memory.
    pub fn post(&mut self, value: PinnedValue) {
        if !self.has_posted() || !value.get().is_nil() {
            self.inbox.get_or_insert_default().push_back(value);
        }
    }

    /// Takes the value that was posted first.
    pub fn take_posted(&mut self) -> Option<PinnedValue> {
        self.inbox.as_mut()?.pop_front()
    }

    /// Whether there are values that the fiber has not taken.
    pub fn has_posted(&self) -> bool {
        self.inbox.as_ref().is_some_and(|inbox| !inbox.is_empty())
    }

    /// Marks all Ruby objects that this refers to.
    pub fn mark(&self, marker: &Marker) {
        self.inbox.iter().flat_map(|inbox| inbox.iter()).chain(&self.exit_observer).for_each(|held| held.mark(marker));
    }
}
