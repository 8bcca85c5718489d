//! Whose turn it is: the run queue, and all events that put a fiber on it.

mod closing;
mod delivering;
mod descriptors;
pub mod ending;
pub mod operations;

use std::os::fd::{OwnedFd, RawFd};
use std::time::{Duration, Instant};

use heddle_core::fairness::Fairness;
use heddle_core::run_queue::{Policy, RunQueue};
use heddle_core::timers::Timers;
use heddle_core::{Interest, Token};
use slab::Slab;

use self::closing::CloseWaiters;
pub use self::closing::Signal;
pub use self::descriptors::OwnedDescriptor;
pub use self::operations::{Ended, Operations};
use super::fibers::{Delivery, FiberKey, Fibers, Record, Redeemed, State};
use super::sharing::Halfway;
use super::wait::Wait;
use super::whereabouts;
use crate::ruby::value::Held;

/// What happens when a timer runs out.
#[derive(Debug, Clone, Copy)]
pub enum Alarm {
    /// The fiber that set it looks at the clock again.
    Wake(FiberKey),
    /// `timeout_after`: an exception is due.
    Deadline {
        /// The fiber that runs the block.
        fiber: FiberKey,
        /// What to raise in it.
        delivery: Delivery,
    },
    /// The time is over that this fiber, told to end, may take for it.
    Grace(FiberKey),
}

impl Alarm {
    fn fiber(&self) -> FiberKey {
        match self {
            Alarm::Wake(fiber) | Alarm::Grace(fiber) | Alarm::Deadline { fiber, .. } => *fiber,
        }
    }
}

/// What a fiber in `IO.select` waits on.
#[derive(Debug, Default)]
pub struct Selection {
    /// Each number once, with all that is wanted of it.
    pub wanted: Vec<(RawFd, Interest)>,
    /// An operation for each.
    pub tokens: Vec<Token>,
}

/// The scheduler's books. No method calls Ruby, so a borrow of this never lives across a switch.
pub struct Turns {
    pub fibers: Fibers,
    pub timers: Timers<Alarm>,
    pub fairness: Fairness,
    /// Entries are valid as long as the fiber's ticket is the same.
    pub queue: RunQueue<(FiberKey, u32)>,
    pub operations: Operations,
    /// The fiber that has the turn, as far as we know: Ruby switches fibers on its own, too.
    running: Option<(Held, FiberKey)>,
    pub halfway: Halfway,
    next_deadline: u64,
    /// Fibers have been forgotten, and some that are not gone might find out.
    forgotten: bool,
    /// Timers that have expired, for as long as it takes to deal with them; kept to be used again.
    due: Vec<Alarm>,
    /// Exceptions for fibers that are suspended, but not by us.
    strays: Vec<(Held, Delivery)>,
    /// Raised in every fiber while the scheduler is being stopped.
    stop: Option<Held>,
    /// How long a fiber may take for its end when it has been told to. `None` is for ever.
    pub grace: Option<Duration>,
    /// Fibers whose grace is over.
    overdue: Vec<FiberKey>,
    /// See [`Turns::end_fiber`].
    ending: Option<Held>,
    close_waiters: CloseWaiters,
    /// See [`Turns::set_forker`].
    forker: Option<FiberKey>,
    /// What fibers in `IO.select` wait on.
    pub selections: Slab<Selection>,
    /// Memory that operations use instead of a program's `IO::Buffer`. A fiber that waits has a key only: its stack may
    /// be left for good.
    pub bounce_buffers: Slab<Vec<u8>>,
    /// Those that hooks have opened for the time of a wait.
    descriptors: Slab<(FiberKey, OwnedFd)>,
}

impl Default for Turns {
    fn default() -> Self {
        Turns {
            fibers: Fibers::default(),
            timers: Timers::default(),
            fairness: Fairness::default(),
            queue: RunQueue::new(Policy::default()),
            operations: Operations::default(),
            running: None,
            halfway: Halfway::default(),
            next_deadline: 0,
            forgotten: false,
            due: Vec::new(),
            strays: Vec::new(),
            stop: None,
            grace: None,
            overdue: Vec::new(),
            ending: None,
            close_waiters: CloseWaiters::default(),
            forker: None,
            selections: Slab::new(),
            bounce_buffers: Slab::new(),
            descriptors: Slab::new(),
        }
    }
}

impl Turns {
    // --- whose turn it is

    /// The fiber that was given the turn last and has not given it away to our knowledge.
    pub fn running(&self) -> Option<(Held, FiberKey)> {
        self.running
    }

    /// Whether this fiber was given the turn.
    pub fn has_turn(&self, key: FiberKey) -> bool {
        self.running.is_some_and(|(_, running)| running == key)
            && self.fibers.get(key).is_some_and(|record| record.state() == State::Running)
    }

    /// The fiber has the turn from now on, whether or not it had waited for it.
    pub fn take_turn(&mut self, key: FiberKey) {
        self.running = self.fibers.run(key).map(|fiber| (fiber, key));
    }

    /// A new fiber gets its first turn.
    pub fn give_first_turn(&mut self, key: FiberKey) {
        self.take_turn(key);
        self.queue.begin_turn();
    }

    /// `current` enters a hook. `None` if it is not the one that was given the turn.
    #[inline]
    pub fn begin_visit(&mut self, current: Held) -> Option<FiberKey> {
        let (_, key) = self.running.filter(|(running, _)| *running == current)?;
        if let Some(record) = self.fibers.get_mut(key) {
            record.visits += 1;
        }
        Some(key)
    }

    /// A fiber that has a record only while it is in a hook, or has mail, leaves the last one. Who has resumed it has the turn again.
    pub fn dismiss(&mut self, key: FiberKey) {
        if self.has_turn(key) {
            let resumer = self.fibers.get(key).and_then(|record| record.resumed_by);
            self.running = resumer.and_then(|resumer| {
                let record = self.fibers.get(resumer).filter(|record| record.state() == State::Running)?;
                Some((record.fiber, resumer))
            });
        }
        if !self.fibers.get(key).is_some_and(|record| record.has_mail()) {
            self.fibers.remove(key);
        }
    }

    /// Nobody that we know has the turn.
    pub fn drop_turn(&mut self) {
        self.running = None;
    }

    /// Puts a fiber at the end of the run queue.
    pub fn enqueue(&mut self, key: FiberKey) {
        let ticket = self.fibers.set_state(key, State::Runnable);
        self.queue.push_woken((key, ticket));
    }

    /// A fiber of the run queue, unless it was preempted, goes before all others. False if it is not there.
    pub fn bring_forward(&mut self, key: FiberKey) -> bool {
        let queued = |record: &Record| record.state() == State::Runnable && record.wait != Wait::Preempted;
        let found = self.fibers.get(key).is_some_and(queued);
        if found {
            let ticket = self.fibers.set_state(key, State::Runnable);
            self.queue.push_next((key, ticket));
        }
        found
    }

    /// The fiber that has the turn goes to the end of the run queue. Returns what it waited for until then.
    #[inline]
    pub fn give_up_turn(&mut self, key: FiberKey) -> Option<Wait> {
        let (outer, ticket) = self.fibers.give_up_turn(key, Wait::Turn)?;
        self.queue.push_woken((key, ticket));
        Some(outer)
    }

    /// `current` enters a hook, and gives up its turn by itself. Returns what it waited for until then; `None` if it is not
    /// the one that was given the turn.
    #[inline(always)]
    pub fn yield_turn(&mut self, current: Held) -> Option<(FiberKey, Wait)> {
        let (_, key) = self.running.filter(|(running, _)| *running == current)?;
        let (outer, ticket) = self.fibers.yield_turn(key)?;
        self.queue.push_woken((key, ticket));
        Some((key, outer))
    }

    /// Like [`Turns::give_up_turn`] for one that computes, and is preempted.
    pub fn preempt(&mut self, key: FiberKey, now: Instant) -> Option<Wait> {
        let (outer, ticket) = self.fibers.give_up_turn(key, Wait::Preempted)?;
        self.queue.push_preempted((key, ticket), now);
        Some(outer)
    }

    /// Like [`Turns::give_up_turn`] for one that computes, and goes on before all others.
    pub fn step_aside(&mut self, key: FiberKey) -> Option<Wait> {
        let (outer, ticket) = self.fibers.give_up_turn(key, Wait::Preempted)?;
        self.queue.push_next((key, ticket));
        Some(outer)
    }

    /// Whether this fiber, which runs, answers for the thread's interrupts. They belong to the root. If the root has given
    /// its turn away to us, or has resumed a fiber that has, it is none of the others; else it is the one that runs: the
    /// root, what that has resumed, or what a program switches by hand.
    ///
    /// In a forked child they belong to the fiber that forked: what leaves its block ends the process.
    pub fn answers(&self, key: Option<FiberKey>) -> bool {
        if let Some((_, forker)) = self.forker() {
            let is_away = self.fibers.get(forker).is_some_and(|record| record.is_parked());
            return key == Some(forker) || !is_away;
        }
        let record = key.and_then(|key| self.fibers.get(key));
        let is_root = record.is_some_and(|record| record.blocking && !record.ours);
        let is_ours = record.is_some_and(|record| record.ours);
        is_root || !(self.fibers.is_blocking_parked() || is_ours && self.fibers.is_stranger_parked())
    }

    /// This process is a forked child, and `survivor` the fiber that forked.
    pub fn set_forker(&mut self, survivor: Option<FiberKey>) {
        self.forker = survivor;
    }

    /// The fiber that forked, until it has ended, if it is none that Ruby itself falls back to.
    pub fn forker(&self) -> Option<(Held, FiberKey)> {
        let record = self.fibers.get(self.forker?).filter(|record| !record.blocking)?;
        Some((record.fiber, self.forker?))
    }

    /// Whether the fiber that computes has to make way for another.
    pub fn must_make_way(&mut self, now: Instant) -> bool {
        self.queue.must_make_way(now) || self.has_strays()
    }

    /// The fiber that has the turn computes, and need not make way now. If nothing happens: until when is that so? In a
    /// quantum it should be asked again in any case. `None` if the kernel or a worker might tell of somebody at any time.
    pub fn due_at(&mut self, now: Instant) -> Option<Instant> {
        if self.operations.len() > 0 || self.queue.has_woken() {
            return None;
        }
        let turn_ends = self.queue.turn_ends_at(now);
        Some(self.timers.next_deadline().map_or(turn_ends, |deadline| deadline.min(turn_ends)))
    }

    /// Takes the first fiber off the run queue and gives it the turn.
    #[inline(always)]
    pub fn dequeue(&mut self) -> Option<Redeemed> {
        let fibers = &mut self.fibers;
        let next = self.queue.pop(|(key, ticket)| fibers.redeem(*key, *ticket))?;
        if whereabouts::are_many(self.fibers.len()) {
            self.look_ahead(next.key);
        }
        self.running = Some((next.fiber, next.key));
        Some(next)
    }

    /// Has fetched what those need who come after `next`.
    #[inline(never)]
    fn look_ahead(&mut self, next: FiberKey) {
        let leaving = self.running.map(|(_, leaving)| leaving);
        if let Some(record) = self.fibers.get(next).map(|record| record.whereabouts.record())
            && let Some(leaving) = leaving.and_then(|leaving| self.fibers.get_mut(leaving))
        {
            leaving.whereabouts.leave(record);
        }
        if let Some(record) = self.queue.upcoming(0).and_then(|(key, _)| self.fibers.get(*key)) {
            record.whereabouts.prefetch();
        }
        // For the line above to find in the cache, when its turn comes.
        if let Some((key, _)) = self.queue.upcoming(2) {
            self.fibers.prefetch(*key);
        }
    }

    /// How many entries the run queue has. Some may be void.
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// The fiber begins to wait. A fiber that is being killed gives up its turn alone: when it has it again, Ruby goes on
    /// killing it.
    pub fn begin_wait(&mut self, key: FiberKey) {
        if self.fibers.get(key).is_some_and(|record| record.told.as_ref().is_some_and(|told| told.is_killed())) {
            self.enqueue(key);
        } else if !self.is_lost(key) {
            self.fibers.set_state(key, State::Waiting);
        }
    }

    // --- events

    /// What a fiber waits for may have come: it looks again when its turn comes. Nothing happens to one that does not
    /// wait.
    pub fn wake(&mut self, key: FiberKey) {
        if self.fibers.get(key).is_some_and(|record| record.state() == State::Waiting) {
            self.enqueue(key);
        }
    }

    /// Ruby's `unblock`. Returns whether somebody was woken; `None` if the fiber is not in the books.
    pub fn unblock(&mut self, fiber: Held) -> Option<bool> {
        let key = self.fibers.find(fiber)?;
        let record = self.fibers.get_mut(key)?;
        record.unblocks = record.unblocks.wrapping_add(1);
        let unblockable = record.wait.is_unblockable();
        if unblockable {
            self.wake(key);
        }
        Some(unblockable)
    }

    // --- waits

    /// A fiber's wait has ended, in whichever way. Returns whether an exception may be due in it.
    #[inline]
    pub fn end_wait(&mut self, key: FiberKey, outer: Option<Wait>) -> bool {
        let mut may_be_due = self.stop.is_some();
        if let (Some(outer), Some(record)) = (outer, self.fibers.get_mut(key)) {
            record.wait = outer;
            may_be_due |= !record.deliveries.is_empty();
        }
        if self.has_close_waiters() {
            self.wake_close_waiters();
        }
        may_be_due
    }

    /// The fiber that has given up its turn by itself, within a hook that ends with that, goes on. False if there is more
    /// to do than to note that; then nothing has been done.
    #[inline(always)]
    pub fn end_plain_yield(&mut self, key: FiberKey, outer: Wait) -> bool {
        let has_turn = self.running.is_some_and(|(_, running)| running == key);
        if !has_turn || self.stop.is_some() || self.has_close_waiters() {
            return false;
        }
        self.fibers.get_mut(key).is_some_and(|record| record.end_plain_yield(outer))
    }

    /// Like [`Turns::end_wait`]; exceptions that were meant for this wait alone are void now.
    #[inline]
    pub fn leave_wait(&mut self, key: FiberKey, outer: Option<Wait>) {
        if self.end_wait(key, outer)
            && let Some(record) = self.fibers.get_mut(key)
        {
            record.deliveries.drop_for_wait();
        }
    }

    /// A fiber is about to wait. Returns what it waited for until then.
    pub fn prepare_wait(&mut self, key: FiberKey, wait: Wait) -> Option<Wait> {
        self.fibers.get_mut(key).map(|record| record.begin_wait(wait))
    }

    /// Like [`Turns::prepare_wait`] for one whose wait has been ended early and is not over: who waits for it to leave
    /// goes on waiting.
    pub fn prolong_wait(&mut self, key: FiberKey, wait: Wait) -> Option<Wait> {
        self.fibers.get_mut(key).map(|record| std::mem::replace(&mut record.wait, wait))
    }

    /// Lets the timers that have run out do what they are for.
    pub fn expire(&mut self, now: Instant) {
        // First taken, then dealt with: meanwhile the records come into the cache, all at the same time.
        let mut due = std::mem::take(&mut self.due);
        while let Some(alarm) = self.timers.pop_expired(now) {
            if let Alarm::Wake(key) = &alarm {
                self.fibers.prefetch(*key);
            }
            due.push(alarm);
        }
        for alarm in due.drain(..) {
            match alarm {
                Alarm::Wake(key) => self.wake(key),
                Alarm::Deadline { fiber, delivery } => self.deliver(fiber, delivery),
                Alarm::Grace(key) => self.end_grace(key, now),
            }
        }
        self.due = due;
    }

    // --- fork

    /// Whether the fiber waits for something that will never come: its process forked, and it stayed behind.
    pub fn is_lost(&self, key: FiberKey) -> bool {
        self.forgotten && self.fibers.get(key).is_none_or(|record| record.state() == State::Lost)
    }

    /// In a forked child, or when the scheduler is closed: `survivor` is the fiber that did it. It stays as it is, and so
    /// do those that have resumed it, and blocking fibers, since the root will get the control when the survivor ends. All
    /// others are lost, and their timers and operations with them.
    pub fn forget_siblings(&mut self, survivor: Option<FiberKey>) {
        self.forgotten = true;
        let siblings: Vec<FiberKey> = self
            .fibers
            .iter()
            .filter(|(key, record)| Some(*key) != survivor && !record.blocking && record.is_parked())
            .map(|(key, _)| key)
            .collect();
        for key in siblings {
            self.fibers.set_state(key, State::Lost);
        }
        self.operations.clear();
        self.strays.clear();
        let fibers = &self.fibers;
        let stays = |key: FiberKey| {
            let runs = |record: &Record| record.state() == State::Running && !record.blocking;
            Some(key) == survivor || fibers.get(key).is_some_and(runs)
        };
        self.close_waiters.retain(stays);
        self.descriptors.retain(|_, (key, _)| stays(*key));
        self.overdue.clear();
        self.timers.retain(|alarm| stays(alarm.fiber()));
    }

    // --- for people

    /// How many fibers wait for what, as `inspect` tells it.
    pub fn summary(&self) -> String {
        let mut kinds: Vec<(String, usize)> = Vec::new();
        for (_, record) in self.fibers.iter().filter(|(_, record)| record.state() == State::Waiting) {
            let kind = record.wait.to_string();
            match kinds.iter_mut().find(|(name, _)| *name == kind) {
                Some((_, count)) => *count += 1,
                None => kinds.push((kind, 1)),
            }
        }
        kinds.sort();
        let runnable = self.fibers.iter().filter(|(_, record)| record.state() == State::Runnable).count();
        let waiting: usize = kinds.iter().map(|(_, count)| count).sum();
        let detail: Vec<String> = kinds.into_iter().map(|(kind, count)| format!("{kind}: {count}")).collect();
        let detail = if detail.is_empty() { String::new() } else { format!(" ({})", detail.join(", ")) };
        format!("runnable={runnable} waiting={waiting}{detail}")
    }
}
