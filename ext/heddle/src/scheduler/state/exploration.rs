//! The schedule that a test chooses: an exploration of the core decides in place of the run queue's classes and clocks.

use heddle_core::explore::exploration::Exploration;

use super::State;

impl State {
    /// From now on `exploration` chooses which fiber is next, and where fibers are preempted. There is one class of
    /// fibers then, and no quantum.
    ///
    /// The queue is empty: if fibers had run before, ticks had decided which of them wait and which are runnable.
    pub fn explore(&mut self, exploration: Exploration) {
        debug_assert!(self.fibers.queue().is_empty(), "no fiber has run");
        self.exploration = Some(Box::new(exploration));
    }

    /// Moves the entry that the exploration chooses to the head of the queue. It has no choice where the current fiber
    /// hands off.
    #[cold]
    pub(super) fn choose_next(&mut self) {
        if self.fibers.queue().has_first() {
            return;
        }
        // A choice that is none would have an exploration run the same schedule again.
        self.fibers.drop_void();
        if let Some(exploration) = &mut self.exploration
            && self.fibers.queue().woken().next().is_some()
        {
            let index = exploration.next_index(self.fibers.queue().woken().map(|(key, _)| key.number()));
            self.fibers.move_to_head(index);
        }
    }

    /// Whether the exploration, if there is one, has the fiber with the number `running` preempted, which passes a
    /// point where it may be. The fiber then has to be enqueued. `yields` says whether it asks for that.
    pub fn is_preempted_at_point(&mut self, running: u64, yields: bool) -> bool {
        self.fibers.drop_void();
        let queued = self.fibers.queue().woken().map(|(key, _)| key.number());
        self.exploration.as_mut().is_some_and(|exploration| exploration.is_preempted(running, yields, queued))
    }
}
