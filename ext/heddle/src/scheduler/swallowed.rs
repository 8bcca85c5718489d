//! An exception that a fiber has swallowed is raised again in its next wait: see [`super::pending_raises`].

use super::Scheduler;
use super::fibers::FiberKey;
use super::pending_raises::Observation;
use super::state::TimerAction;
use crate::ruby::{error, fiber};

impl Scheduler {
    /// Finds out whether the fiber has swallowed an exception that is to be raised again. Called at the beginning of
    /// each of the fiber's waits.
    #[inline]
    pub fn detect_swallowed(&self, key: FiberKey) {
        self.observe_raised(key, Observation::Absent);
    }

    /// Like [`Scheduler::detect_swallowed`], at a tick, for a fiber that calls no hook.
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
        // `$!` belongs to the running fiber. In a generator it says nothing about the fiber that has resumed the
        // generator.
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
