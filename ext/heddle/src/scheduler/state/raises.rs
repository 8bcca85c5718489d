//! The exceptions that no fiber's record holds.

use magnus::Value;
use magnus::gc::Marker;

use crate::ruby::value::PinnedValue;
use crate::scheduler::raise::{PendingRaise, RaiseScope};

/// See the module.
#[derive(Default)]
pub struct Raises {
    /// For fibers that are suspended, but not parked by the scheduler.
    deferred: Vec<(PinnedValue, PendingRaise)>,
    /// The exception to raise in every fiber while all are asked to end.
    stop: Option<PinnedValue>,
}

impl Raises {
    /// Adds an exception for a fiber that is suspended, but not parked by the scheduler.
    pub fn defer(&mut self, fiber: Value, pending_raise: PendingRaise) {
        // SAFETY: `Raises::mark` marks it.
        let fiber = unsafe { PinnedValue::assume_marked(fiber) };
        self.deferred.push((fiber, pending_raise));
    }

    /// Takes the last exception that was added by [`Raises::defer`].
    pub fn take_deferred(&mut self) -> Option<(PinnedValue, PendingRaise)> {
        self.deferred.pop()
    }

    /// Whether there are deferred ones.
    #[inline]
    pub fn has_deferred(&self) -> bool {
        !self.deferred.is_empty()
    }

    /// Drops the deferred ones.
    pub fn clear(&mut self) {
        self.deferred.clear();
    }

    /// Drops the deferred ones for these fibers.
    pub fn forget(&mut self, is_meant: impl Fn(PinnedValue) -> bool) {
        self.deferred.retain(|(fiber, _)| !is_meant(*fiber));
    }

    /// Drops the deferred ones with this scope, which has ended.
    pub fn retract(&mut self, scope: RaiseScope) {
        self.deferred.retain(|(_, pending_raise)| pending_raise.scope != scope);
    }

    /// All fibers are asked to end from now on, by this exception.
    pub fn begin_stopping(&mut self, exception: Value) {
        // SAFETY: `Raises::mark` marks it.
        self.stop = Some(unsafe { PinnedValue::assume_marked(exception) });
    }

    /// The inverse of [`Raises::begin_stopping`].
    pub fn end_stopping(&mut self) {
        self.stop = None;
    }

    /// Whether all fibers are being asked to end.
    #[inline]
    pub fn is_stopping(&self) -> bool {
        self.stop.is_some()
    }

    /// The exception that asks them to end.
    pub fn stop(&self) -> Option<Value> {
        self.stop.map(PinnedValue::get)
    }

    /// Tells the garbage collector what is held.
    pub fn mark(&self, marker: &Marker) {
        for (fiber, pending_raise) in &self.deferred {
            fiber.mark(marker);
            pending_raise.mark(marker);
        }
        self.stop.inspect(|stop| stop.mark(marker));
    }
}
