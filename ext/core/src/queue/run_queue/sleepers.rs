//! Fibers whose sleep has ended while another fiber computes.
//!
//! Each of the woken fibers ahead of such a fiber may compute, too: when N CPU-bound fibers begin at once, it would
//! wait for N time slices. So each tick that finds a fiber computing moves the sleepers ahead of all others. But a
//! fiber that sleeps and computes in alternation must not starve the others: after the sleepers, a fiber of another class
//! runs.

use std::collections::VecDeque;

use super::RunQueue;

/// How many woken fibers a tick looks at.
const SEARCHED: usize = 1024;

/// See the module.
pub struct Sleepers<T> {
    entries: VecDeque<T>,
    /// The current fiber is one of them.
    is_running: bool,
}

impl<T> Sleepers<T> {
    pub fn new() -> Self {
        Sleepers { entries: VecDeque::new(), is_running: false }
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing has to be noted when a fiber is dequeued.
    pub fn is_idle(&self) -> bool {
        self.entries.is_empty() && !self.is_running
    }

    /// Dequeues the first fiber for which `claim` returns a value.
    pub fn pop<R>(&mut self, claim: &mut impl FnMut(&T) -> Option<R>) -> Option<R> {
        let popped = std::iter::from_fn(|| self.entries.pop_front()).find_map(|entry| claim(&entry));
        self.is_running = popped.is_some();
        popped
    }
}

impl<T> RunQueue<T> {
    /// A tick has found the current fiber computing: woken fibers whose sleep has ended run next.
    pub fn prefer_sleepers(&mut self, has_slept: impl Fn(&T) -> bool) {
        if self.sleepers.is_running {
            return;
        }
        let mut index = 0;
        while index < self.woken.len().min(SEARCHED) {
            if has_slept(&self.woken[index]) {
                self.sleepers.entries.extend(self.woken.remove(index));
            } else {
                index += 1;
            }
        }
        self.is_plain &= self.sleepers.is_idle();
    }
}
