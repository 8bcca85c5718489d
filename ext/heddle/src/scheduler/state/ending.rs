//! Fibers that are told to end, and how long they may take.
//!
//! The end is raised again in a fiber that swallows it. A fiber that has not ended when its grace is over is killed, as
//! `Fiber#kill` does it: its `ensure` clauses run, and cannot wait. A fiber that survives this, or computes, is
//! abandoned: the scheduler forgets it, and never switches to it again.

use std::time::{Duration, Instant};

use heddle_core::Token;
use heddle_core::timers::TimerKey;

use super::{State, TimerAction};
use crate::ruby::value::PinnedValue;
use crate::scheduler::fibers::{FiberKey, FiberState, PendingRaise, RaiseScope};
use crate::scheduler::wait::Wait;

/// For how long a fiber that has been killed may still run before it is abandoned.
const GRACE_AFTER_KILL: Duration = Duration::from_millis(100);
/// More fibers than this never resume one another in a row.
const MAX_RESUME_DEPTH: usize = 64;

/// A fiber has been told to end.
#[derive(Debug)]
pub struct EndRequest {
    /// Runs out with the grace.
    timer: TimerKey,
    /// How often the fiber had begun to wait when the grace began: a fiber that is still in the run queue, and has not waited
    /// since, has had no turn.
    waits: u32,
    /// When the end was raised in the fiber for the first time.
    raised_at: Option<Instant>,
    /// The grace was over once.
    killed: bool,
}

impl EndRequest {
    /// Whether the fiber is being killed.
    pub fn is_killed(&self) -> bool {
        self.killed
    }
}

/// What is to be done about a fiber whose grace is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndAction {
    /// It waits: to kill it makes it leave the lists of waiters that it is on.
    Kill,
    /// It cannot be killed, as it computes or has resumed another one.
    Abandon,
    /// It has been killed, and survived that.
    Forget,
}

/// What an abandoned fiber leaves behind.
#[derive(Debug, Default)]
pub struct Abandoned {
    /// The fiber, and those that it has resumed. Their stacks are in Ruby's lists of waiters, so they must never be freed.
    pub fibers: Vec<PinnedValue>,
    /// What the kernel does for them, which is to be cancelled.
    pub operations: Vec<Token>,
}

impl State {
    /// Has `exception` raised in a fiber until it ends. Nothing happens to a fiber that has been told before.
    pub fn request_end(&mut self, key: FiberKey, exception: PinnedValue) {
        let Some(record) = self.fibers.get_mut(key).filter(|record| !record.end_requested) else { return };
        record.end_requested = true;
        self.begin_grace(key);
        self.send_raise(key, PendingRaise { exception, message: None, scope: RaiseScope::End });
    }

    /// The end is being raised in a fiber. The fiber that answers for it (see [`State::responsible_fiber`]) has been told with
    /// that.
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

    /// The end has been raised in the fiber.
    pub fn note_end_raised(&mut self, key: FiberKey) {
        if let Some(request) = self.fibers.get_mut(key).and_then(|record| record.end_request.as_mut()) {
            request.raised_at.get_or_insert_with(Instant::now);
        }
    }

    /// The scheduler is being stopped, and the fiber has not been told to end yet.
    pub fn must_be_stopped(&self, key: FiberKey) -> bool {
        let stoppable = |key| self.fibers.get(key).is_some_and(|record| record.is_stoppable());
        self.stop.is_some() && stoppable(key) && {
            let responsible_fiber = self.responsible_fiber(key);
            responsible_fiber == key || !self.fibers.get(responsible_fiber).is_some_and(|record| record.end_requested)
        }
    }

    /// The fiber that answers for what happens to this one: a fiber of the scheduler's that has resumed it, or itself.
    pub fn responsible_fiber(&self, key: FiberKey) -> FiberKey {
        let mut at = key;
        for _ in 0..MAX_RESUME_DEPTH {
            match self.fibers.get(at) {
                Some(record) if record.managed => return at,
                Some(record) => match record.resumed_by {
                    Some(resumer) => at = resumer,
                    None => return key,
                },
                None => return key,
            }
        }
        key
    }

    /// The time begins that the fiber may take for its end.
    pub fn begin_grace(&mut self, key: FiberKey) {
        let Some(grace) = self.grace else { return };
        let Some(record) = self.fibers.get_mut(key).filter(|record| record.end_request.is_none()) else { return };
        let timer = self.timers.insert(Instant::now() + grace, TimerAction::Grace(key));
        record.end_request = Some(Box::new(EndRequest { timer, waits: record.waits, raised_at: None, killed: false }));
    }

    /// The timer of a fiber's grace has run out. The grace goes on for a fiber that has had no turn since, or whose end is
    /// held back by a shield.
    pub fn end_grace(&mut self, key: FiberKey, now: Instant) {
        let Some(whole) = self.grace else { return };
        let Some(record) = self.fibers.get_mut(key) else { return };
        let shielded = record.task.shield.holds_back(RaiseScope::End);
        let (is_queued, waits) = (record.state() == FiberState::Runnable, record.waits);
        let Some(request) = record.end_request.as_mut() else { return };
        let grace = if request.killed { GRACE_AFTER_KILL } else { whole };
        let again_at = match request.raised_at {
            _ if shielded => Some(now + grace),
            Some(raised_at) if !request.killed => Some(raised_at + grace).filter(|end| *end > now),
            _ if is_queued && request.waits == waits => Some(now + grace),
            _ => None,
        };
        match again_at {
            Some(again_at) => request.timer = self.timers.insert(again_at, TimerAction::Grace(key)),
            None => self.overdue.push(key),
        }
    }

    /// The fiber could not be dealt with: it is tried again.
    pub fn prolong_grace(&mut self, key: FiberKey) {
        let timer = self.timers.insert(Instant::now() + GRACE_AFTER_KILL, TimerAction::Grace(key));
        if let Some(request) = self.fibers.get_mut(key).and_then(|record| record.end_request.as_mut()) {
            request.timer = timer;
        }
    }

    /// The next fiber whose grace is over.
    pub fn take_overdue(&mut self) -> Option<FiberKey> {
        self.overdue.pop()
    }

    /// What is to be done about it. `None` if it has ended.
    pub fn end_action(&self, key: FiberKey) -> Option<EndAction> {
        let record = self.fibers.get(key)?;
        let killed = record.end_request.as_ref().is_some_and(|request| request.killed);
        let waits = record.is_parked() && record.wait != Wait::Preempted;
        Some(match (killed, waits) {
            (true, _) => EndAction::Forget,
            (false, true) => EndAction::Kill,
            (false, false) => EndAction::Abandon,
        })
    }

    /// Has a fiber killed that waits.
    pub fn kill(&mut self, key: FiberKey, exception: PinnedValue) {
        let timer = self.timers.insert(Instant::now() + GRACE_AFTER_KILL, TimerAction::Grace(key));
        let Some(record) = self.fibers.get_mut(key) else { return };
        record.end_request =
            Some(Box::new(EndRequest { timer, waits: record.waits, raised_at: Some(Instant::now()), killed: true }));
        record.pending_raises.push_first(PendingRaise { exception, message: None, scope: RaiseScope::Kill });
        self.wake(key);
    }

    /// Forgets a fiber that has not ended, and those that it has resumed.
    pub fn abandon(&mut self, key: FiberKey) -> Abandoned {
        let lost: Vec<FiberKey> =
            self.fibers.iter().map(|(other, _)| other).filter(|other| self.responsible_fiber(*other) == key).collect();
        let is_lost = |key: &FiberKey| lost.contains(key);
        let mut abandoned = Abandoned::default();
        abandoned.fibers.extend(lost.iter().filter_map(|key| self.fibers.get(*key)).map(|record| record.fiber));
        abandoned.operations.extend(self.operations.abandon_all_of(&lost));
        self.timers.retain(|action| !is_lost(&action.fiber()));
        self.deferred_raises.retain(|(fiber, _)| !abandoned.fibers.contains(fiber));
        self.close_waiters.forget_fibers(|fiber| is_lost(&fiber));
        if self.current.is_some_and(|(_, running)| is_lost(&running)) {
            self.clear_current();
        }
        // One that gets the control all the same, from the program, is told so.
        self.has_lost_fibers = true;
        lost.iter().for_each(|key| self.fibers.remove(*key));
        abandoned
    }

    /// The fiber has run its block, and ends. What was to end it is void.
    pub fn end_block(&mut self, key: FiberKey) {
        if let Some(record) = self.fibers.get_mut(key) {
            record.end_requested = true;
            record.pending_raises.retract_repeated(&mut self.timers);
            if let Some(request) = record.end_request.take() {
                self.timers.cancel(request.timer);
            }
        }
    }

    /// The fiber is about to be dead: nothing happens any more but its return to Ruby, where it must not be preempted, as
    /// it is in no book.
    pub fn end_fiber(&mut self, key: FiberKey) {
        self.ending = self.fibers.get(key).map(|record| record.fiber);
        self.fibers.remove(key);
        self.clear_current();
    }

    /// Whether the fiber has been passed to [`State::end_fiber`].
    pub fn is_ending(&self, fiber: PinnedValue) -> bool {
        self.ending == Some(fiber)
    }
}
