//! The exceptions that have been sent to a fiber, and the phase that each is in.
//!
//! Most of them are raised once. The limit of a block ([`RaiseScope::Limit`]) and the end of a fiber
//! ([`RaiseScope::End`]) are raised again if the fiber swallows them: they stay here until the block, or the fiber,
//! has ended.
//!
//! A fiber that unwinds may wait in its `ensure` clauses, and must not be interrupted there by the exception that
//! unwinds it. Ruby's `$!` tells the two cases apart. While the exception is in flight, in `ensure` clauses and in the
//! body of a `rescue`, `$!` is that exception, or one that it caused. When a `rescue`, or a `return` in an `ensure`,
//! has swallowed it, `$!` is what it was before.
//!
//! ```text
//!            raised             the fiber waits, `$!` is something else
//!     Pending ───────────▶ InFlight ───────────────────────────────────────▶ Swallowed
//!                             ▲                                                  │
//!                             └──────────────────────────────────────────────────┘
//!                                         raised again, after a pause
//! ```

use std::time::{Duration, Instant};

use heddle_core::queue::timers::{TimerKey, Timers};
use magnus::Value;

use super::raise::{PendingRaise, RaisePoint, RaiseScope, Shield};

/// The longest pause before an exception is raised again. There is a pause because a fiber that swallows the exception
/// in a loop must not take the CPU from other fibers.
const MAX_PAUSE: Duration = Duration::from_millis(50);

/// An exception counts as swallowed when this many ticks in a row do not find it in flight. One tick is not enough:
/// Ruby hides an exception that passes through C functions from the code that runs at a tick. The `ensure` parts of C
/// functions are short.
const TICKS_UNTIL_SWALLOWED: u32 = 16;

/// The phase of an exception.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RaisePhase {
    /// It has not been raised.
    Pending,
    /// It has been raised, and unwinds the fiber.
    InFlight,
    /// The fiber has swallowed it. It is pending again when the timer expires.
    Swallowed(TimerKey),
}

#[derive(Debug)]
struct Entry {
    pending_raise: PendingRaise,
    phase: RaisePhase,
    /// How many times it has been raised.
    times_raised: u32,
    /// How many ticks in a row have not found it in flight.
    ticks_absent: u32,
}

impl Entry {
    fn is_pending<A>(&self, timers: &Timers<A>) -> bool {
        match self.phase {
            RaisePhase::Pending => true,
            RaisePhase::InFlight => false,
            RaisePhase::Swallowed(timer) => !timers.is_pending(timer),
        }
    }
}

/// The exceptions that have been sent to a fiber, in order.
#[derive(Debug, Default)]
pub struct PendingRaises(Vec<Entry>);

impl PendingRaises {
    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All exceptions, whether they have been raised or not.
    pub fn iter(&self) -> impl Iterator<Item = &PendingRaise> {
        self.0.iter().map(|raise| &raise.pending_raise)
    }

    /// The number of exceptions that have not been raised.
    pub fn unraised(&self) -> usize {
        self.0.iter().filter(|raise| raise.phase == RaisePhase::Pending).count()
    }

    /// Whether there is an exception with this scope that has not been raised.
    pub fn is_unraised(&self, scope: RaiseScope) -> bool {
        self.0.iter().any(|raise| raise.pending_raise.scope == scope && raise.phase == RaisePhase::Pending)
    }

    /// Adds an exception. A repeated exception with the same scope as an earlier one is not added: the earlier one is
    /// pending again.
    pub fn push(&mut self, pending_raise: PendingRaise) {
        match self
            .0
            .iter_mut()
            .find(|raise| raise.pending_raise.scope == pending_raise.scope && pending_raise.scope.is_repeated())
        {
            Some(raise) => raise.phase = RaisePhase::Pending,
            None => self.0.push(Entry { pending_raise, phase: RaisePhase::Pending, times_raised: 0, ticks_absent: 0 }),
        }
    }

    /// Adds an exception before all others.
    pub fn push_first(&mut self, pending_raise: PendingRaise) {
        if pending_raise.scope.is_repeated() && self.iter().any(|sent| sent.scope == pending_raise.scope) {
            return self.push(pending_raise);
        }
        self.0.insert(0, Entry { pending_raise, phase: RaisePhase::Pending, times_raised: 0, ticks_absent: 0 });
    }

    /// Adds a repeated exception that is being raised by other means, such as `Fiber#raise`.
    pub fn push_in_flight(&mut self, pending_raise: PendingRaise) {
        self.0.push(Entry { pending_raise, phase: RaisePhase::InFlight, times_raised: 1, ticks_absent: 0 });
    }

    /// The index of the exception to raise next. Of several deadlines that have passed, the innermost block's is
    /// raised.
    pub fn next<A>(&self, shield: Shield, point: RaisePoint, timers: &Timers<A>) -> Option<usize> {
        let is_next = |raise: &Entry| {
            let scope = raise.pending_raise.scope;
            raise.is_pending(timers) && !shield.holds_back(scope) && scope.is_raised_at(point)
        };
        let first = self.0.iter().position(is_next)?;
        if self.0[first].pending_raise.scope.deadline().is_none() {
            return Some(first);
        }
        let candidates = self.0.iter().enumerate().filter(|(_, raise)| is_next(raise));
        candidates.max_by_key(|(_, raise)| raise.pending_raise.scope.deadline()).map(|(index, _)| index)
    }

    /// The exception at `index`.
    pub fn exception(&self, index: usize) -> Value {
        self.0[index].pending_raise.exception()
    }

    /// Whether the exception at `index` has never been raised.
    pub fn is_new(&self, index: usize) -> bool {
        self.0[index].times_raised == 0
    }

    /// Returns the exception at `index`, which is being raised. Unless it is a repeated one, it is removed.
    pub fn take(&mut self, index: usize) -> PendingRaise {
        let raise = &mut self.0[index];
        if !raise.pending_raise.scope.is_repeated() {
            return self.0.remove(index).pending_raise;
        }
        raise.phase = RaisePhase::InFlight;
        raise.times_raised += 1;
        raise.ticks_absent = 0;
        raise.pending_raise
    }

    /// Removes the exceptions with this scope.
    pub fn retract<A>(&mut self, scope: RaiseScope, timers: &mut Timers<A>) {
        self.0.retain(|raise| {
            let keeps = raise.pending_raise.scope != scope;
            if !keeps && let RaisePhase::Swallowed(timer) = raise.phase {
                timers.cancel(timer);
            }
            keeps
        });
    }

    /// Removes all repeated exceptions.
    pub fn retract_repeated<A>(&mut self, timers: &mut Timers<A>) {
        let repeated = |sent: &Self| sent.iter().map(|sent| sent.scope).find(|scope| scope.is_repeated());
        while let Some(scope) = repeated(self) {
            self.retract(scope, timers);
        }
    }

    /// Removes the exceptions that were meant only for the wait that has ended.
    pub fn drop_for_wait(&mut self) {
        self.0.retain(|raise| raise.pending_raise.scope != RaiseScope::Wait);
    }

    /// Whether a repeated exception has been raised.
    pub fn has_raised(&self) -> bool {
        self.0.iter().any(|raise| raise.phase != RaisePhase::Pending)
    }

    /// The `nth` of the repeated exceptions that have been raised.
    pub fn raised(&self, nth: usize) -> Option<PendingRaise> {
        self.0.iter().filter(|raise| raise.phase != RaisePhase::Pending).nth(nth).map(|raise| raise.pending_raise)
    }

    /// Updates the phase of a repeated exception after an observation. `action` is the action of the timer that ends
    /// the pause before it is raised again, and `now` the timers' time.
    pub fn update<A>(
        &mut self,
        scope: RaiseScope,
        observed: Observation,
        (timers, now): (&mut Timers<A>, Instant),
        action: A,
    ) {
        let Some(raise) = self.0.iter_mut().find(|raise| raise.pending_raise.scope == scope) else { return };
        raise.ticks_absent =
            if observed == Observation::AbsentAtTick { raise.ticks_absent.saturating_add(1) } else { 0 };
        let is_in_flight = match observed {
            Observation::InFlight => true,
            Observation::Absent => false,
            Observation::AbsentAtTick => raise.ticks_absent < TICKS_UNTIL_SWALLOWED,
        };
        match raise.phase {
            RaisePhase::InFlight if !is_in_flight => {
                let again_at = now + pause_after(raise.times_raised);
                raise.phase = RaisePhase::Swallowed(timers.insert(again_at, action));
            }
            RaisePhase::Swallowed(timer) if observed == Observation::InFlight => {
                timers.cancel(timer);
                raise.phase = RaisePhase::InFlight;
            }
            _ => {}
        }
    }
}

/// What `$!` says about an exception that has been raised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Observation {
    /// It is in flight.
    InFlight,
    /// It is not in flight, and the fiber is about to wait.
    Absent,
    /// A tick has not found it in flight. Ruby may have hidden it from the tick.
    AbsentAtTick,
}

/// How long to wait before an exception that has been raised `times_raised` times is raised again.
fn pause_after(times_raised: u32) -> Duration {
    Duration::from_millis(1 << times_raised.saturating_sub(1).min(6)).min(MAX_PAUSE)
}
