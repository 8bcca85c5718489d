//! Fibers that are asked to end, and how long they may take for that.
//!
//! A request to end raises an exception in the fiber, and raises it again if the fiber swallows it. A fiber that has
//! not ended when its grace period is over is killed, as `Fiber#kill` does it: its `ensure` clauses run, and cannot
//! wait. A fiber that survives this is abandoned, and so is one that cannot be killed, because it computes: the
//! scheduler forgets it, and never switches to it again.

use std::time::{Duration, Instant};

use heddle_core::Token;
use heddle_core::timers::TimerKey;

use super::{State, TimerAction};
use crate::ruby::value::PinnedValue;
use crate::scheduler::fibers::FiberKey;
use crate::scheduler::raise::{PendingRaise, RaiseScope};
use crate::scheduler::record::FiberState;
use crate::scheduler::wait::Wait;

/// How long a fiber that was killed may run before it is abandoned.
const GRACE_AFTER_KILL: Duration = Duration::from_millis(100);
/// The longest chain of fibers, each resumed by the next, that [`State::responsible_fiber`] follows.
const MAX_RESUME_DEPTH: usize = 64;

/// A request to a fiber to end.
#[derive(Debug)]
pub struct EndRequest {
    /// Expires with the grace period.
    timer: TimerKey,
    /// `Record::waits` at the beginning of the grace period. If it is unchanged and the fiber is in the run queue, the
    /// fiber has not run since.
    waits: u32,
    /// When the exception was raised in the fiber for the first time.
    raised_at: Option<Instant>,
    /// The grace period was over once, and the fiber was killed.
    killed: bool,
}

impl EndRequest {
    /// Whether the fiber is being killed.
    pub fn is_killed(&self) -> bool {
        self.killed
    }
}

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

/// What remains of an abandoned fiber.
#[derive(Debug, Default)]
pub struct Abandoned {
    /// The fiber, and the fibers that it has resumed. Ruby's lists of waiters point into their stacks, so they must
    /// never be freed.
    pub fibers: Vec<PinnedValue>,
    /// Their operations, which are to be cancelled.
    pub operations: Vec<Token>,
}

impl State {
    /// Asks a fiber to end: `exception` is raised in it until it ends. A second request changes nothing.
    pub fn request_end(&mut self, key: FiberKey, exception: PinnedValue) {
        let Some(record) = self.fibers.get_mut(key).filter(|record| !record.end_requested) else { return };
        record.end_requested = true;
        self.begin_grace(key);
        self.send_raise(key, PendingRaise { exception, message: None, scope: RaiseScope::End });
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
        if let Some(request) = self.fibers.get_mut(key).and_then(|record| record.end_request.as_mut()) {
            request.raised_at.get_or_insert_with(Instant::now);
        }
    }

    /// Whether the scheduler is ending all fibers, and has not asked this one yet.
    pub fn must_be_stopped(&self, key: FiberKey) -> bool {
        let stoppable = |key| self.fibers.get(key).is_some_and(|record| record.is_stoppable());
        self.stop.is_some() && stoppable(key) && {
            let responsible_fiber = self.responsible_fiber(key);
            responsible_fiber == key || !self.fibers.get(responsible_fiber).is_some_and(|record| record.end_requested)
        }
    }

    /// The managed fiber that is responsible for this one: this one if it is managed, or else the first managed fiber
    /// in the chain of fibers that have resumed it. If there is none, the fiber itself.
    pub fn responsible_fiber(&self, key: FiberKey) -> FiberKey {
        let mut candidate = key;
        for _ in 0..MAX_RESUME_DEPTH {
            match self.fibers.get(candidate) {
                Some(record) if record.managed => return candidate,
                Some(record) => match record.resumed_by {
                    Some(resumer) => candidate = resumer,
                    None => return key,
                },
                None => return key,
            }
        }
        key
    }

    /// Starts the fiber's grace period.
    pub fn begin_grace(&mut self, key: FiberKey) {
        let Some(grace) = self.grace else { return };
        let Some(record) = self.fibers.get_mut(key).filter(|record| record.end_request.is_none()) else { return };
        let timer = self.timers.insert(Instant::now() + grace, TimerAction::Grace(key));
        record.end_request = Some(Box::new(EndRequest { timer, waits: record.waits, raised_at: None, killed: false }));
    }

    /// The timer of a fiber's grace period has expired. The grace period is prolonged if a shield holds back the end,
    /// or if the fiber has not run since.
    pub fn end_grace(&mut self, key: FiberKey, now: Instant) {
        let Some(grace_period) = self.grace else { return };
        let Some(record) = self.fibers.get_mut(key) else { return };
        let shielded = record.task.shield.holds_back(RaiseScope::End);
        let (is_queued, waits) = (record.state() == FiberState::Runnable, record.waits);
        let Some(request) = record.end_request.as_mut() else { return };
        let grace = if request.killed { GRACE_AFTER_KILL } else { grace_period };
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

    /// The fiber could not be ended now: sets a timer to try again.
    pub fn prolong_grace(&mut self, key: FiberKey) {
        let timer = self.timers.insert(Instant::now() + GRACE_AFTER_KILL, TimerAction::Grace(key));
        if let Some(request) = self.fibers.get_mut(key).and_then(|record| record.end_request.as_mut()) {
            request.timer = timer;
        }
    }

    /// The next fiber whose grace period is over.
    pub fn take_overdue(&mut self) -> Option<FiberKey> {
        self.overdue.pop()
    }

    /// How to end a fiber whose grace period is over. `None` if it has ended.
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

    /// Kills a waiting fiber: it is woken, and killed when it runs.
    pub fn kill(&mut self, key: FiberKey, exception: PinnedValue) {
        let timer = self.timers.insert(Instant::now() + GRACE_AFTER_KILL, TimerAction::Grace(key));
        let Some(record) = self.fibers.get_mut(key) else { return };
        record.end_request =
            Some(Box::new(EndRequest { timer, waits: record.waits, raised_at: Some(Instant::now()), killed: true }));
        record.pending_raises.push_first(PendingRaise { exception, message: None, scope: RaiseScope::Kill });
        self.wake(key);
    }

    /// Forgets a fiber that has not ended, and the fibers that it has resumed.
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
        // If the program switches to such a fiber all the same, its wait raises an error.
        self.has_lost_fibers = true;
        for key in lost {
            self.fibers.remove(key);
        }
        abandoned
    }

    /// The fiber has run its block, and ends. Requests to end it are dropped. Returns its exit observer.
    ///
    /// The rest of the fiber's life counts as a hook: an exception raised while the exit observer is notified would
    /// leave other fibers waiting for ever.
    pub fn end_block(&mut self, key: FiberKey) -> Option<PinnedValue> {
        let record = self.fibers.get_mut(key)?;
        record.hook_depth += 1;
        record.end_requested = true;
        if !record.pending_raises.is_empty() {
            record.pending_raises.retract_repeated(&mut self.timers);
        }
        if let Some(request) = record.end_request.take() {
            self.timers.cancel(request.timer);
        }
        record.task.exit_observer
    }

    /// The fiber returns to Ruby, and is dead then. It must not be preempted any more, since it has no record.
    pub fn end_fiber(&mut self, key: FiberKey) {
        self.counters.ended += 1;
        self.ending = self.fibers.remove(key);
        self.trace_end(key);
        self.clear_current();
    }

    /// A fiber that was dequeued has ended without the scheduler's knowledge.
    pub fn forget_dead(&mut self, fiber: PinnedValue) {
        if let Some(key) = self.fibers.find(fiber) {
            self.fibers.remove(key);
        }
    }

    /// Whether the fiber has been passed to [`State::end_fiber`].
    pub fn is_ending(&self, fiber: PinnedValue) -> bool {
        self.ending == Some(fiber)
    }
}
