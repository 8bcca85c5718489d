//! The first hook in a forked child.

use super::Scheduler;
use super::state::lost::LossCause;
use crate::ruby::{fiber, fork, thread};

impl Scheduler {
    /// This process is a forked child, in which only the current fiber exists.
    #[cold]
    pub fn after_fork(&self) {
        self.owner.generation.set(fork::generation());
        {
            let mut state = self.state.borrow_mut();
            let survivor = state.fibers.find(fiber::current());
            state.forget_other_fibers(survivor, LossCause::Fork);
            state.set_forking_fiber(survivor);
            state.reset_counts();
            state.end_trace();
            // The hook then takes the slow path, which sets up a backend.
            state.clear_current();
        }
        self.preemption.preemptions.set(0);
        self.release_resources(true);
        self.io.opened_by.set(None);
        self.owner.fall_back.set(None);
        // The thread that forked is the only one in this process, even if another thread was the owner before.
        self.owner.thread.set(Some(thread::current()));
    }
}
