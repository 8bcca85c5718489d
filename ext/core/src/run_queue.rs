//! Who has a turn to come, and in which order.
//!
//! There are two classes. Who was woken by an event, or gave up its turn by itself, goes first: it has usually little to
//! do, and somebody waits for it. Who was preempted goes when nobody of the first class is there. So the lateness of
//! those that wait does not depend on how many compute. The idea is that of multilevel feedback queues, as Unix
//! schedulers have had them since CTSS.
//!
//! The second class has a bound: whoever is in it waits at most for one [`Policy::quantum`] of the first class's work.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How the CPU is shared among those that compute.
#[derive(Debug, Clone, Copy)]
pub struct Policy {
    /// How long one may compute while others who were preempted want to.
    pub quantum: Duration,
    /// How often it is looked at whether somebody is due.
    pub tick: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Policy { quantum: Duration::from_millis(10), tick: Duration::from_millis(1) }
    }
}

/// The part of a quantum that one has had, and the time from which it goes on.
#[derive(Debug, Clone, Copy)]
struct Slice {
    since: Instant,
    used: Duration,
    /// It got its turn although others went before it; they leave it alone until then.
    protected_until: Option<Instant>,
}

impl Slice {
    /// The first part of a quantum begins.
    fn begin(now: Instant) -> Self {
        Slice { since: now, used: Duration::ZERO, protected_until: None }
    }

    fn used_at(&self, now: Instant) -> Duration {
        self.used + now.saturating_duration_since(self.since)
    }
}

struct Preempted<T> {
    entry: T,
    used: Duration,
}

/// A run queue. An entry may have become void while it was queued: [`RunQueue::pop`] asks for each.
pub struct RunQueue<T> {
    woken: VecDeque<T>,
    preempted: VecDeque<Preempted<T>>,
    /// Of who has the turn. Known from the first tick on that finds it computing.
    slice: Option<Slice>,
    /// Since when the first class has had the CPU while somebody of the second wanted it.
    overtaking_since: Option<Instant>,
    policy: Policy,
}

impl<T> RunQueue<T> {
    /// An empty one.
    pub fn new(policy: Policy) -> Self {
        RunQueue { woken: VecDeque::new(), preempted: VecDeque::new(), slice: None, overtaking_since: None, policy }
    }

    /// Changes the policy from now on.
    pub fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
    }

    /// How many entries there are, void ones included.
    pub fn len(&self) -> usize {
        self.woken.len() + self.preempted.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether nobody goes before those that were preempted.
    pub fn has_only_preempted(&self) -> bool {
        self.woken.is_empty() && !self.preempted.is_empty()
    }

    /// Whether anybody waits who was woken.
    pub fn has_woken(&self) -> bool {
        !self.woken.is_empty()
    }

    /// The entry that goes after `index` others, of those who were woken.
    pub fn upcoming(&self, index: usize) -> Option<&T> {
        self.woken.get(index)
    }

    /// Whether anybody who was preempted waits.
    pub fn has_preempted(&self) -> bool {
        !self.preempted.is_empty()
    }

    /// At the end of those that were woken.
    pub fn push_woken(&mut self, entry: T) {
        self.woken.push_back(entry);
    }

    /// Before all that were woken.
    pub fn push_next(&mut self, entry: T) {
        self.woken.push_front(entry);
    }

    /// Who had the turn was preempted. It keeps its place, unless its quantum is used up.
    pub fn push_preempted(&mut self, entry: T, now: Instant) {
        let used = self.slice.take().map_or(Duration::ZERO, |slice| slice.used_at(now));
        if used < self.policy.quantum {
            self.preempted.push_front(Preempted { entry, used });
        } else {
            self.preempted.push_back(Preempted { entry, used: Duration::ZERO });
        }
    }

    /// Somebody has the turn who was not in the queue.
    pub fn begin_turn(&mut self) {
        self.slice = None;
    }

    /// Whether who has the turn, and computes, has to make way for somebody in the queue.
    pub fn must_make_way(&mut self, now: Instant) -> bool {
        let slice = self.slice.get_or_insert_with(|| Slice::begin(now));
        if !self.woken.is_empty() {
            return slice.protected_until.is_none_or(|end| now >= end);
        }
        !self.preempted.is_empty() && slice.used_at(now) >= self.policy.quantum
    }

    /// When the quantum of who has the turn, and computes, is used up. It begins anew as long as nobody was preempted who
    /// wants the CPU.
    pub fn turn_ends_at(&self, now: Instant) -> Instant {
        let used = match &self.slice {
            Some(slice) if !self.preempted.is_empty() => slice.used_at(now),
            _ => Duration::ZERO,
        };
        now + self.policy.quantum.saturating_sub(used)
    }

    /// The next entry that is `valid`, which has the turn from now on. Looks at the clock only if anybody was preempted.
    #[inline]
    pub fn pop(&mut self, mut valid: impl FnMut(&T) -> bool) -> Option<T> {
        if self.has_preempted() {
            let now = Instant::now();
            if self.woken.is_empty() || self.is_overdue(now) {
                let popped = self.pop_preempted(now, &mut valid);
                if popped.is_some() {
                    return popped;
                }
            }
        }
        while let Some(entry) = self.woken.pop_front() {
            if valid(&entry) {
                self.slice = None;
                return Some(entry);
            }
        }
        if self.has_preempted() {
            // Only void entries were before it.
            return self.pop_preempted(Instant::now(), &mut valid);
        }
        None
    }

    /// Whether the first class has had its share. Begins to count if it has not been counted yet.
    fn is_overdue(&mut self, now: Instant) -> bool {
        let since = *self.overtaking_since.get_or_insert(now);
        now.saturating_duration_since(since) >= self.policy.quantum
    }

    fn pop_preempted(&mut self, now: Instant, valid: &mut impl FnMut(&T) -> bool) -> Option<T> {
        self.overtaking_since = None;
        while let Some(Preempted { entry, used }) = self.preempted.pop_front() {
            if valid(&entry) {
                let protected_until = (!self.woken.is_empty()).then(|| now + self.policy.tick);
                self.slice = Some(Slice { since: now, used, protected_until });
                return Some(entry);
            }
        }
        None
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
        queue.pop(|_| true)
    }

    /// One that has computed since `began` is preempted.
    fn preempt(queue: &mut RunQueue<&'static str>, entry: &'static str, began: Instant, now: Instant) {
        queue.slice = Some(Slice::begin(began));
        queue.push_preempted(entry, now);
    }

    /// Whether one that has computed since `began` has to make way.
    fn must_make_way(queue: &mut RunQueue<&'static str>, began: Instant, now: Instant) -> bool {
        queue.slice = Some(Slice::begin(began));
        queue.must_make_way(now)
    }

    #[test]
    fn who_was_woken_goes_in_the_order_of_waking() {
        let mut queue = queue();
        queue.push_woken("first");
        queue.push_woken("second");
        assert_eq!((pop(&mut queue), pop(&mut queue), pop(&mut queue)), (Some("first"), Some("second"), None));
    }

    #[test]
    fn who_was_woken_goes_before_who_was_preempted() {
        let (mut queue, now) = (queue(), Instant::now());
        preempt(&mut queue, "preempted", now, now);
        queue.push_woken("woken");
        assert_eq!((pop(&mut queue), pop(&mut queue)), (Some("woken"), Some("preempted")));
    }

    #[test]
    fn who_was_interrupted_within_its_quantum_keeps_its_place() {
        let (mut queue, now) = (queue(), Instant::now());
        preempt(&mut queue, "other", now, now + QUANTUM);
        preempt(&mut queue, "interrupted", now, now + QUANTUM / 2);
        assert_eq!(pop(&mut queue), Some("interrupted"));
    }

    #[test]
    fn the_turn_of_who_computes_ends_with_its_quantum_if_another_was_preempted() {
        let (mut queue, now) = (queue(), Instant::now());
        preempt(&mut queue, "other", now, now + QUANTUM);
        queue.slice = Some(Slice::begin(now));
        assert_eq!(queue.turn_ends_at(now + QUANTUM / 4), now + QUANTUM);
    }

    #[test]
    fn the_turn_of_who_computes_alone_begins_anew_all_the_time() {
        let (mut queue, now) = (queue(), Instant::now());
        queue.slice = Some(Slice::begin(now));
        assert_eq!(queue.turn_ends_at(now + QUANTUM / 4), now + QUANTUM / 4 + QUANTUM);
    }

    #[test]
    fn who_has_used_its_quantum_goes_behind_the_others() {
        let (mut queue, now) = (queue(), Instant::now());
        preempt(&mut queue, "other", now, now + QUANTUM);
        preempt(&mut queue, "done", now, now + QUANTUM);
        assert_eq!((pop(&mut queue), pop(&mut queue)), (Some("other"), Some("done")));
    }

    #[test]
    fn the_parts_of_a_quantum_add_up() {
        let (mut queue, now) = (queue(), Instant::now());
        preempt(&mut queue, "one", now, now + QUANTUM * 3 / 4);
        preempt(&mut queue, "other", now, now + QUANTUM);
        assert_eq!(pop(&mut queue), Some("one"));
        assert!(queue.must_make_way(Instant::now() + QUANTUM / 2));
    }

    #[test]
    fn whoever_computes_makes_way_at_once_for_who_was_woken() {
        let (mut queue, now) = (queue(), Instant::now());
        assert!(!must_make_way(&mut queue, now, now));
        queue.push_woken("woken");
        assert!(must_make_way(&mut queue, now, now));
    }

    #[test]
    fn whoever_computes_makes_way_for_another_that_does_when_its_quantum_is_over() {
        let (mut queue, now) = (queue(), Instant::now());
        preempt(&mut queue, "other", now, now);
        assert!(!must_make_way(&mut queue, now, now + QUANTUM - TICK));
        assert!(must_make_way(&mut queue, now, now + QUANTUM));
    }

    #[test]
    fn whoever_computes_alone_goes_on() {
        let now = Instant::now();
        assert!(!must_make_way(&mut queue(), now, now + QUANTUM * 100));
    }

    #[test]
    fn those_that_were_woken_without_end_do_not_starve_who_was_preempted() {
        let (mut queue, now) = (queue(), Instant::now());
        preempt(&mut queue, "preempted", now, now);
        queue.push_woken("woken");
        assert_eq!(pop(&mut queue), Some("woken"));
        queue.overtaking_since = Some(now.checked_sub(QUANTUM).unwrap());
        queue.push_woken("woken");
        assert_eq!(pop(&mut queue), Some("preempted"));
        assert!(!queue.must_make_way(Instant::now()));
        assert!(queue.must_make_way(Instant::now() + TICK));
    }

    #[test]
    fn void_entries_are_left_out() {
        let (mut queue, now) = (queue(), Instant::now());
        preempt(&mut queue, "void", now, now + QUANTUM);
        preempt(&mut queue, "valid", now, now + QUANTUM);
        queue.push_woken("void");
        assert_eq!(queue.pop(|entry| *entry == "valid"), Some("valid"));
        assert!(queue.is_empty());
    }
}
