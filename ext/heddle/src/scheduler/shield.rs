//! Which exceptions may reach a fiber now, and which of them first.

use super::fibers::{Delivery, Scope};

/// What a fiber has asked to be left alone with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shield {
    /// The number of the last deadline that was set before the innermost shielded block began; `None` outside of one.
    since: Option<u64>,
}

impl Shield {
    /// A shield that is put up now. `last_deadline` is the highest number of a deadline so far.
    pub fn up(last_deadline: u64) -> Self {
        Shield { since: Some(last_deadline) }
    }

    /// Whether what is meant for so long has to wait for the end of the shielded block. What ends the current wait alone
    /// (its IO is closed) is no cancelling, and a deadline that was set within the block is the block's own.
    pub fn holds_back(self, scope: Scope) -> bool {
        match (self.since, scope) {
            (None, _) | (_, Scope::Wait) => false,
            (Some(since), Scope::Deadline(number)) => number <= since,
            (Some(_), Scope::Fiber | Scope::Message(_)) => true,
        }
    }

    /// The delivery that is due next. Of several deadlines that have passed it is the innermost block's.
    pub fn next(self, deliveries: &[Delivery]) -> Option<usize> {
        let first = deliveries.iter().position(|delivery| !self.holds_back(delivery.scope))?;
        let number = |delivery: &Delivery| match delivery.scope {
            Scope::Deadline(number) => Some(number),
            _ => None,
        };
        if number(&deliveries[first]).is_none() {
            return Some(first);
        }
        let innermost = deliveries
            .iter()
            .enumerate()
            .filter(|(_, delivery)| !self.holds_back(delivery.scope))
            .max_by_key(|(_, delivery)| number(delivery));
        innermost.map(|(index, _)| index)
    }
}
