//! Timers: values that expire at deadlines.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

use slab::Slab;

/// Below this length removing the entries of cancelled timers is not worth its cost.
const HEAP_SLACK: usize = 64;

/// Names one timer of one [`Timers`]. The key of a timer that is gone has no effect, even if its slot is used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TimerKey {
    slot: usize,
    /// The timer's number in order of insertion, which serves as the generation of `slot`.
    sequence: u64,
}

/// Values that expire at their deadlines, the earliest first.
///
/// Most timers are cancelled before they expire. So `cancel` only frees the timer's slot, and its heap entry is removed
/// later. Entries of cancelled timers never stay in the majority.
#[derive(Debug)]
pub struct Timers<T> {
    /// Deadline, order of insertion, slot. May name timers that are gone.
    heap: BinaryHeap<Reverse<(Instant, u64, usize)>>,
    slots: Slab<Timer<T>>,
    next_sequence: u64,
}

#[derive(Debug)]
struct Timer<T> {
    sequence: u64,
    value: T,
}

impl<T> Default for Timers<T> {
    fn default() -> Self {
        Timers { heap: BinaryHeap::new(), slots: Slab::new(), next_sequence: 0 }
    }
}

impl<T> Timers<T> {
    /// No timers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a timer that expires at `deadline`.
    pub fn insert(&mut self, deadline: Instant, value: T) -> TimerKey {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        let slot = self.slots.insert(Timer { sequence, value });
        self.heap.push(Reverse((deadline, sequence, slot)));
        TimerKey { slot, sequence }
    }

    /// Removes a timer and returns its value. None if it has expired, or was cancelled or cleared.
    pub fn cancel(&mut self, key: TimerKey) -> Option<T> {
        let value = self.take(key.slot, key.sequence)?;
        self.remove_cancelled();
        Some(value)
    }

    /// Whether the timer has neither expired nor been cancelled or cleared.
    pub fn is_pending(&self, key: TimerKey) -> bool {
        is_live(&self.slots, key.slot, key.sequence)
    }

    /// When the next timer expires.
    pub fn next_deadline(&mut self) -> Option<Instant> {
        while let Some(&Reverse((deadline, sequence, slot))) = self.heap.peek() {
            if is_live(&self.slots, slot, sequence) {
                return Some(deadline);
            }
            self.heap.pop();
        }
        None
    }

    /// Removes one timer whose deadline is not after `now`: the earliest, and among equal deadlines the first inserted.
    pub fn pop_expired(&mut self, now: Instant) -> Option<T> {
        while let Some(&Reverse((deadline, sequence, slot))) = self.heap.peek() {
            if deadline > now {
                return None;
            }
            self.heap.pop();
            if let Some(value) = self.take(slot, sequence) {
                return Some(value);
            }
        }
        None
    }

    /// The deadlines that are not after `now`, in no particular order.
    pub fn expired(&self, now: Instant) -> impl Iterator<Item = Instant> {
        self.deadlines().map(|(deadline, _)| deadline).filter(move |deadline| *deadline <= now)
    }

    /// How many timers there are.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Every value, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().map(|(_, timer)| &timer.value)
    }

    /// Every timer's deadline and value, in no particular order.
    pub fn deadlines(&self) -> impl Iterator<Item = (Instant, &T)> {
        self.heap.iter().filter_map(|Reverse((deadline, sequence, slot))| {
            let timer = self.slots.get(*slot).filter(|timer| timer.sequence == *sequence)?;
            Some((*deadline, &timer.value))
        })
    }

    /// Keeps only the timers whose values satisfy `keep`.
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.slots.retain(|_, timer| keep(&timer.value));
        self.remove_cancelled();
    }

    /// Drops all timers. Their keys stay without effect.
    pub fn clear(&mut self) {
        self.heap.clear();
        self.slots.clear();
    }

    fn take(&mut self, slot: usize, sequence: u64) -> Option<T> {
        is_live(&self.slots, slot, sequence).then(|| self.slots.remove(slot).value)
    }

    /// Removes the heap entries of cancelled timers once they are the majority, so the cost is amortized over the
    /// cancels.
    fn remove_cancelled(&mut self) {
        if self.heap.len() > 2 * self.slots.len() + HEAP_SLACK {
            let slots = &self.slots;
            self.heap.retain(|&Reverse((_, sequence, slot))| is_live(slots, slot, sequence));
        }
    }
}

fn is_live<T>(slots: &Slab<Timer<T>>, slot: usize, sequence: u64) -> bool {
    slots.get(slot).is_some_and(|timer| timer.sequence == sequence)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    fn seconds(start: Instant, count: u64) -> Instant {
        start + Duration::from_secs(count)
    }

    #[test]
    fn timers_expire_in_order_of_deadline() {
        let start = Instant::now();
        let mut timers = Timers::new();
        for second in [3, 1, 2] {
            timers.insert(seconds(start, second), second);
        }
        let expired: Vec<u64> = std::iter::from_fn(|| timers.pop_expired(seconds(start, 2))).collect();
        assert_eq!(expired, [1, 2]);
        assert_eq!(timers.next_deadline(), Some(seconds(start, 3)));
        assert_eq!(timers.iter().collect::<Vec<_>>(), [&3]);
        assert_eq!(timers.deadlines().collect::<Vec<_>>(), [(seconds(start, 3), &3)]);
    }

    #[test]
    fn timers_of_one_deadline_expire_in_order_of_insertion() {
        let now = Instant::now();
        let mut timers = Timers::new();
        let first = timers.insert(now, 0);
        for value in 1..100 {
            timers.insert(now, value);
        }
        // The freed slot is used again: order must not come from slots.
        timers.cancel(first);
        timers.insert(now, 100);
        let expired: Vec<i32> = std::iter::from_fn(|| timers.pop_expired(now)).collect();
        assert_eq!(expired, (1..=100).collect::<Vec<_>>());
    }

    #[test]
    fn a_stale_key_does_not_cancel_a_newer_timer() {
        let now = Instant::now();
        let mut timers = Timers::new();
        let cancelled = timers.insert(now, "cancelled");
        assert_eq!(timers.cancel(cancelled), Some("cancelled"));
        let expired = timers.insert(now, "expired");
        assert_eq!(timers.pop_expired(now), Some("expired"));
        let cleared = timers.insert(now, "cleared");
        timers.clear();
        let newer = timers.insert(now, "newer");
        assert_eq!(newer.slot, cancelled.slot);
        for stale in [cancelled, expired, cleared] {
            assert_eq!(timers.cancel(stale), None);
        }
        assert_eq!(timers.cancel(newer), Some("newer"));
    }

    #[test]
    fn a_million_cancelled_timers_leave_the_heap_small() {
        let start = Instant::now();
        let mut timers = Timers::new();
        let kept: Vec<_> = (0..10).map(|value| timers.insert(seconds(start, 1), value)).collect();
        for value in 0..1_000_000 {
            // Later than the timers that stay, so `next_deadline` removes none of them.
            let key = timers.insert(seconds(start, 60), value);
            timers.cancel(key);
            assert!(timers.heap.len() <= 2 * kept.len() + HEAP_SLACK + 1);
        }
        assert!(timers.slots.capacity() < 100);
        assert_eq!(timers.len(), kept.len());
    }

    #[test]
    fn a_hundred_thousand_timers_come_and_go() {
        let start = Instant::now();
        let mut timers = Timers::new();
        let count = if cfg!(miri) { 100 } else { 100_000 };
        for value in 0..count {
            timers.insert(start + Duration::from_nanos(value * 7919 % count), value);
        }
        assert_eq!(timers.len() as u64, count);
        let mut expired = 0;
        while timers.pop_expired(seconds(start, 1)).is_some() {
            expired += 1;
        }
        assert_eq!(expired, count);
        assert_eq!(timers.next_deadline(), None);
    }

    #[derive(Debug, Clone)]
    enum Step {
        Insert(u64),
        /// The index of any key so far, including stale ones.
        Cancel(prop::sample::Index),
        Advance(u64),
        Clear,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            8 => (0u64..50).prop_map(Step::Insert),
            6 => any::<prop::sample::Index>().prop_map(Step::Cancel),
            2 => (0u64..20).prop_map(Step::Advance),
            1 => Just(Step::Clear),
        ]
    }

    proptest! {
        #[test]
        fn timers_behave_like_a_sorted_list(steps in prop::collection::vec(step(), 1..400)) {
            let start = Instant::now();
            let mut now = 0;
            let mut timers = Timers::new();
            let mut keys = Vec::new();
            // (deadline, number): a number is both the value and the order of insertion.
            let mut model: Vec<(u64, usize)> = Vec::new();
            for step in steps {
                match step {
                    Step::Insert(delay) => {
                        model.push((now + delay, keys.len()));
                        keys.push(timers.insert(seconds(start, now + delay), keys.len()));
                    }
                    Step::Cancel(index) if !keys.is_empty() => {
                        let number = index.index(keys.len());
                        let expected = model.iter().position(|&(_, n)| n == number).map(|at| model.remove(at).1);
                        prop_assert_eq!(timers.cancel(keys[number]), expected);
                    }
                    Step::Cancel(_) => {}
                    Step::Advance(by) => {
                        now += by;
                        model.sort();
                        while model.first().is_some_and(|&(deadline, _)| deadline <= now) {
                            prop_assert_eq!(timers.pop_expired(seconds(start, now)), Some(model.remove(0).1));
                        }
                        prop_assert_eq!(timers.pop_expired(seconds(start, now)), None);
                    }
                    Step::Clear => {
                        timers.clear();
                        model.clear();
                    }
                }
                let next = model.iter().map(|&(deadline, _)| seconds(start, deadline)).min();
                prop_assert_eq!(timers.next_deadline(), next);
                prop_assert_eq!(timers.len(), model.len());
                prop_assert_eq!(timers.is_empty(), model.is_empty());
                let mut values: Vec<usize> = timers.iter().copied().collect();
                values.sort_unstable();
                let mut expected: Vec<usize> = model.iter().map(|&(_, number)| number).collect();
                expected.sort_unstable();
                prop_assert_eq!(values, expected);
            }
        }
    }
}
