//! Shields, which hold back exceptions from a fiber.

use super::raise::RaiseScope;

/// Whether the fiber runs a shielded block, and which exceptions that holds back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shield {
    /// The number of the last deadline that was set before the innermost shielded block began; `None` outside of such
    /// a block.
    since: Option<u64>,
}

impl Shield {
    /// A shield for a block that begins now. `last_deadline` is the highest number of a deadline so far.
    pub fn new(last_deadline: u64) -> Self {
        Shield { since: Some(last_deadline) }
    }

    /// Whether an exception with this scope has to wait for the end of the shielded block. An exception that ends only
    /// the current wait (its IO is closed) is no cancellation. A deadline that was set within the block is the block's
    /// own.
    pub fn holds_back(self, scope: RaiseScope) -> bool {
        match (self.since, scope) {
            (None, _) | (_, RaiseScope::Wait) => false,
            (Some(since), RaiseScope::Deadline(number) | RaiseScope::Limit(number)) => number <= since,
            (Some(_), RaiseScope::Fiber | RaiseScope::Message(_) | RaiseScope::End | RaiseScope::Kill) => true,
        }
    }
}
