//! Schedules that a test chooses.

use std::time::Instant;

use super::RunQueue;
use crate::queue::exploration::Exploration;

/// In an explored schedule, after how many starts a starter goes to the end of the queue. A clock decides otherwise.
const EXPLORED_STARTS: u32 = 16;

/// A test chooses which entry is next.
pub struct Explored<T> {
    exploration: Exploration,
    /// The number of the fiber that an entry names.
    number: fn(&T) -> u64,
    starts: u32,
}

impl<T> Explored<T> {
    /// Accounts for the start of a fiber. True if its starter continues ahead of the queue.
    pub fn start_fiber(&mut self) -> bool {
        self.starts = (self.starts + 1) % EXPLORED_STARTS;
        self.starts != 0
    }
}

impl<T> RunQueue<T> {
    /// From now on `exploration` chooses which fiber is next, and where fibers are preempted. `number` returns the
    /// number of the fiber that an entry names. There is one class of fibers then, and no quantum.
    ///
    /// The queue is empty: if fibers had run before, ticks had decided which of them wait and which are runnable.
    pub fn explore(&mut self, exploration: Exploration, number: fn(&T) -> u64) {
        debug_assert!(self.is_empty(), "no fiber has run");
        self.explored = Some(Box::new(Explored { exploration, number, starts: 0 }));
        self.note_kinds();
    }

    /// What chooses the schedule, if a test does.
    pub fn exploration(&self) -> Option<&Exploration> {
        self.explored.as_deref().map(|explored| &explored.exploration)
    }

    /// What chooses the schedule, if a test does.
    pub fn exploration_mut(&mut self) -> Option<&mut Exploration> {
        self.explored.as_deref_mut().map(|explored| &mut explored.exploration)
    }

    /// Whether the test that chooses the schedule has the fiber with the number `running` preempted, which passes a
    /// point where it may be. The fiber then has to be enqueued. `yields` says whether it asks for that.
    pub fn is_preempted_at_point(&mut self, running: u64, yields: bool) -> bool {
        let Some(Explored { exploration, number, .. }) = self.explored.as_deref_mut() else { return false };
        exploration.is_preempted(running, yields, self.woken.iter().map(*number))
    }

    /// In an explored schedule, drops void entries, so that none is a choice. Otherwise they are dropped when they are
    /// dequeued.
    #[inline(always)]
    pub fn drop_void(&mut self, is_void: impl Fn(&T) -> bool) {
        if self.explored.is_some() {
            self.drop_woken(is_void);
        }
    }

    #[inline(never)]
    fn drop_woken(&mut self, is_dropped: impl Fn(&T) -> bool) {
        let mut index = 0;
        while let Some(entry) = self.woken.get(index) {
            if is_dropped(entry) {
                self.woken.remove(index);
                if let Some(timing) = &mut self.timing {
                    timing.removed(index);
                }
            } else {
                index += 1;
            }
        }
    }

    pub(super) fn pop_chosen<R>(&mut self, now: Instant, claim: &mut impl FnMut(&T) -> Option<R>) -> Option<R> {
        let Explored { exploration, number, .. } = self.explored.as_deref_mut()?;
        if !self.woken.is_empty() {
            let index = exploration.next_index(self.woken.iter().map(*number));
            let chosen = self.woken.remove(index);
            chosen.into_iter().for_each(|chosen| self.woken.push_front(chosen));
        }
        self.pop_woken(now, claim)
    }
}
