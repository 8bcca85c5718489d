//! Who has a turn to come, and in which order.
//!
//! There are three classes, and whoever is in one goes before those of the next:
//!
//! 1. Woken: an event has come for it, or it gave up its turn by itself. It has usually little to do, and somebody waits
//!    for it.
//! 2. Fresh: it was preempted before it has computed for a [`Policy::quantum`] since it was woken.
//! 3. Spent: it has computed for longer.
//!
//! So the lateness of those that wait does not depend on how many compute, and who has some milliseconds to compute does
//! not wait for all that have minutes. The idea is that of multilevel feedback queues, as Unix schedulers have had them
//! since CTSS.
//!
//! Nobody is passed over for ever: when those that were woken have gone before the others for a quantum, one of these has
//! a turn; and when fresh ones have gone before the spent for a quantum, that is one of the spent.

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

/// The class of one that was preempted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Fresh,
    Spent,
}

/// The part of a quantum that one has had, and the time from which it goes on.
#[derive(Debug, Clone, Copy)]
struct Slice {
    since: Instant,
    used: Duration,
    /// The class that it was taken from, if it had been preempted.
    class: Option<Class>,
    /// It got its turn although others were woken; they leave it alone until then.
    protected_until: Option<Instant>,
}

impl Slice {
    /// The first part of a quantum begins.
    fn begin(now: Instant) -> Self {
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

/// A run queue. An entry may have become void while it was queued: [`RunQueue::pop`] finds out.
pub struct RunQueue<T> {
    woken: VecDeque<T>,
    fresh: VecDeque<Preempted<T>>,
    spent: VecDeque<Preempted<T>>,
    /// Of who has the turn. Known from the first tick on that finds it computing.
    slice: Option<Slice>,
    /// Since when the first class has had the CPU while somebody of the others wanted it.
    overtaking_since: Option<Instant>,
    /// Since when fresh ones have gone before all that are spent.
    passed_over_since: Option<Instant>,
    policy: Policy,
}

impl<T> RunQueue<T> {
    /// An empty one.
    pub fn new(policy: Policy) -> Self {
        let (woken, fresh, spent) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
        RunQueue { woken, fresh, spent, slice: None, overtaking_since: None, passed_over_since: None, policy }
    }

    /// Changes the policy from now on.
    pub fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
    }

    /// How many entries there are, void ones included.
    pub fn len(&self) -> usize {
        self.woken.len() + self.fresh.len() + self.spent.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether nobody goes before those that were preempted.
    pub fn has_only_preempted(&self) -> bool {
        self.woken.is_empty() && self.has_preempted()
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
        !self.fresh.is_empty() || !self.spent.is_empty()
    }

    /// At the end of those that were woken.
    pub fn push_woken(&mut self, entry: T) {
        self.woken.push_back(entry);
    }

    /// Before all that were woken.
    pub fn push_next(&mut self, entry: T) {
        self.woken.push_front(entry);
    }

    /// Who had the turn was preempted. Who had been before keeps its place, unless its quantum is used up.
    pub fn push_preempted(&mut self, entry: T, now: Instant) {
        let slice = self.slice.take();
        let used = slice.map_or(Duration::ZERO, |slice| slice.used_at(now));
        if used >= self.policy.quantum {
            self.spent.push_back(Preempted { entry, used: Duration::ZERO });
            return;
        }
        let preempted = Preempted { entry, used };
        match slice.and_then(|slice| slice.class) {
            Some(class) => self.line_mut(class).push_front(preempted),
            None => self.fresh.push_back(preempted),
        }
    }

    /// Somebody has the turn who was not in the queue.
    pub fn begin_slice(&mut self) {
        self.slice = None;
    }

    /// Whether who has the turn, and computes, has to make way for somebody in the queue.
    pub fn should_preempt(&mut self, now: Instant) -> bool {
        let slice = self.slice.get_or_insert_with(|| Slice::begin(now));
        if !self.woken.is_empty() {
            return slice.protected_until.is_none_or(|end| now >= end);
        }
        let used_up = slice.used_at(now) >= self.policy.quantum;
        used_up && self.has_preempted()
    }

    /// When the quantum of who has the turn, and computes, is used up. It begins anew as long as nobody was preempted who
    /// wants the CPU.
    pub fn slice_ends_at(&self, now: Instant) -> Instant {
        let used = match &self.slice {
            Some(slice) if self.has_preempted() => slice.used_at(now),
            _ => Duration::ZERO,
        };
        now + self.policy.quantum.saturating_sub(used)
    }

    /// What `redeem` makes of the next entry that is not void, which has the turn from now on. Looks at the clock only if
    /// anybody was preempted.
    #[inline(always)]
    pub fn pop<R>(&mut self, mut redeem: impl FnMut(&T) -> Option<R>) -> Option<R> {
        if self.has_preempted() { self.pop_by_class(Instant::now(), &mut redeem) } else { self.pop_woken(&mut redeem) }
    }

    #[inline(never)]
    fn pop_by_class<R>(&mut self, now: Instant, redeem: &mut impl FnMut(&T) -> Option<R>) -> Option<R> {
        if (self.woken.is_empty() || self.is_overdue(now))
            && let Some(redeemed) = self.pop_preempted(now, redeem)
        {
            return Some(redeemed);
        }
        // There may be void entries only.
        self.pop_woken(redeem).or_else(|| self.pop_preempted(now, redeem))
    }

    /// Whether those that were woken have had their share. Begins to count if it has not been counted yet.
    fn is_overdue(&mut self, now: Instant) -> bool {
        let since = *self.overtaking_since.get_or_insert(now);
        now.saturating_duration_since(since) >= self.policy.quantum
    }

    fn pop_preempted<R>(&mut self, now: Instant, redeem: &mut impl FnMut(&T) -> Option<R>) -> Option<R> {
        self.overtaking_since = None;
        let passed_over = self.passed_over_since.map(|since| now.saturating_duration_since(since));
        let order = match passed_over {
            Some(time) if time >= self.policy.quantum => [Class::Spent, Class::Fresh],
            _ => [Class::Fresh, Class::Spent],
        };
        order.into_iter().find_map(|class| self.pop_of(class, now, redeem))
    }

    #[inline]
    fn pop_woken<R>(&mut self, redeem: &mut impl FnMut(&T) -> Option<R>) -> Option<R> {
        while let Some(entry) = self.woken.pop_front() {
            let redeemed = redeem(&entry);
            if redeemed.is_some() {
                self.slice = None;
                return redeemed;
            }
        }
        None
    }

    fn pop_of<R>(&mut self, class: Class, now: Instant, redeem: &mut impl FnMut(&T) -> Option<R>) -> Option<R> {
        if class == Class::Spent {
            self.passed_over_since = None;
        }
        let line = self.line_mut(class);
        let (redeemed, used) = std::iter::from_fn(|| line.pop_front())
            .find_map(|Preempted { entry, used }| redeem(&entry).map(|redeemed| (redeemed, used)))?;
        if class == Class::Fresh && !self.spent.is_empty() {
            self.passed_over_since.get_or_insert(now);
        }
        let protected_until = (!self.woken.is_empty()).then(|| now + self.policy.tick);
        self.slice = Some(Slice { since: now, used, class: Some(class), protected_until });
        Some(redeemed)
    }

    fn line_mut(&mut self, class: Class) -> &mut VecDeque<Preempted<T>> {
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

    /// One that has computed since `began` is preempted.
    fn preempt(queue: &mut RunQueue<&'static str>, entry: &'static str, began: Instant, now: Instant) {
        queue.slice = Some(Slice::begin(began));
        queue.push_preempted(entry, now);
    }

    /// Whether one that has computed since `began` has to make way.
    fn should_preempt(queue: &mut RunQueue<&'static str>, began: Instant, now: Instant) -> bool {
        queue.slice = Some(Slice::begin(began));
        queue.should_preempt(now)
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
        preempt(&mut queue, "first", now, now);
        preempt(&mut queue, "second", now, now);
        assert_eq!(pop(&mut queue), Some("first"));
        queue.push_preempted("first", Instant::now());
        assert_eq!(pop(&mut queue), Some("first"));
    }

    #[test]
    fn who_is_interrupted_for_the_first_time_goes_behind_those_that_have_been() {
        let (mut queue, now) = (queue(), Instant::now());
        preempt(&mut queue, "first", now, now);
        preempt(&mut queue, "second", now, now);
        assert_eq!((pop(&mut queue), pop(&mut queue)), (Some("first"), Some("second")));
    }

    #[test]
    fn who_has_not_computed_for_a_quantum_goes_before_those_that_have() {
        let (mut queue, now) = (queue(), Instant::now());
        preempt(&mut queue, "spent", now, now + QUANTUM);
        preempt(&mut queue, "fresh", now, now);
        assert_eq!((pop(&mut queue), pop(&mut queue)), (Some("fresh"), Some("spent")));
    }

    #[test]
    fn those_that_compute_for_a_while_do_not_starve_who_computes_for_longer() {
        let (mut queue, now) = (queue(), Instant::now());
        preempt(&mut queue, "spent", now, now + QUANTUM);
        preempt(&mut queue, "fresh", now, now);
        preempt(&mut queue, "another", now, now);
        assert_eq!(pop_at(&mut queue, now), Some("fresh"));
        assert_eq!(pop_at(&mut queue, now + QUANTUM), Some("spent"));
        assert_eq!(pop_at(&mut queue, now + QUANTUM), Some("another"));
    }

    #[test]
    fn who_was_woken_goes_before_the_spent_that_fresh_ones_have_passed_over() {
        let (mut queue, now) = (queue(), Instant::now());
        preempt(&mut queue, "spent", now, now + QUANTUM);
        queue.passed_over_since = Some(now);
        queue.push_woken("woken");
        assert_eq!(pop_at(&mut queue, now + QUANTUM), Some("woken"));
    }

    #[test]
    fn who_got_its_turn_as_it_was_overdue_has_a_quantum_if_nobody_was_woken() {
        let (mut queue, now) = (queue(), Instant::now());
        preempt(&mut queue, "spent", now, now + QUANTUM);
        preempt(&mut queue, "fresh", now, now);
        queue.passed_over_since = Some(now);
        assert_eq!(pop_at(&mut queue, now + QUANTUM), Some("spent"));
        assert!(!queue.should_preempt(now + QUANTUM + QUANTUM / 2));
        assert!(queue.should_preempt(now + QUANTUM + QUANTUM));
    }

    #[test]
    fn the_turn_of_who_computes_ends_with_its_quantum_if_another_was_preempted() {
        let (mut queue, now) = (queue(), Instant::now());
        preempt(&mut queue, "other", now, now + QUANTUM);
        queue.slice = Some(Slice::begin(now));
        assert_eq!(queue.slice_ends_at(now + QUANTUM / 4), now + QUANTUM);
    }

    #[test]
    fn the_turn_of_who_computes_alone_begins_anew_all_the_time() {
        let (mut queue, now) = (queue(), Instant::now());
        queue.slice = Some(Slice::begin(now));
        assert_eq!(queue.slice_ends_at(now + QUANTUM / 4), now + QUANTUM / 4 + QUANTUM);
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
        assert!(queue.should_preempt(Instant::now() + QUANTUM / 2));
    }

    #[test]
    fn whoever_computes_makes_way_at_once_for_who_was_woken() {
        let (mut queue, now) = (queue(), Instant::now());
        assert!(!should_preempt(&mut queue, now, now));
        queue.push_woken("woken");
        assert!(should_preempt(&mut queue, now, now));
    }

    #[test]
    fn whoever_computes_makes_way_for_another_that_does_when_its_quantum_is_over() {
        let (mut queue, now) = (queue(), Instant::now());
        preempt(&mut queue, "other", now, now);
        assert!(!should_preempt(&mut queue, now, now + QUANTUM - TICK));
        assert!(should_preempt(&mut queue, now, now + QUANTUM));
    }

    #[test]
    fn whoever_computes_alone_goes_on() {
        let now = Instant::now();
        assert!(!should_preempt(&mut queue(), now, now + QUANTUM * 100));
    }

    #[test]
    fn those_that_were_woken_without_end_do_not_starve_who_was_preempted() {
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
    fn void_entries_are_left_out() {
        let (mut queue, now) = (queue(), Instant::now());
        preempt(&mut queue, "void", now, now + QUANTUM);
        preempt(&mut queue, "valid", now, now + QUANTUM);
        queue.push_woken("void");
        assert_eq!(queue.pop(|entry| (*entry == "valid").then_some(*entry)), Some("valid"));
        assert!(queue.is_empty());
    }
}
