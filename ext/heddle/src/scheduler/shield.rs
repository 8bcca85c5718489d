//! Which exceptions may reach a fiber now.

use super::fibers::RaiseScope;

/// What a fiber has asked to be left alone with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shield {
    /// The number of the last deadline that was set before the innermost shielded block began; `None` outside of one.
    since: Option<u64>,
}

impl Shield {
    /// A shield that is put up now. `last_deadline` is the highest number of a deadline so far.
    pub fn new(last_deadline: u64) -> Self {
        Shield { since: Some(last_deadline) }
    }

    /// Whether what is meant for so long has to wait for the end of the shielded block. What ends the current wait alone
    /// (its IO is closed) is no cancelling, and a deadline that was set within the block is the block's own.
    pub fn holds_back(self, scope: RaiseScope) -> bool {
        match (self.since, scope) {
            (None, _) | (_, RaiseScope::Wait) => false,
            (Some(since), RaiseScope::Deadline(number) | RaiseScope::Limit(number)) => number <= since,
            (Some(_), RaiseScope::Fiber | RaiseScope::Message(_) | RaiseScope::End | RaiseScope::Kill) => true,
        }
    }
}
