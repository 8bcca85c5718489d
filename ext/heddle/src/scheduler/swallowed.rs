//! An exception that a fiber has swallowed is raised again in its next wait: see [`super::pending_raises`].

use super::Scheduler;
use super::fibers::FiberKey;
use super::pending_raises::Sighting;
use super::state::TimerAction;
use crate::ruby::{error, fiber};

impl Scheduler {
    /// Finds out whether the fiber has swallowed what it is to be interrupted by. To be called at the beginning of each of
    /// its waits.
    #[inline]
    pub fn look_for_swallowed(&self, key: FiberKey) {
        self.look_for_raised(key, Sighting::Missing);
    }

    /// The same at each tick, for a fiber that computes.
    #[inline]
    pub fn look_for_swallowed_at_tick(&self, key: FiberKey) {
        self.look_for_raised(key, Sighting::MissingAtTick);
    }

    #[inline]
    fn look_for_raised(&self, key: FiberKey, missing: Sighting) {
        let has_raised = {
            let state = self.state.borrow();
            state
                .fibers
                .get(key)
                .is_some_and(|record| !record.pending_raises.is_empty() && record.pending_raises.has_raised())
        };
        if has_raised {
            self.look_at_raised(key, missing);
        }
    }

    #[cold]
    fn look_at_raised(&self, key: FiberKey, missing: Sighting) {
        // `$!` is that of the fiber that runs. A generator tells nothing of the fiber that has resumed it.
        let is_current = self.state.borrow().fibers.get(key).is_some_and(|record| record.fiber == fiber::current());
        if !is_current {
            return;
        }
        for nth in 0.. {
            let raised = self.state.borrow().fibers.get(key).and_then(|record| record.pending_raises.raised(nth));
            let Some(raised) = raised else { return };
            let found = if error::is_in_flight(raised.exception) { Sighting::InFlight } else { missing };
            self.state.borrow_mut().update_raise(key, raised.scope, found, TimerAction::Wake(key));
        }
    }
}
