//! The run queue: which fibers are runnable, and in which order they run.
//!
//! There are three classes in order of priority:
//!
//! 1. Woken: an event has woken the fiber, or the fiber has yielded. It usually has little to do, and other fibers or
//!    peers wait for its result.
//! 2. Fresh: the fiber was preempted before it has computed for a [`Policy::quantum`] since it was woken.
//! 3. Spent: the fiber has computed for longer.
//!
//! So the latency of I/O-bound fibers does not depend on the number of CPU-bound fibers, and a fiber that computes for
//! some milliseconds does not wait for fibers that compute for minutes. This is a multilevel feedback queue, as Unix
//! schedulers have had since CTSS.
//!
//! No class starves: once woken fibers have run ahead of preempted fibers for a quantum, a preempted fiber runs; and
//! once fresh fibers have run ahead of spent fibers for a quantum, that is a spent fiber.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How CPU-bound fibers share the CPU.
#[derive(Debug, Clone, Copy)]
pub struct Policy {
    /// How long a fiber may compute while preempted fibers are runnable.
    pub quantum: Duration,
    /// How often the ticker checks whether the current fiber should be preempted.
    pub tick: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Policy { quantum: Duration::from_millis(10), tick: Duration::from_millis(1) }
    }
}

/// The class of a preempted fiber.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Fresh,
    Spent,
}

/// The current fiber's time slice, and the part of its quantum that it has used in earlier ones.
#[derive(Debug, Clone, Copy)]
struct Slice {
    since: Instant,
    used: Duration,
    /// The class from which the fiber was dequeued, if it had been preempted.
    class: Option<Class>,
    /// The fiber was dequeued although woken fibers were in the queue. They do not preempt it before this time.
    protected_until: Option<Instant>,
}

impl Slice {
    /// The first slice of a quantum.
    fn start(now: Instant) -> Self {
        Slice { since: now, used: Duration::ZERO, class: None, protected_until: None }
    }

    fn used_at(&self, now: Instant) -> Duration {
        self.used + now.saturating_duration_since(self.since)
    }
}

struct Preempted<T> {
    entry: T,
    used: Duration,
}

/// A run queue. An entry may become void while it is queued; [`RunQueue::pop`] drops void entries.
pub struct RunQueue<T> {
    woken: VecDeque<T>,
    fresh: VecDeque<Preempted<T>>,
    spent: VecDeque<Preempted<T>>,
    /// The current fiber's slice. `None` until the first tick in it, which saves a read of the clock at each switch.
    slice: Option<Slice>,
    /// Since when woken fibers have run ahead of preempted fibers.
    preempted_waiting_since: Option<Instant>,
    /// Since when fresh fibers have run ahead of spent fibers.
    spent_waiting_since: Option<Instant>,
    policy: Policy,
}

impl<T> RunQueue<T> {
    /// An empty queue.
    pub fn new(policy: Policy) -> Self {
        let (woken, fresh, spent) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
        RunQueue { woken, fresh, spent, slice: None, preempted_waiting_since: None, spent_waiting_since: None, policy }
    }

    /// Changes the policy from now on.
    pub fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
    }

    /// The number of entries, including void ones.
    pub fn len(&self) -> usize {
        self.woken.len() + self.fresh.len() + self.spent.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether all entries, and at least one, are of preempted fibers.
    pub fn has_only_preempted(&self) -> bool {
        self.woken.is_empty() && self.has_preempted()
    }

    /// Whether there is an entry of a woken fiber.
    pub fn has_woken(&self) -> bool {
        !self.woken.is_empty()
    }

    /// The entry of a woken fiber at `index`, in the order of dequeuing.
    pub fn upcoming(&self, index: usize) -> Option<&T> {
        self.woken.get(index)
    }

    /// Whether there is an entry of a preempted fiber.
    pub fn has_preempted(&self) -> bool {
        !self.fresh.is_empty() || !self.spent.is_empty()
    }

    /// Enqueues a fiber behind all woken fibers.
    pub fn push_woken(&mut self, entry: T) {
        self.woken.push_back(entry);
    }

    /// Enqueues a fiber ahead of all woken fibers.
    pub fn push_next(&mut self, entry: T) {
        self.woken.push_front(entry);
    }

    /// Enqueues the current fiber, which is preempted. If it had been preempted before, it returns to the head of its
    /// class, unless its quantum is used up.
    pub fn push_preempted(&mut self, entry: T, now: Instant) {
        let slice = self.slice.take();
        let used = slice.map_or(Duration::ZERO, |slice| slice.used_at(now));
        if used >= self.policy.quantum {
            self.spent.push_back(Preempted { entry, used: Duration::ZERO });
            return;
        }
        let preempted = Preempted { entry, used };
        match slice.and_then(|slice| slice.class) {
            Some(class) => self.class_mut(class).push_front(preempted),
            None => self.fresh.push_back(preempted),
        }
    }

    /// Resets the slice, for a fiber that was started directly and not dequeued.
    pub fn reset_slice(&mut self) {
        self.slice = None;
    }

    /// Whether the current fiber, which computes, should be preempted in favour of a fiber in the queue.
    pub fn should_preempt(&mut self, now: Instant) -> bool {
        let slice = self.slice.get_or_insert_with(|| Slice::start(now));
        if !self.woken.is_empty() {
            return slice.protected_until.is_none_or(|end| now >= end);
        }
        let used_up = slice.used_at(now) >= self.policy.quantum;
        used_up && self.has_preempted()
    }

    /// When the quantum of the current fiber, which computes, is used up. The quantum starts over as long as no
    /// preempted fiber is runnable.
    pub fn slice_ends_at(&self, now: Instant) -> Instant {
        let used = match &self.slice {
            Some(slice) if self.has_preempted() => slice.used_at(now),
            _ => Duration::ZERO,
        };
        now + self.policy.quantum.saturating_sub(used)
    }

    /// Dequeues the next entry for which `claim` returns a value, and drops void entries, for which it returns none.
    /// Reads the clock only if there are preempted fibers.
    #[inline(always)]
    pub fn pop<R>(&mut self, mut claim: impl FnMut(&T) -> Option<R>) -> Option<R> {
        if self.has_preempted() { self.pop_by_class(Instant::now(), &mut claim) } else { self.pop_woken(&mut claim) }
    }

    #[inline(never)]
    fn pop_by_class<R>(&mut self, now: Instant, claim: &mut impl FnMut(&T) -> Option<R>) -> Option<R> {
        if (self.woken.is_empty() || self.is_preempted_overdue(now))
            && let Some(claimed) = self.pop_preempted(now, claim)
        {
            return Some(claimed);
        }
        // All of the chosen class's entries may have been void.
        self.pop_woken(claim).or_else(|| self.pop_preempted(now, claim))
    }

    /// Whether preempted fibers have waited for woken fibers for a quantum. Starts the count if it has not started.
    fn is_preempted_overdue(&mut self, now: Instant) -> bool {
        let since = *self.preempted_waiting_since.get_or_insert(now);
        now.saturating_duration_since(since) >= self.policy.quantum
    }

    fn pop_preempted<R>(&mut self, now: Instant, claim: &mut impl FnMut(&T) -> Option<R>) -> Option<R> {
        self.preempted_waiting_since = None;
        let spent_waited = self.spent_waiting_since.map(|since| now.saturating_duration_since(since));
        let order = match spent_waited {
            Some(waited) if waited >= self.policy.quantum => [Class::Spent, Class::Fresh],
            _ => [Class::Fresh, Class::Spent],
        };
        order.into_iter().find_map(|class| self.pop_of(class, now, claim))
    }

    #[inline]
    fn pop_woken<R>(&mut self, claim: &mut impl FnMut(&T) -> Option<R>) -> Option<R> {
        while let Some(entry) = self.woken.pop_front() {
            let claimed = claim(&entry);
            if claimed.is_some() {
                self.slice = None;
                return claimed;
            }
        }
        None
    }

    fn pop_of<R>(&mut self, class: Class, now: Instant, claim: &mut impl FnMut(&T) -> Option<R>) -> Option<R> {
        if class == Class::Spent {
            self.spent_waiting_since = None;
        }
        let entries = self.class_mut(class);
        let (claimed, used) = std::iter::from_fn(|| entries.pop_front())
            .find_map(|Preempted { entry, used }| claim(&entry).map(|claimed| (claimed, used)))?;
        if class == Class::Fresh && !self.spent.is_empty() {
            self.spent_waiting_since.get_or_insert(now);
        }
        let protected_until = (!self.woken.is_empty()).then(|| now + self.policy.tick);
        self.slice = Some(Slice { since: now, used, class: Some(class), protected_until });
        Some(claimed)
    }

    fn class_mut(&mut self, class: Class) -> &mut VecDeque<Preempted<T>> {
        match class {
            Class::Fresh => &mut self.fresh,
            Class::Spent => &mut self.spent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUANTUM: Duration = Duration::from_millis(10);
    const TICK: Duration = Duration::from_millis(1);

    fn queue() -> RunQueue<&'static str> {
        RunQueue::new(Policy { quantum: QUANTUM, tick: TICK })
    }

    fn pop(queue: &mut RunQueue<&'static str>) -> Option<&'static str> {
        queue.pop(|entry| Some(*entry))
    }

    fn pop_at(queue: &mut RunQueue<&'static str>, now: Instant) -> Option<&'static str> {
        queue.pop_by_class(now, &mut |entry| Some(*entry))
    }

    /// Preempts a fiber that has computed since `began`.
    fn preempt(queue: &mut RunQueue<&'static str>, entry: &'static str, began: Instant, now: Instant) {
        queue.slice = Some(Slice::start(began));
        queue.push_preempted(entry, now);
    }

    /// Whether a fiber that has computed since `began` should be preempted.
    fn should_preempt(queue: &mut RunQueue<&'static str>, began: Instant, now: Instant) -> bool {
        queue.slice = Some(Slice::start(began));
        queue.should_preempt(now)
    }

    #[test]
    fn woken_fibers_run_in_the_order_of_waking() {
        let mut queue = queue();
        queue.push_woken("first");
        queue.push_woken("second");
        assert_eq!((pop(&mut queue), pop(&mut queue), pop(&mut queue)), (Some("first"), Some("second"), None));
    }

    #[test]
    fn a_woken_fiber_runs_before_a_preempted_one() {
        let (mut queue, now) = (queue(), Instant::now());
        preempt(&mut queue, "preempted", now, now);
        queue.push_woken("woken");
        assert_eq!((pop(&mut queue), pop(&mut queue)), (Some("woken"), Some("preempted")));
    }

    #[test]
    fn a_fiber_preempted_within_its_quantum_returns_to_the_head_of_its_class() {
        let (mut queue, now) = (queue(), Instant::now());
        preempt(&mut queue, "first", now, now);
        preempt(&mut queue, "second", now, now);
        assert_eq!(pop(&mut queue), Some("first"));
        queue.push_preempted("first", Instant::now());
        assert_eq!(pop(&mut queue), Some("first"));
    }

    #[test]
    fn a_fiber_preempted_for_the_first_time_goes_to_the_end_of_the_fresh_class() {
        let (mut queue, now) = (queue(), Instant::now());
        preempt(&mut queue, "first", now, now);
        preempt(&mut queue, "second", now, now);
        assert_eq!((pop(&mut queue), pop(&mut queue)), (Some("first"), Some("second")));
    }

    #[test]
    fn a_fresh_fiber_runs_before_a_spent_one() {
        let (mut queue, now) = (queue(), Instant::now());
        preempt(&mut queue, "spent", now, now + QUANTUM);
        preempt(&mut queue, "fresh", now, now);
        assert_eq!((pop(&mut queue), pop(&mut queue)), (Some("fresh"), Some("spent")));
    }

    #[test]
    fn fresh_fibers_do_not_starve_spent_ones() {
        let (mut queue, now) = (queue(), Instant::now());
        preempt(&mut queue, "spent", now, now + QUANTUM);
        preempt(&mut queue, "fresh", now, now);
        preempt(&mut queue, "another", now, now);
        assert_eq!(pop_at(&mut queue, now), Some("fresh"));
        assert_eq!(pop_at(&mut queue, now + QUANTUM), Some("spent"));
        assert_eq!(pop_at(&mut queue, now + QUANTUM), Some("another"));
    }

    #[test]
    fn a_woken_fiber_runs_before_an_overdue_spent_one() {
        let (mut queue, now) = (queue(), Instant::now());
        preempt(&mut queue, "spent", now, now + QUANTUM);
        queue.spent_waiting_since = Some(now);
        queue.push_woken("woken");
        assert_eq!(pop_at(&mut queue, now + QUANTUM), Some("woken"));
    }

    #[test]
    fn an_overdue_spent_fiber_has_a_whole_quantum_if_no_fiber_is_woken() {
        let (mut queue, now) = (queue(), Instant::now());
        preempt(&mut queue, "spent", now, now + QUANTUM);
        preempt(&mut queue, "fresh", now, now);
        queue.spent_waiting_since = Some(now);
        assert_eq!(pop_at(&mut queue, now + QUANTUM), Some("spent"));
        assert!(!queue.should_preempt(now + QUANTUM + QUANTUM / 2));
        assert!(queue.should_preempt(now + QUANTUM + QUANTUM));
    }

    #[test]
    fn a_slice_ends_with_its_quantum_if_another_fiber_was_preempted() {
        let (mut queue, now) = (queue(), Instant::now());
        preempt(&mut queue, "other", now, now + QUANTUM);
        queue.slice = Some(Slice::start(now));
        assert_eq!(queue.slice_ends_at(now + QUANTUM / 4), now + QUANTUM);
    }

    #[test]
    fn the_quantum_of_the_only_cpu_bound_fiber_starts_over() {
        let (mut queue, now) = (queue(), Instant::now());
        queue.slice = Some(Slice::start(now));
        assert_eq!(queue.slice_ends_at(now + QUANTUM / 4), now + QUANTUM / 4 + QUANTUM);
    }

    #[test]
    fn a_fiber_that_has_used_its_quantum_goes_to_the_end() {
        let (mut queue, now) = (queue(), Instant::now());
        preempt(&mut queue, "other", now, now + QUANTUM);
        preempt(&mut queue, "done", now, now + QUANTUM);
        assert_eq!((pop(&mut queue), pop(&mut queue)), (Some("other"), Some("done")));
    }

    #[test]
    fn the_slices_of_a_quantum_add_up() {
        let (mut queue, now) = (queue(), Instant::now());
        preempt(&mut queue, "one", now, now + QUANTUM * 3 / 4);
        preempt(&mut queue, "other", now, now + QUANTUM);
        assert_eq!(pop(&mut queue), Some("one"));
        assert!(queue.should_preempt(Instant::now() + QUANTUM / 2));
    }

    #[test]
    fn a_woken_fiber_preempts_the_current_one_immediately() {
        let (mut queue, now) = (queue(), Instant::now());
        assert!(!should_preempt(&mut queue, now, now));
        queue.push_woken("woken");
        assert!(should_preempt(&mut queue, now, now));
    }

    #[test]
    fn a_preempted_fiber_preempts_the_current_one_after_its_quantum() {
        let (mut queue, now) = (queue(), Instant::now());
        preempt(&mut queue, "other", now, now);
        assert!(!should_preempt(&mut queue, now, now + QUANTUM - TICK));
        assert!(should_preempt(&mut queue, now, now + QUANTUM));
    }

    #[test]
    fn the_only_cpu_bound_fiber_is_not_preempted() {
        let now = Instant::now();
        assert!(!should_preempt(&mut queue(), now, now + QUANTUM * 100));
    }

    #[test]
    fn a_steady_stream_of_woken_fibers_does_not_starve_a_preempted_one() {
        let (mut queue, now) = (queue(), Instant::now());
        preempt(&mut queue, "preempted", now, now);
        queue.push_woken("woken");
        queue.push_woken("woken");
        let later = now + QUANTUM;
        assert_eq!(pop_at(&mut queue, now), Some("woken"));
        assert_eq!(pop_at(&mut queue, later), Some("preempted"));
        assert!(!queue.should_preempt(later));
        assert!(queue.should_preempt(later + TICK));
    }

    #[test]
    fn void_entries_are_dropped() {
        let (mut queue, now) = (queue(), Instant::now());
        preempt(&mut queue, "void", now, now + QUANTUM);
        preempt(&mut queue, "valid", now, now + QUANTUM);
        queue.push_woken("void");
        assert_eq!(queue.pop(|entry| (*entry == "valid").then_some(*entry)), Some("valid"));
        assert!(queue.is_empty());
    }
}
