//! An exception that a fiber has swallowed is raised again in its next wait: see [`super::pending_raises`].

use super::Scheduler;
use super::fibers::FiberKey;
use super::pending_raises::Observation;
use super::state::TimerAction;
use crate::ruby::{error, fiber};

impl Scheduler {
    /// Finds out whether the fiber has swallowed what it is to be interrupted by. To be called at the beginning of each of
    /// its waits.
    #[inline]
    pub fn detect_swallowed(&self, key: FiberKey) {
        self.observe_raised(key, Observation::Absent);
    }

    /// The same at each tick, for a fiber that computes.
    #[inline]
    pub fn detect_swallowed_at_tick(&self, key: FiberKey) {
        self.observe_raised(key, Observation::AbsentAtTick);
    }

    #[inline]
    fn observe_raised(&self, key: FiberKey, absent: Observation) {
        let has_raised = {
            let state = self.state.borrow();
            state
                .fibers
                .get(key)
                .is_some_and(|record| !record.pending_raises.is_empty() && record.pending_raises.has_raised())
        };
        if has_raised {
            self.observe_each_raised(key, absent);
        }
    }

    #[cold]
    fn observe_each_raised(&self, key: FiberKey, absent: Observation) {
        // `$!` is that of the fiber that runs. A generator tells nothing of the fiber that has resumed it.
        let is_current = self.state.borrow().fibers.get(key).is_some_and(|record| record.fiber == fiber::current());
        if !is_current {
            return;
        }
        for nth in 0.. {
            let raised = self.state.borrow().fibers.get(key).and_then(|record| record.pending_raises.raised(nth));
            let Some(raised) = raised else { return };
            let observed = if error::is_in_flight(raised.exception) { Observation::InFlight } else { absent };
            self.state.borrow_mut().update_raise(key, raised.scope, observed, TimerAction::Wake(key));
        }
    }
}
