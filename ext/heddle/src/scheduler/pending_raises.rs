//! The exceptions that have been sent to a fiber, and the phase that each is in.
//!
//! Most of them are raised once. The limit of a block ([`RaiseScope::Limit`]) and the end of a fiber
//! ([`RaiseScope::End`]) are raised again if the fiber swallows them: they stay here until the block, or the fiber,
//! has ended.

use std::time::Instant;

use heddle_core::queue::raise_phase::{Observation, RaisePhase};
use heddle_core::queue::timers::Timers;
use magnus::Value;

use super::raise::{PendingRaise, RaisePoint, RaiseScope, Shield};

#[derive(Debug)]
struct Entry {
    pending_raise: PendingRaise,
    phase: RaisePhase,
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
        self.0.iter().filter(|raise| !raise.phase.is_raised()).count()
    }

    /// Whether there is an exception with this scope that has not been raised.
    pub fn is_unraised(&self, scope: RaiseScope) -> bool {
        self.0.iter().any(|raise| raise.pending_raise.scope == scope && !raise.phase.is_raised())
    }

    /// Adds an exception. A repeated exception with the same scope as an earlier one is not added: the earlier one is
    /// pending again.
    pub fn push(&mut self, pending_raise: PendingRaise) {
        match self
            .0
            .iter_mut()
            .find(|raise| pending_raise.is_repeated() && raise.pending_raise.is_repeated_as(pending_raise.scope))
        {
            Some(raise) => raise.phase.send_again(),
            None => self.0.push(Entry { pending_raise, phase: RaisePhase::default() }),
        }
    }

    /// Adds an exception before all others.
    pub fn push_first(&mut self, pending_raise: PendingRaise) {
        if pending_raise.is_repeated() && self.repeats(pending_raise.scope) {
            return self.push(pending_raise);
        }
        self.0.insert(0, Entry { pending_raise, phase: RaisePhase::default() });
    }

    /// Whether an exception with this scope is raised until the scope has ended.
    pub fn repeats(&self, scope: RaiseScope) -> bool {
        self.iter().any(|sent| sent.is_repeated_as(scope))
    }

    /// Removes the last exception that was sent to a fiber that has resumed this one.
    pub fn take_last_for_resumer(&mut self) -> Option<PendingRaise> {
        let index = self.0.iter().rposition(|sent| sent.pending_raise.sent_to.is_some())?;
        Some(self.0.remove(index).pending_raise)
    }

    /// Adds a repeated exception that is being raised by other means.
    pub fn push_in_flight(&mut self, pending_raise: PendingRaise) {
        self.0.push(Entry { pending_raise, phase: RaisePhase::in_flight() });
    }

    /// The index of the exception to raise next. Of several deadlines that have passed, the innermost block's is
    /// raised.
    pub fn next<A>(&self, shield: Shield, point: RaisePoint, timers: &Timers<A>) -> Option<usize> {
        self.next_that(shield, point, timers, |_| true)
    }

    /// Like [`PendingRaises::next`], of those whose index `is_let_through`.
    pub fn next_that<A>(
        &self,
        shield: Shield,
        point: RaisePoint,
        timers: &Timers<A>,
        is_let_through: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let is_next = |(index, raise): &(usize, &Entry)| {
            let scope = raise.pending_raise.scope;
            let may_come = raise.phase.is_pending(timers) && !shield.holds_back(scope) && scope.is_raised_at(point);
            may_come && is_let_through(*index)
        };
        let mut candidates = self.0.iter().enumerate().filter(is_next);
        let (first, raise) = candidates.next()?;
        if raise.pending_raise.scope.deadline().is_none() {
            return Some(first);
        }
        let candidates = self.0.iter().enumerate().filter(is_next);
        candidates.max_by_key(|(_, raise)| raise.pending_raise.scope.deadline()).map(|(index, _)| index)
    }

    /// The exception at `index`.
    pub fn exception(&self, index: usize) -> Value {
        self.0[index].pending_raise.exception()
    }

    /// Whether the exception at `index` has never been raised.
    pub fn is_new(&self, index: usize) -> bool {
        self.0[index].phase.is_new()
    }

    /// Returns the exception at `index`, which is being raised. Unless it is a repeated one, it is removed.
    pub fn take(&mut self, index: usize) -> PendingRaise {
        let raise = &mut self.0[index];
        if !raise.pending_raise.is_repeated() {
            return self.0.remove(index).pending_raise;
        }
        raise.phase.raise();
        raise.pending_raise
    }

    /// Removes the exceptions with this scope.
    pub fn retract<A>(&mut self, scope: RaiseScope, timers: &mut Timers<A>) {
        self.0.retain(|raise| {
            let keeps = raise.pending_raise.scope != scope;
            if !keeps {
                raise.phase.retract(timers);
            }
            keeps
        });
    }

    /// Removes all repeated exceptions.
    pub fn retract_repeated<A>(&mut self, timers: &mut Timers<A>) {
        let repeated = |sent: &Self| sent.iter().find(|sent| sent.is_repeated()).map(|sent| sent.scope);
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
        self.0.iter().any(|raise| raise.phase.is_raised())
    }

    /// The `nth` of the repeated exceptions that have been raised.
    pub fn raised(&self, nth: usize) -> Option<PendingRaise> {
        self.0.iter().filter(|raise| raise.phase.is_raised()).nth(nth).map(|raise| raise.pending_raise)
    }

    /// See [`RaisePhase::observe`].
    pub fn observe<A>(
        &mut self,
        scope: RaiseScope,
        observed: Observation,
        timers: (&mut Timers<A>, Instant),
        action: A,
    ) {
        if let Some(raise) = self.0.iter_mut().find(|raise| raise.pending_raise.scope == scope) {
            raise.phase.observe(observed, timers, action);
        }
    }
}
