//! Fibers whose sleep has ended while another fiber computes.
//!
//! Each of the woken fibers ahead of such a fiber may compute, too: when N CPU-bound fibers begin at once, it would
//! wait for N time slices. So each tick that finds a fiber computing, and each poll that is late by such a time, moves the
//! sleepers ahead of all others. But a fiber that sleeps and computes in alternation must not starve the others: after the
//! sleepers, a fiber of another class runs.

use std::collections::VecDeque;

use super::RunQueue;

/// See the module.
pub struct Sleepers<T> {
    /// Those that run ahead of all others.
    entries: VecDeque<T>,
    /// Those that are among the woken fibers, in the order of waking, and some that have run.
    ended: VecDeque<T>,
    /// The current fiber is one of `entries`.
    is_running: bool,
}

impl<T> Sleepers<T> {
    pub fn new() -> Self {
        Sleepers { entries: VecDeque::new(), ended: VecDeque::new(), is_running: false }
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing has to be noted when a fiber is dequeued.
    pub fn is_idle(&self) -> bool {
        self.entries.is_empty() && !self.is_running
    }

    /// How many are noted in case that they are preferred.
    #[cfg(test)]
    pub fn noted(&self) -> usize {
        self.ended.len()
    }

    /// Dequeues the first fiber for which `claim` returns a value.
    pub fn pop<R>(&mut self, claim: &mut impl FnMut(&T) -> Option<R>) -> Option<R> {
        let popped = std::iter::from_fn(|| self.entries.pop_front()).find_map(|entry| claim(&entry));
        self.is_running = popped.is_some();
        popped
    }
}

impl<T: Copy + PartialEq> RunQueue<T> {
    /// Enqueues a fiber whose sleep has ended behind all woken fibers.
    pub fn push_slept(&mut self, entry: T, is_void: impl Fn(&T) -> bool) {
        let ended = &mut self.sleepers.ended;
        while ended.front().is_some_and(&is_void) {
            ended.pop_front();
        }
        ended.push_back(entry);
        self.woken.push_back(entry);
    }

    /// Fibers have computed: woken fibers whose sleep has ended run next.
    pub fn prefer_sleepers(&mut self, is_void: impl Fn(&T) -> bool) {
        let Sleepers { entries, ended, is_running } = &mut self.sleepers;
        if *is_running {
            return;
        }
        ended.retain(|entry| !is_void(entry));
        if ended.is_empty() {
            return;
        }
        // Both have the same order, but for a fiber that was moved: that one runs at its turn.
        self.woken.retain(|entry| {
            let has_slept = ended.front() == Some(entry);
            if has_slept {
                entries.extend(ended.pop_front());
            }
            !has_slept
        });
        self.is_plain &= self.sleepers.is_idle();
    }
}
