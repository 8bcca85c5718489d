//! What the books hold of a fiber for structured concurrency.

use std::collections::VecDeque;

use magnus::gc::Marker;
use magnus::prelude::*;

use super::shield::Shield;
use crate::ruby::value::PinnedValue;

/// Part of a fiber's record.
#[derive(Debug, Default)]
pub struct TaskData {
    /// What it was scheduled with and has not taken yet.
    pub inbox: VecDeque<PinnedValue>,
    /// What is to be told of its end.
    pub exit_observer: Option<PinnedValue>,
    /// See [`Shield`].
    pub shield: Shield,
}

impl TaskData {
    /// Leaves a resume value. Those that say nothing but 'go on' (nil) are one, or two fibers that schedule each other
    /// for ever would fill the memory.
    pub fn post(&mut self, value: PinnedValue) {
        if self.inbox.is_empty() || !value.get().is_nil() {
            self.inbox.push_back(value);
        }
    }

    /// Tells the garbage collector what is held.
    pub fn mark(&self, marker: &Marker) {
        self.inbox.iter().chain(&self.exit_observer).for_each(|held| held.mark(marker));
    }
}
