//! The limits of blocks: exceptions that timers raise, unless the block has ended by then.

use std::time::Instant;

use heddle_core::queue::timers::TimerKey;
use magnus::Value;
use rustc_hash::{FxHashMap, FxHashSet};

use super::{State, TimerAction};
use crate::scheduler::raise::{Limit, PendingRaise, RaiseScope};
use crate::scheduler::record::FiberKey;

/// The numbers of limits, of messages and of [scopes](super::scopes), in the order of their beginnings; and the limits
/// that can be moved.
#[derive(Default)]
pub struct Limits {
    last_number: u64,
    /// The timers of the limits that can be moved, by the numbers of their scopes. See [`State::move_limit`].
    movable: FxHashMap<u64, (FiberKey, TimerKey)>,
    /// If a test explores limits, the numbers of those that its program has set.
    explored: Option<FxHashSet<u64>>,
}

impl Limits {
    /// A number for a [`RaiseScope`] or a scope, higher than all earlier ones.
    pub fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// The last number that [`Limits::next_number`] has returned.
    pub fn last_number(&self) -> u64 {
        self.last_number
    }

    /// Makes the limit of a block movable. Returns a number for [`State::move_limit`].
    pub fn keep(&mut self, fiber: FiberKey, timer: TimerKey, scope: RaiseScope) -> Option<u64> {
        let number = scope.deadline()?;
        self.movable.insert(number, (fiber, timer));
        Some(number)
    }

    /// From now on a test decides when the limits of its program elapse.
    pub fn explore(&mut self) {
        self.explored = Some(FxHashSet::default());
    }

    /// Whether a test decides when the limits of its program elapse.
    #[inline]
    pub fn is_explored(&self) -> bool {
        self.explored.is_some()
    }

    /// The program of the test has set the limit with this number.
    pub fn add_explored(&mut self, number: u64) {
        if let Some(explored) = &mut self.explored {
            explored.insert(number);
        }
    }
}

impl State {
    /// Sets a timer for the block of a `timeout_after`. Returns the timer's key and the scope of what it raises.
    pub fn set_deadline(&mut self, at: Instant, fiber: FiberKey, limit: Limit) -> (TimerKey, RaiseScope) {
        let number = self.limits.next_number();
        let (pending_raise, scope) = match limit {
            Limit::Once { exception, message } => {
                let scope = RaiseScope::Deadline(number);
                (PendingRaise::new(exception, message, scope), scope)
            }
            Limit::Repeated(exception) => {
                let scope = RaiseScope::Limit(number);
                (PendingRaise::new(exception, None, scope), scope)
            }
        };
        (self.timers.insert(at, TimerAction::Deadline { fiber, pending_raise }), scope)
    }

    /// When the next limit that a test explores elapses, and its number. Of those for one time, the first that was set.
    fn next_explored_limit(&self) -> Option<(Instant, u64)> {
        let explored = self.limits.explored.as_ref()?;
        let limits = self.timers.deadlines().filter_map(|(at, action)| match action {
            TimerAction::Deadline { pending_raise, .. } => Some((at, pending_raise.scope.deadline()?)),
            TimerAction::Wake(_) | TimerAction::Grace(_) => None,
        });
        limits.filter(|(_, number)| explored.contains(number)).min()
    }

    /// The fiber with the number `running` passes a point. If a limit of the test's program is pending, and the
    /// exploration decides so, so much time passes there that the limit elapses, and all timers before it expire.
    /// Returns the limit's number.
    pub fn let_limit_elapse(&mut self, running: u64) -> Option<u64> {
        let (at, number) = self.next_explored_limit()?;
        if !self.exploration.as_mut()?.lets_limit_elapse(running) {
            return None;
        }
        self.clock.pass_until(at);
        let now = self.clock.now();
        self.note_poll(now, None);
        self.expire(now);
        Some(number)
    }

    /// Moves the limit of a block to another time. False if the block has ended, or the exception has been raised in
    /// it.
    pub fn move_limit(&mut self, number: u64, at: Instant, exception: Value) -> bool {
        let Some((fiber, timer)) = self.limits.movable.get(&number).copied() else { return false };
        let scope = RaiseScope::Limit(number);
        let Some(record) = self.fibers.get(fiber) else { return false };
        let sent = record.pending_raises.iter().any(|sent| sent.scope == scope);
        if sent && !record.pending_raises.is_unraised(scope) {
            return false;
        }
        self.timers.cancel(timer);
        self.retract(fiber, scope);
        let pending_raise = PendingRaise::new(exception, None, scope);
        let moved = self.timers.insert(at, TimerAction::Deadline { fiber, pending_raise });
        self.limits.movable.insert(number, (fiber, moved));
        true
    }

    /// The block of a limit has ended: the limit raises nothing any more.
    pub fn drop_limit(&mut self, key: FiberKey, timer: TimerKey, scope: RaiseScope) {
        let kept = scope.deadline().and_then(|number| self.limits.movable.remove(&number));
        self.timers.cancel(kept.map_or(timer, |(_, moved)| moved));
        self.retract(key, scope);
    }
}
