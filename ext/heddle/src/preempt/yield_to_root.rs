//! Lets the root check its interrupts: the current fiber yields. See `scheduler/root_interrupts.rs`.

use magnus::Ruby;

use super::safe_points;
use crate::ruby::value::PinnedValue;
use crate::scheduler::root_interrupts::Interrupts;
use crate::scheduler::state::Requeue;
use crate::scheduler::{HookGuard, Scheduler};
use crate::ticker::throttle;

impl Scheduler {
    /// The fiber in which Ruby runs a postponed job yields, and the root checks its interrupts.
    pub fn yield_to_root(&self, ruby: &Ruby, current: PinnedValue) {
        self.root.phase.set(Interrupts::ForRoot);
        let is_shielded = {
            let state = self.state.borrow();
            let key = state.fibers.find(current).or_else(|| state.current().map(|(_, key)| key));
            // Nothing in a fiber that ends would rescue what is raised in it meanwhile.
            state.is_ending(current)
                || key.and_then(|key| state.fibers.get(key)).is_some_and(|record| record.is_shielded())
        };
        if is_shielded || !safe_points::may_switch_here() {
            // The next tick tries again, unless a hook comes first.
            self.force_ticks(ruby);
            return self.try_again_soon();
        }
        if self.state.borrow().fibers.find(current).is_none() {
            // Registered as non-blocking in any case, since the fiber is not the root: it must run again before the
            // scheduler may close.
            self.register(current, false, false);
        }
        let Ok(hook) = self.enter(ruby).map(HookGuard::keep_wake_ups) else { return };
        let key = hook.key;
        throttle::end();
        // First in the queue: a fiber that is not preemptible may rely on no other fiber running, so it continues as
        // soon as the root has checked.
        let yielded = self.yield_within(ruby, key, Requeue::First).map(|_| ());
        self.continue_preempted(ruby, current, hook, yielded);
    }
}
