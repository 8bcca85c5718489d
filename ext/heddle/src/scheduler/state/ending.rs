//! Fibers that are asked to end, and how long they may take for that.
//!
//! A request to end raises an exception in the fiber, and raises it again if the fiber swallows it. A fiber that has
//! not ended when its grace period is over is killed, as `Fiber#kill` does it: its `ensure` clauses run, and cannot
//! wait. A fiber that survives this is abandoned, and so is one that cannot be killed, because it computes: the
//! scheduler forgets it, and never switches to it again.
//!
//! Fibers are lost, and never run again, when their process forks or their scheduler is closed.

use std::time::{Duration, Instant};

use heddle_core::Token;
use heddle_core::queue::end_request::{EndRequest, GRACE_AFTER_KILL};
use magnus::gc::Marker;
use magnus::{Ruby, Value};
use rustc_hash::FxHashSet;

use super::{State, TimerAction};
use crate::ruby::insides::Mutexes;
use crate::ruby::value::{Identity, PinnedValue};
use crate::scheduler::closing_numbers;
use crate::scheduler::raise::{PendingRaise, RaiseScope};
use crate::scheduler::record::{FiberKey, FiberState, Record};
use crate::scheduler::wait::Wait;

/// The longest chain of fibers, each resumed by the next, that [`State::responsible_fiber`] follows.
const MAX_RESUME_DEPTH: usize = 64;

/// How to end a fiber whose grace period is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndAction {
    /// Kill it. It waits, and so it leaves the lists of waiters that it is on.
    Kill,
    /// Abandon it. It cannot be killed, since it computes or has resumed another fiber.
    Abandon,
    /// Abandon it, after it has been killed and survived that.
    Forget,
}

/// The endings of fibers.
#[derive(Default)]
pub struct Endings {
    /// The grace period: how long a fiber that was asked to end may take for that. `None` is for ever.
    grace: Option<Duration>,
    /// Fibers whose grace period is over.
    overdue: Vec<FiberKey>,
    /// The fiber that has ended last. As long as it is remembered, no other fiber may get its address.
    last: Option<PinnedValue>,
    /// Fibers have been forgotten or marked as lost, and may still get control; see [`State::is_lost`].
    has_lost: bool,
}

impl Endings {
    /// Sets the grace period.
    pub fn set_grace(&mut self, grace: Option<Duration>) {
        self.grace = grace;
    }

    /// Whether the grace period of any fiber is over.
    #[inline]
    pub fn has_overdue(&self) -> bool {
        !self.overdue.is_empty()
    }

    /// The next fiber whose grace period is over.
    pub fn take_overdue(&mut self) -> Option<FiberKey> {
        self.overdue.pop()
    }

    /// Whether the fiber has been passed to [`State::end_fiber`].
    pub fn is_ending(&self, fiber: Value) -> bool {
        self.last.is_some_and(|last| last == fiber)
    }

    /// Tells the garbage collector what is held.
    pub fn mark(&self, marker: &Marker) {
        self.last.inspect(|last| last.mark(marker));
    }
}

/// Why fibers are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossCause {
    /// The process forked. Ruby has made the fiber that forked the thread's root, and the process ends with it.
    Fork,
    /// The scheduler was closed. Blocking fibers stay, since the root gets control when the current fiber ends.
    Close,
}

impl LossCause {
    fn loses(self, record: &Record) -> bool {
        self == LossCause::Fork || !record.blocking
    }
}

impl State {
    /// Asks a fiber to end: `exception` is raised in it until it ends. A second request changes nothing.
    pub fn request_end(&mut self, key: FiberKey, exception: Value) {
        let Some(record) = self.fibers.get_mut(key).filter(|record| !record.end_requested) else { return };
        record.end_requested = true;
        self.begin_grace(key);
        self.send_raise(key, PendingRaise::new(exception, None, RaiseScope::End));
    }

    /// `end` is being raised in a fiber. That also counts as a request to the fiber that is responsible for it; see
    /// [`State::responsible_fiber`].
    pub fn end_is_raised(&mut self, key: FiberKey, end: PendingRaise) {
        let responsible_fiber = self.responsible_fiber(key);
        for fiber in [key, responsible_fiber] {
            if let Some(record) = self.fibers.get_mut(fiber) {
                record.end_requested = true;
            }
        }
        self.begin_grace(responsible_fiber);
        let Some(record) = self.fibers.get_mut(responsible_fiber) else { return };
        if !record.pending_raises.iter().any(|sent| sent.scope == RaiseScope::End) {
            record.pending_raises.push_in_flight(end);
        }
        self.note_end_raised(responsible_fiber);
    }

    /// Notes that the exception that ends the fiber has been raised in it.
    pub fn note_end_raised(&mut self, key: FiberKey) {
        let now = self.clock.now();
        if let Some(request) = self.fibers.get_mut(key).and_then(|record| record.end_request.as_mut()) {
            request.note_raised(now);
        }
    }

    /// Whether the scheduler is ending all fibers, and has not asked this one yet.
    pub fn must_be_stopped(&self, key: FiberKey) -> bool {
        let stoppable = |key| self.fibers.get(key).is_some_and(|record| record.is_stoppable());
        self.raises.is_stopping() && stoppable(key) && {
            let responsible_fiber = self.responsible_fiber(key);
            responsible_fiber == key || !self.fibers.get(responsible_fiber).is_some_and(|record| record.end_requested)
        }
    }

    /// The managed fiber that is responsible for this one: this one if it is managed, or else the first managed fiber
    /// in the chain of fibers that have resumed it. If there is none, the fiber itself.
    pub fn responsible_fiber(&self, key: FiberKey) -> FiberKey {
        let is_managed = |key: &FiberKey| self.fibers.get(*key).is_some_and(|record| record.managed);
        self.resumers(key).find(is_managed).unwrap_or(key)
    }

    /// The fiber that has resumed this one, or the fiber that has resumed that one, and so on: a managed fiber or the
    /// root. The fiber itself if none is known.
    pub fn outermost(&self, key: FiberKey) -> FiberKey {
        self.resumers(key).last().unwrap_or(key)
    }

    /// The fiber, the fiber that has resumed it, the one that has resumed that one, and so on.
    pub fn resumers(&self, key: FiberKey) -> impl Iterator<Item = FiberKey> {
        let resumer = |key: &FiberKey| self.fibers.get(*key)?.resumed_by.filter(|key| self.fibers.get(*key).is_some());
        std::iter::successors(Some(key), resumer).take(MAX_RESUME_DEPTH)
    }

    /// Starts the fiber's grace period.
    pub fn begin_grace(&mut self, key: FiberKey) {
        let Some(grace) = self.endings.grace else { return };
        let now = self.clock.now();
        let Some(record) = self.fibers.get_mut(key).filter(|record| record.end_request.is_none()) else { return };
        let deadline = now + grace;
        let timer = self.timers.insert(deadline, TimerAction::Grace(key));
        record.end_request = Some(Box::new(EndRequest::new(timer, deadline, record.waits)));
    }

    /// The timer of a fiber's grace period has expired: see [`EndRequest::prolonged_until`].
    pub fn end_grace(&mut self, key: FiberKey, now: Instant) {
        let Some(grace) = self.endings.grace else { return };
        let Some(record) = self.fibers.get_mut(key) else { return };
        let is_shielded = record.task.shield.holds_back(RaiseScope::Kill);
        let progress = (record.state() == FiberState::Runnable, record.waits);
        let Some(request) = record.end_request.as_mut() else { return };
        match request.prolonged_until(now, grace, is_shielded, progress) {
            Some(until) => request.prolong(self.timers.insert(until, TimerAction::Grace(key)), until),
            None => self.endings.overdue.push(key),
        }
    }

    /// The fiber could not be ended now: sets a timer to try again.
    pub fn prolong_grace(&mut self, key: FiberKey) {
        let deadline = self.clock.now() + GRACE_AFTER_KILL;
        let timer = self.timers.insert(deadline, TimerAction::Grace(key));
        if let Some(request) = self.fibers.get_mut(key).and_then(|record| record.end_request.as_mut()) {
            request.prolong(timer, deadline);
        }
    }

    /// How to end a fiber whose grace period is over. `None` if it has ended.
    pub fn end_action(&self, key: FiberKey) -> Option<EndAction> {
        let record = self.fibers.get(key)?;
        let killed = record.end_request.as_ref().is_some_and(|request| request.is_killed());
        let waits = record.is_parked() && record.wait != Wait::Preempted;
        Some(match (killed, waits) {
            (true, _) => EndAction::Forget,
            (false, true) => EndAction::Kill,
            (false, false) => EndAction::Abandon,
        })
    }

    /// Kills a waiting fiber: it is woken, and killed when it runs.
    pub fn kill(&mut self, key: FiberKey, exception: Value) {
        let now = self.clock.now();
        let timer = self.timers.insert(now + GRACE_AFTER_KILL, TimerAction::Grace(key));
        let Some(record) = self.fibers.get_mut(key) else { return };
        record.end_request = Some(Box::new(EndRequest::kill(timer, record.waits, now)));
        record.pending_raises.push_first(PendingRaise::new(exception, None, RaiseScope::Kill));
        self.wake(key);
    }

    /// The fiber, and the fibers that it has resumed.
    pub fn with_resumed(&self, key: FiberKey) -> Vec<FiberKey> {
        self.fibers.iter().map(|(other, _)| other).filter(|other| self.responsible_fiber(*other) == key).collect()
    }

    /// Forgets fibers that have not ended. Returns their operations, which are to be cancelled.
    pub fn abandon(&mut self, lost: &[FiberKey]) -> Vec<Token> {
        let is_lost = |key: &FiberKey| lost.contains(key);
        let operations = self.operations.abandon_all_of(lost);
        self.timers.retain(|action| !is_lost(&action.fiber()));
        let fibers = &self.fibers;
        self.raises.forget(|fiber| fibers.find(fiber).as_ref().is_some_and(is_lost));
        self.closings.forget_fibers(|fiber| is_lost(&fiber));
        if self.fibers.current().is_some_and(|(_, running)| is_lost(&running)) {
            self.fibers.clear_current();
        }
        // If the program switches to such a fiber all the same, its wait raises an error.
        self.endings.has_lost = true;
        for key in lost {
            self.remove(*key);
        }
        operations
    }

    /// The fiber has run its block, and ends. Requests to end it are dropped. Returns its exit observer.
    ///
    /// The rest of the fiber's life counts as a hook: an exception raised while the exit observer is notified would
    /// leave other fibers waiting for ever.
    pub fn end_block(&mut self, key: FiberKey) -> Option<Value> {
        let record = self.fibers.get_mut(key)?;
        record.hook_depth += 1;
        record.end_requested = true;
        if !record.pending_raises.is_empty() {
            record.pending_raises.retract_repeated(&mut self.timers);
        }
        if let Some(request) = record.end_request.take() {
            self.timers.cancel(request.timer());
        }
        record.task.exit_observer()
    }

    /// The fiber returns to Ruby, and is dead then. It must not be preempted any more, since it has no record.
    pub fn end_fiber(&mut self, key: FiberKey) {
        self.counters.ended += 1;
        self.endings.last = self.remove(key);
        self.fibers.clear_current();
    }

    /// A fiber has ended without the scheduler's knowledge.
    pub fn forget_dead(&mut self, fiber: impl Into<Identity>) {
        if let Some(key) = self.fibers.find(fiber) {
            self.remove(key);
        }
    }

    /// Whether the fiber waits for an event that will never come: its process forked and the fiber stayed in the
    /// parent, or its scheduler was closed.
    pub fn is_lost(&self, key: FiberKey) -> bool {
        self.endings.has_lost && self.fibers.get(key).is_none_or(|record| record.state() == FiberState::Lost)
    }

    /// The fibers that a fork has left in the parent of this process: all that are parked, and those that have resumed
    /// one of them, which would have to end first. `survivor` is the current fiber.
    pub fn left_in_parent(&self, survivor: Option<FiberKey>) -> FxHashSet<FiberKey> {
        let is_parked = |key: FiberKey| self.fibers.get(key).is_some_and(|record| record.is_parked());
        let parked = self.fibers.iter().map(|(key, _)| key).filter(|key| is_parked(*key));
        let mut left: FxHashSet<FiberKey> = parked.flat_map(|key| self.resumers(key)).collect();
        for resumer in survivor
            .into_iter()
            .flat_map(|key| self.resumers(key))
            .filter(|key| Some(*key) == survivor || !is_parked(*key))
        {
            left.remove(&resumer);
        }
        left
    }

    /// Called in a forked child, before [`State::forget_other_fibers`]: what the fibers in `left` hold and wait for is
    /// free, as it is when a fork ends a thread. Returns what tells that such a fiber holds a Mutex.
    pub fn leave_waits(&self, ruby: &Ruby, left: &FxHashSet<FiberKey>, mutexes: Mutexes) -> FxHashSet<usize> {
        let records = || left.iter().filter_map(|key| self.fibers.get(*key));
        for record in records() {
            if let Wait::Block(blocker) = record.wait {
                mutexes.forget_waiters(blocker.get(), ruby);
            }
        }
        records().filter_map(|record| mutexes.number_of(record.fiber.get())).collect()
    }

    /// Called in a forked child, with the fibers of [`State::left_in_parent`], whose records go: Ruby collects them.
    pub fn remove_left(&mut self, left: &FxHashSet<FiberKey>) {
        for key in left {
            self.remove(*key);
        }
    }

    /// Called in a forked child, and when the scheduler is closed. `survivor` is the current fiber. It stays as it is,
    /// and so do the fibers that have resumed it. All others are lost, with their timers and operations.
    pub fn forget_other_fibers(&mut self, ruby: &Ruby, survivor: Option<FiberKey>, cause: LossCause) {
        self.endings.has_lost = true;
        let others: Vec<FiberKey> = self
            .fibers
            .iter()
            .filter(|(key, record)| Some(*key) != survivor && record.is_parked() && cause.loses(record))
            .map(|(key, _)| key)
            .collect();
        for key in others {
            self.fibers.lose(key);
        }
        self.operations.clear();
        let (fibers, is_lost) = (&self.fibers, |key| self.is_lost(key));
        closing_numbers::forget_closers(ruby, |closer| fibers.find(closer).is_some_and(is_lost));
        self.raises.clear();
        let fibers = &self.fibers;
        let stays = |key: FiberKey| {
            let runs = |record: &Record| record.state() == FiberState::Running && !record.blocking;
            Some(key) == survivor || fibers.get(key).is_some_and(runs)
        };
        self.closings.retain(stays);
        self.resources.retain_descriptors(stays);
        self.endings.overdue.clear();
        self.timers.retain(|action| stays(action.fiber()));
    }
}
