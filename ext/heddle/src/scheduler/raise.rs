//! An exception for a fiber, and how long it is meant.

use magnus::Error;
use magnus::gc::Marker;

use crate::ruby::error::make_exception;
use crate::ruby::fiber;
use crate::ruby::value::PinnedValue;

/// An exception that is to be raised in a fiber.
#[derive(Debug, Clone, Copy)]
pub struct PendingRaise {
    /// The arguments of `raise`: a class or an exception, and perhaps a message.
    pub exception: PinnedValue,
    /// The message, if `exception` is to be called with one.
    pub message: Option<PinnedValue>,
    /// Until when it is valid.
    pub scope: RaiseScope,
}

impl PendingRaise {
    /// Tells the garbage collector what is held.
    pub fn mark(&self, marker: &Marker) {
        self.exception.mark(marker);
        if let Some(message) = self.message {
            message.mark(marker);
        }
    }

    /// The error to raise in the fiber, which is the running one.
    pub fn to_error(self) -> Error {
        if self.scope == RaiseScope::Kill {
            return fiber::kill_current().unwrap_or_else(|| make_exception(self.exception, None));
        }
        make_exception(self.exception, self.message)
    }
}

/// When an exception that has not been raised yet is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RaiseScope {
    /// When the wait ends that was under way when the exception was sent.
    Wait,
    /// When the block of `timeout_after` with this number has ended.
    Deadline(u64),
    /// As for `Deadline`. The exception is raised again if the block swallows it.
    Limit(u64),
    /// When its sender retracts it, by this number.
    Message(u64),
    /// Never.
    Fiber,
    /// Never. It ends the fiber, and is raised again if the fiber swallows it.
    End,
    /// Never. The fiber is killed in its next wait.
    Kill,
}

impl RaiseScope {
    /// Whether it is raised again if it is swallowed.
    pub fn is_repeated(self) -> bool {
        matches!(self, RaiseScope::Limit(_) | RaiseScope::End)
    }

    /// The number of the block that it limits.
    pub fn deadline(self) -> Option<u64> {
        match self {
            RaiseScope::Deadline(number) | RaiseScope::Limit(number) => Some(number),
            RaiseScope::Wait | RaiseScope::Message(_) | RaiseScope::Fiber | RaiseScope::End | RaiseScope::Kill => None,
        }
    }
}

/// What is raised in a block that takes too long.
#[derive(Debug, Clone, Copy)]
pub enum Limit {
    /// The exception that `raise` makes of these, once.
    Once {
        /// A class or an exception.
        exception: PinnedValue,
        /// The message, if `exception` is to be called with one.
        message: Option<PinnedValue>,
    },
    /// This exception, again and again until the block ends.
    Repeated(PinnedValue),
}
