//! Each fiber has its own masks of `Thread.handle_interrupt`: see `ruby/masks.rs`.

use magnus::Ruby;

use super::Scheduler;
use super::fibers::FiberKey;
use crate::ruby::masks::Masks;

impl Scheduler {
    /// From now on each fiber keeps its masks when it is switched. The masks that are there stay with the root: which
    /// fiber set them is unknown.
    pub fn find_masks(&self) {
        if self.preemption.masks.get().is_none() {
            let masks = Masks::of_thread();
            self.preemption.root_mask_count.set(masks.map_or(0, Masks::len));
            self.preemption.masks.set(masks);
        }
    }

    /// Calls `switch`, which leaves the fiber. When control comes back, the fiber's current masks are restored.
    #[inline(always)]
    pub fn switch<R>(&self, ruby: &Ruby, key: FiberKey, switch: impl FnOnce() -> R) -> R {
        match self.preemption.masks.get() {
            Some(masks) if masks.len() != self.preemption.root_mask_count.get() => {
                self.switch_masked(ruby, key, masks, switch)
            }
            _ => switch(),
        }
    }

    #[cold]
    #[inline(never)]
    fn switch_masked<R>(&self, ruby: &Ruby, key: FiberKey, masks: Masks, switch: impl FnOnce() -> R) -> R {
        let is_root = self.state.borrow().fibers.get(key).is_none_or(|record| record.blocking);
        if is_root || masks.len() < self.preemption.root_mask_count.get() {
            self.preemption.root_mask_count.set(masks.len());
            return switch();
        }
        let saved = masks.save(ruby, self.preemption.root_mask_count.get());
        let switched = switch();
        if let Some(saved) = saved {
            masks.restore(saved);
        }
        switched
    }
}
