//! The run queue: which fibers are runnable, and in which order they run.
//!
//! There are five classes in order of priority:
//!
//! 1. Sleepers: the fiber's sleep has ended while another fiber computes. See `sleepers.rs`.
//! 2. Starters: the fiber has started another one, and continues. They alternate with woken fibers by ticks: see
//!    `starters.rs`.
//! 3. Woken: an event has woken the fiber, or the fiber has yielded. It usually has little to do, and other fibers or
//!    peers wait for its result.
//! 4. Fresh: the fiber was preempted before it has computed for a [`Policy::quantum`] since it was woken.
//! 5. Spent: the fiber has computed for longer.
//!
//! So the latency of I/O-bound fibers does not depend on the number of CPU-bound fibers, and a fiber that computes for
//! some milliseconds does not wait for fibers that compute for minutes. This is a multilevel feedback queue, as Unix
//! schedulers have had since CTSS.
//!
//! A fiber to which the current fiber hands off runs ahead of all classes.
//!
//! No class starves: once woken fibers have run ahead of preempted fibers for a quantum, a preempted fiber runs; and
//! once fresh fibers have run ahead of spent fibers for a quantum, that is a spent fiber. If the first fresh fiber has
//! waited for a quantum, it runs as soon as woken fibers have run for a tick. So where there is always a woken fiber,
//! as on a busy server, what needs little more than a tick does not wait for many quanta.

mod sleepers;
mod slice;
mod starters;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use self::sleepers::Sleepers;
use self::slice::{Class, Slice};
use self::starters::{Continued, Starters};

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
        let tick = Duration::from_millis(1);
        #[cfg(heddle_disturbed)]
        let tick = crate::disturbed::tick(tick);
        Policy { quantum: Duration::from_millis(10), tick }
    }
}

struct Preempted<T> {
    entry: T,
    used: Duration,
    /// Since when it is in its class.
    since: Instant,
}

/// A run queue. An entry may become void while it is queued; [`RunQueue::pop`] drops void entries.
pub struct RunQueue<T> {
    /// The fiber to which the current fiber hands off.
    first: Option<T>,
    sleepers: Sleepers<T>,
    starters: Starters<T>,
    woken: VecDeque<T>,
    fresh: VecDeque<Preempted<T>>,
    spent: VecDeque<Preempted<T>>,
    /// The current fiber's slice. `None` for a woken fiber until the first tick, which saves a read of the clock at
    /// each switch.
    slice: Option<Slice>,
    /// Whether the slice of a fiber that was not dequeued has begun since the last one was.
    has_forgotten_slice: bool,
    /// Since when woken fibers have run ahead of preempted fibers.
    preempted_waiting_since: Option<Instant>,
    /// When a fiber was preempted last.
    last_preemption: Option<Instant>,
    /// Since when fresh fibers have run ahead of spent fibers.
    spent_waiting_since: Option<Instant>,
    policy: Policy,
    /// Whether one of the woken fibers has just yielded, if there are other classes.
    has_yielded: bool,
    /// Whether all entries are of woken fibers, so that `pop` reads no clock.
    is_plain: bool,
}

impl<T> Default for RunQueue<T> {
    fn default() -> Self {
        Self::new(Policy::default())
    }
}

impl<T> RunQueue<T> {
    /// An empty queue.
    pub fn new(policy: Policy) -> Self {
        RunQueue {
            first: None,
            sleepers: Sleepers::new(),
            starters: Starters::new(),
            woken: VecDeque::new(),
            fresh: VecDeque::new(),
            spent: VecDeque::new(),
            slice: None,
            has_forgotten_slice: false,
            preempted_waiting_since: None,
            last_preemption: None,
            spent_waiting_since: None,
            policy,
            has_yielded: false,
            is_plain: true,
        }
    }

    /// A fiber runs that was not dequeued. Its slice begins with the first tick that finds it. But fibers that make
    /// each other run in this way have one slice together: the others wait until one is dequeued.
    pub fn forget_slice(&mut self) {
        if !std::mem::replace(&mut self.has_forgotten_slice, true) {
            self.slice = None;
        }
    }

    fn note_kinds(&mut self) {
        let has_only_woken = self.first.is_none() && !self.has_preempted() && self.starters.is_empty();
        self.is_plain = has_only_woken && self.sleepers.is_idle();
    }

    /// Changes the policy from now on.
    pub fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
    }

    /// The number of entries, including void ones.
    pub fn len(&self) -> usize {
        let preempted = self.fresh.len() + self.spent.len();
        usize::from(self.has_first()) + self.sleepers.len() + self.starters.len() + self.woken.len() + preempted
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether all entries, and at least one, are of preempted fibers.
    pub fn has_only_preempted(&self) -> bool {
        !self.has_unpreempted() && self.has_preempted()
    }

    /// Whether there is an entry of a woken fiber, of a sleeper or of a starter.
    pub fn has_unpreempted(&self) -> bool {
        !self.woken.is_empty() || !self.starters.is_empty() || self.sleepers.len() > 0 || self.has_first()
    }

    /// The entry of a woken fiber at `index`, in the order of dequeuing.
    #[inline]
    pub fn upcoming(&self, index: usize) -> Option<&T> {
        self.woken.get(index)
    }

    /// All entries of woken fibers, in the order of dequeuing.
    pub fn woken(&self) -> impl Iterator<Item = &T> + Clone {
        self.woken.iter()
    }

    /// Drops the void entries of woken fibers.
    pub fn drop_void(&mut self, is_void: impl Fn(&T) -> bool) {
        self.woken.retain(|entry| !is_void(entry));
    }

    /// Moves the entry of a woken fiber at `index` ahead of the others.
    pub fn move_to_head(&mut self, index: usize) {
        let moved = self.woken.remove(index);
        moved.into_iter().for_each(|moved| self.woken.push_front(moved));
    }

    /// Whether there is an entry of a preempted fiber.
    pub fn has_preempted(&self) -> bool {
        !self.fresh.is_empty() || !self.spent.is_empty()
    }

    /// Enqueues a fiber behind all woken fibers.
    pub fn push_woken(&mut self, entry: T) {
        self.woken.push_back(entry);
    }

    /// Enqueues the current fiber, which yields, behind all woken fibers.
    #[inline]
    pub fn push_yielded(&mut self, entry: T) {
        self.has_yielded = !self.is_plain;
        self.woken.push_back(entry);
    }

    /// Enqueues a fiber ahead of all woken fibers.
    pub fn push_next(&mut self, entry: T) {
        self.woken.push_front(entry);
    }

    /// Enqueues a fiber ahead of all others, whatever their classes: the current fiber hands off to it.
    pub fn push_first(&mut self, entry: T) {
        self.is_plain = false;
        self.first.replace(entry).into_iter().for_each(|earlier| self.woken.push_front(earlier));
    }

    /// Whether the current fiber hands off to another one.
    pub fn has_first(&self) -> bool {
        self.first.is_some()
    }

    /// Enqueues the current fiber, which starts another one. The other one's slice begins.
    pub fn push_starter(&mut self, entry: T, clock: impl FnOnce() -> Instant) {
        // In a round, the last read of the clock is recent enough.
        let now = self.slice.and_then(|slice| slice.continued_at).unwrap_or_else(clock);
        self.is_plain = false;
        let running_since = self.slice.map_or(now, |slice| slice.since);
        self.starters.push(entry, running_since);
        self.slice = Some(Slice { protected_until: Some(now + self.policy.tick / 2), ..Slice::start(now) });
    }

    /// Enqueues the current fiber, which is preempted. If it had been preempted before, it returns to the head of its
    /// class, unless its quantum is used up.
    pub fn push_preempted(&mut self, entry: T, now: Instant) {
        self.is_plain = false;
        self.starters.end_round();
        self.last_preemption = Some(now);
        let slice = self.slice.take();
        let used = slice.map_or(Duration::ZERO, |slice| slice.used_at(now));
        if used >= self.policy.quantum {
            self.spent.push_back(Preempted { entry, used: Duration::ZERO, since: now });
            return;
        }
        match slice.and_then(|slice| slice.class) {
            Some((class, since)) => self.class_mut(class).push_front(Preempted { entry, used, since }),
            None => self.fresh.push_back(Preempted { entry, used, since: now }),
        }
    }

    /// Whether the current fiber, which computes, should be preempted in favour of a fiber in the queue. Not at the
    /// first tick since it was woken: it may have run for a moment only, and preempted it would wait for all that are
    /// woken meanwhile.
    pub fn should_preempt(&mut self, now: Instant) -> bool {
        let Some(slice) = &self.slice else {
            let protected_until = self.has_unpreempted().then(|| now + self.policy.tick / 2);
            self.slice = Some(Slice { protected_until, ..Slice::start(now) });
            return false;
        };
        if self.has_unpreempted() {
            return slice.protected_until.is_none_or(|end| now >= end);
        }
        self.is_used_up(now) && self.has_preempted()
    }

    /// Whether the current fiber, which computes, has used up its quantum.
    pub fn is_used_up(&self, now: Instant) -> bool {
        self.used(now).is_some_and(|used| used >= self.policy.quantum)
    }

    /// How much of its quantum the current fiber has used. `None` if no tick has come yet since it was woken.
    pub fn used(&self, now: Instant) -> Option<Duration> {
        self.slice.map(|slice| slice.used_at(now))
    }

    /// How long a fiber in the queue that would preempt the current fiber has to wait for that.
    pub fn protected_for(&self, now: Instant) -> Option<Duration> {
        let end = self.slice.as_ref().filter(|_| self.has_unpreempted())?.protected_until?;
        Some(end.saturating_duration_since(now)).filter(|left| !left.is_zero())
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
    /// Reads the clock only if there are entries of other classes than woken fibers.
    #[inline(always)]
    pub fn pop<R>(&mut self, mut claim: impl FnMut(&T) -> Option<R>) -> Option<R> {
        #[cfg(heddle_disturbed)]
        crate::disturbed::stall();
        self.has_forgotten_slice = false;
        if self.is_plain { self.pop_plain(&mut claim) } else { self.pop_with_clock(Instant::now(), &mut claim) }
    }

    #[inline(never)]
    fn pop_with_clock<R>(&mut self, now: Instant, claim: &mut impl FnMut(&T) -> Option<R>) -> Option<R> {
        let claimed = self.pop_by_class(now, claim);
        self.has_yielded = false;
        self.note_kinds();
        claimed
    }

    fn pop_by_class<R>(&mut self, now: Instant, claim: &mut impl FnMut(&T) -> Option<R>) -> Option<R> {
        if let Some(claimed) = self.first.take().and_then(|first| claim(&first)) {
            self.slice = None;
            return Some(claimed);
        }
        if !self.sleepers.is_idle()
            && let Some(claimed) = self.sleepers.pop(claim)
        {
            self.slice = None;
            return Some(claimed);
        }
        if self.has_preempted()
            && (!self.has_unpreempted() || self.is_preempted_late(now))
            && let Some(claimed) = self.pop_preempted(now, claim)
        {
            return Some(claimed);
        }
        // All of the chosen class's entries may have been void.
        let claimed = self.pop_starter(now, claim).or_else(|| self.pop_plain(claim));
        // A late starter gives way to woken fibers, but their entries may have been void.
        claimed.or_else(|| self.pop_starter(now, claim)).or_else(|| self.pop_preempted(now, claim))
    }

    /// A starter continues its round as one slice, to which the slices of the fibers count that it starts.
    fn pop_starter<R>(&mut self, now: Instant, claim: &mut impl FnMut(&T) -> Option<R>) -> Option<R> {
        let Policy { tick, .. } = self.policy;
        let ahead = self.woken.len().saturating_sub(usize::from(self.has_yielded));
        let continued = self.starters.pop(now, tick, ahead, claim)?;
        let Continued { claimed, round } = continued;
        let protected_until = Some(now + tick / 2);
        self.slice = round.map(|since| Slice { protected_until, continued_at: Some(now), ..Slice::start(since) });
        Some(claimed)
    }

    /// Whether preempted fibers have waited for woken fibers for long enough. Starts the count if it has not started.
    fn is_preempted_late(&mut self, now: Instant) -> bool {
        let has_elapsed = |since: Instant, time: Duration| now.saturating_duration_since(since) >= time;
        let since = *self.preempted_waiting_since.get_or_insert(now);
        let Policy { quantum, tick } = self.policy;
        // The fiber that was preempted last may have been a new one, and so in no class until then. Woken fibers run
        // before a second fiber computes.
        let since_preemption = self.last_preemption.map_or(since, |preemption| preemption.max(since));
        let fresh_is_late = self.fresh.front().is_some_and(|first| has_elapsed(first.since, quantum));
        has_elapsed(since, quantum) || fresh_is_late && has_elapsed(since_preemption, tick)
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

    #[inline(always)]
    fn pop_plain<R>(&mut self, claim: &mut impl FnMut(&T) -> Option<R>) -> Option<R> {
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
        let (claimed, used, since) = std::iter::from_fn(|| entries.pop_front())
            .find_map(|Preempted { entry, used, since }| claim(&entry).map(|claimed| (claimed, used, since)))?;
        if class == Class::Fresh && !self.spent.is_empty() {
            self.spent_waiting_since.get_or_insert(now);
        }
        let protected_until = self.has_unpreempted().then(|| now + self.policy.tick);
        self.slice = Some(Slice { used, class: Some((class, since)), protected_until, ..Slice::start(now) });
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
mod tests;
