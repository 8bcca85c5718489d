//! The exceptions that no fiber's record holds, and the fibers that cannot raise what their records hold.

use magnus::Value;
use magnus::gc::Marker;

use crate::ruby::value::PinnedValue;
use crate::scheduler::raise::PendingRaise;
use crate::scheduler::record::FiberKey;

/// See the module.
#[derive(Default)]
pub struct Raises {
    /// For fibers that have no record.
    deferred: Vec<(PinnedValue, PendingRaise)>,
    /// Fibers that are suspended, but not parked by the scheduler. Exceptions are pending in them.
    elsewhere: Vec<FiberKey>,
    /// The exception to raise in every fiber while all are asked to end.
    stop: Option<PinnedValue>,
}

impl Raises {
    /// Adds an exception for a fiber that has no record, or for a proxy.
    pub fn defer(&mut self, fiber: Value, pending_raise: PendingRaise) {
        // SAFETY: `Raises::mark` marks it.
        let fiber = unsafe { PinnedValue::assume_marked(fiber) };
        self.deferred.push((fiber, pending_raise));
    }

    /// Takes the last exception that was added by [`Raises::defer`].
    pub fn take_deferred(&mut self) -> Option<(PinnedValue, PendingRaise)> {
        self.deferred.pop()
    }

    /// Exceptions are pending in a fiber that is suspended, but not parked by the scheduler.
    pub fn add_elsewhere(&mut self, key: FiberKey) {
        if !self.elsewhere.contains(&key) {
            self.elsewhere.push(key);
        }
    }

    /// Takes a fiber that was added by [`Raises::add_elsewhere`].
    pub fn take_elsewhere(&mut self) -> Option<FiberKey> {
        self.elsewhere.pop()
    }

    /// Whether there are deferred exceptions, or fibers that cannot raise what is pending in them.
    #[inline]
    pub fn has_deferred(&self) -> bool {
        !(self.deferred.is_empty() && self.elsewhere.is_empty())
    }

    /// Drops the deferred ones. What is pending in the fibers that were added by [`Raises::add_elsewhere`] stays.
    pub fn clear(&mut self) {
        self.deferred.clear();
        self.elsewhere.clear();
    }

    /// Drops the deferred ones for these fibers.
    pub fn forget(&mut self, is_meant: impl Fn(PinnedValue) -> bool) {
        self.deferred.retain(|(fiber, _)| !is_meant(*fiber));
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
