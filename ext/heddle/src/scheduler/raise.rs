//! An exception for a fiber, and how long it is meant.

use magnus::gc::Marker;
use magnus::typed_data::Obj;
use magnus::{Error, Ruby, TryConvert, Value, prelude::*};

use super::Scheduler;
use super::fiber_key::FiberKey;
use crate::ruby::error::make_exception;
use crate::ruby::pending_interrupts::Deferred;
use crate::ruby::value::PinnedValue;
use crate::ruby::{error, fiber};

/// An exception that is to be raised in a fiber.
#[derive(Debug, Clone, Copy)]
pub struct PendingRaise {
    exception: PinnedValue,
    message: Option<PinnedValue>,
    /// Until when it is valid.
    pub scope: RaiseScope,
    /// The fiber that it was sent to, while another fiber holds it, which that one has resumed.
    pub sent_to: Option<FiberKey>,
}

impl PendingRaise {
    /// For `raise(exception)`, or `raise(exception, message)`.
    pub fn new(exception: Value, message: Option<Value>, scope: RaiseScope) -> Self {
        // SAFETY: it is on the stack, or in the scheduler's state, where `State::mark` calls `PendingRaise::mark`.
        let pin = |value| unsafe { PinnedValue::assume_marked(value) };
        PendingRaise { exception: pin(exception), message: message.map(pin), scope, sent_to: None }
    }

    /// The first argument of `raise`: a class or an exception.
    pub fn exception(self) -> Value {
        self.exception.get()
    }

    /// The message, if [`PendingRaise::exception`] is to be called with one.
    pub fn message(self) -> Option<Value> {
        self.message.map(PinnedValue::get)
    }

    /// Tells the garbage collector what is held.
    pub fn mark(&self, marker: &Marker) {
        self.exception.mark(marker);
        if let Some(message) = self.message {
            message.mark(marker);
        }
    }

    /// Whether the fiber raises it again after having swallowed it. The fiber does that to which it was sent.
    pub fn is_repeated(self) -> bool {
        self.sent_to.is_none() && self.scope.is_repeated()
    }

    /// Whether it is a repeated exception with this scope.
    pub fn is_repeated_as(self, scope: RaiseScope) -> bool {
        self.is_repeated() && self.scope == scope
    }

    /// The error to raise in the fiber, which is the running one.
    pub fn to_error(self) -> Error {
        let exception = self.exception();
        if self.scope == RaiseScope::Kill {
            let killed = fiber::kill_current(&Ruby::get_with(exception));
            return killed.unwrap_or_else(|| make_exception(exception, None));
        }
        make_exception(exception, self.message())
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
    /// When its sender retracts it, by this number. The program has sent it.
    Message(u64),
    /// When its sender retracts it, by this number. The error of a child, which is raised where the fiber waits, and
    /// never between two instructions.
    Child(u64),
    /// Never.
    Fiber,
    /// Never. It ends the fiber, and is raised again if the fiber swallows it.
    End,
    /// Never. The fiber is killed in its next wait.
    Kill,
}

/// What a fiber does where an exception may be raised in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RaisePoint {
    /// It is in a wait.
    Wait,
    /// It is in a hook that may wait, or at the end of its block.
    Hook,
    /// It is between two instructions of the program.
    Program,
}

impl RaiseScope {
    /// Whether it is raised again if it is swallowed.
    pub fn is_repeated(self) -> bool {
        matches!(self, RaiseScope::Limit(_) | RaiseScope::End)
    }

    /// Whether it is raised in a fiber at this point.
    pub fn is_raised_at(self, point: RaisePoint) -> bool {
        match self {
            RaiseScope::Kill => point == RaisePoint::Wait,
            RaiseScope::Child(_) => point != RaisePoint::Program,
            _ => true,
        }
    }

    /// The number of the block that it limits.
    pub fn deadline(self) -> Option<u64> {
        match self {
            RaiseScope::Deadline(number) | RaiseScope::Limit(number) => Some(number),
            RaiseScope::Wait
            | RaiseScope::Message(_)
            | RaiseScope::Child(_)
            | RaiseScope::Fiber
            | RaiseScope::End
            | RaiseScope::Kill => None,
        }
    }
}

/// What is raised in a block that takes too long. On the stack.
#[derive(Debug, Clone, Copy)]
pub enum Limit {
    /// The exception that `raise` makes of these, once.
    Once {
        /// A class or an exception.
        exception: Value,
        /// The message, if `exception` is to be called with one.
        message: Option<Value>,
    },
    /// This exception, again and again until the block ends.
    Repeated(Value),
}

/// A shield holds back exceptions from a fiber: whether the fiber runs a shielded block, and which exceptions that
/// holds back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shield {
    /// The number of the last deadline that was set before the innermost shielded block began; `None` outside of such
    /// a block.
    since: Option<u64>,
    /// Whether a kill, at the end of a grace period, is not held back.
    lets_kill: bool,
}

impl Shield {
    /// A shield for a block that begins now. `last_deadline` is the highest number of a deadline so far.
    pub fn new(last_deadline: u64) -> Self {
        Shield { since: Some(last_deadline), lets_kill: false }
    }

    /// A shield against everything but a kill, at the end of a grace period.
    pub fn but_for_kill() -> Self {
        Shield { since: Some(u64::MAX), lets_kill: true }
    }

    /// Whether an exception with this scope has to wait for the end of the shielded block. An exception that ends only
    /// the current wait (its IO is closed) is no cancellation. A deadline that was set within the block is the block's
    /// own.
    pub fn holds_back(self, scope: RaiseScope) -> bool {
        match (self.since, scope) {
            (None, _) | (_, RaiseScope::Wait) => false,
            (Some(since), RaiseScope::Deadline(number) | RaiseScope::Limit(number)) => number <= since,
            (Some(_), RaiseScope::Kill) => !self.lets_kill,
            (Some(_), RaiseScope::Fiber | RaiseScope::Message(_) | RaiseScope::Child(_) | RaiseScope::End) => true,
        }
    }
}

/// Raises into a fiber that the program has suspended. A helper fiber does that, since a fiber that raises may not get
/// control back for long.
#[cold]
pub fn raise_by_helper(
    ruby: &Ruby,
    scheduler: &Scheduler,
    target: PinnedValue,
    pending_raise: PendingRaise,
) -> Result<(), Error> {
    struct RaiseBody;

    impl fiber::FiberBody for RaiseBody {
        fn run(ruby: &Ruby, _: Value, arguments: &[Value]) -> Result<Value, Error> {
            let nil = ruby.qnil().as_value();
            let Some((target, exception)) = arguments.split_first() else { return Ok(nil) };
            let scheduler = Obj::<Scheduler>::try_convert(fiber::scheduler(ruby))?;
            // No other fiber runs until the exception has arrived: the fiber that it was sent to cannot leave the block
            // meanwhile that it is meant for.
            let _hook = scheduler.enter(ruby)?;
            match fiber::raise_into(*target, exception) {
                // The fiber has ended meanwhile, so there is nothing left to interrupt.
                Err(refusal) if error::is_fiber_error(&refusal) => {}
                raised => drop(raised.deferred()),
            }
            Ok(nil)
        }
    }

    let nil = ruby.qnil().as_value();
    let raiser = fiber::spawn::<RaiseBody>(nil, nil)?;
    let arguments = [target.get(), pending_raise.exception(), pending_raise.message().unwrap_or(nil)];
    let count = arguments.len() - usize::from(pending_raise.message().is_none());
    let started = fiber::start(raiser, &arguments[..count]);
    if matches!(&started, Err(error) if error::is_lack_of_stacks(ruby, error)) {
        // The fiber raises it when it runs again.
        scheduler.state.borrow_mut().restore_raise(pending_raise);
        return Ok(());
    }
    started
}
