//! A read or a write that the backend does for a fiber.
//!
//! ```text
//!            submit                     its completion arrives
//!   (none) ─────────▶ submitted ────────────────────────────────▶ completed ──▶ its result
//!                         │                                           ▲
//!                         │ an exception is pending in the fiber      │ its completion arrives
//!                         └─────────────────▶ cancelled ──────────────┘
//! ```
//!
//! The kernel reads and writes the operation's memory until the completion arrives, so the fiber waits for that in any
//! case. `operations.rs` of the core is the state of all operations.

use std::time::{Duration, Instant};

use heddle_core::Operation;
use heddle_core::io::operations::Ticket;
use magnus::{Error, Ruby};

use crate::ruby::nogvl::without_gvl;
use crate::ruby::{error, interrupts};
use crate::scheduler::Scheduler;
use crate::scheduler::raise::{PendingRaise, RaisePoint, RaiseScope};
use crate::scheduler::record::FiberKey;
use crate::scheduler::state::OperationEnd;
use crate::scheduler::wait::Wait;

/// How many waits of a fiber may end at once, by what is raised in it, before its thread rests. Most operations have
/// ended by then.
const WAITS_WITHOUT_REST: u32 = 4;
/// How long a thread rests whose fiber cannot wait.
const REST: Duration = Duration::from_micros(500);

/// Transfers immediately what a cancelled operation was to transfer.
pub trait ImmediateTransfer {
    /// Whether that would succeed now.
    fn is_ready(&self) -> bool;
    /// Transfers, and returns the number of bytes if there are still any. Other fibers have run since the operation's
    /// start, so this looks up the descriptor again.
    fn transfer(&self) -> Option<i32>;
}

/// Why a fiber does not wait for the result of its operation.
enum Interruption {
    Exception(PendingRaise),
    /// `throw`, or a kill.
    Jump(Error),
    /// The time limit has passed.
    TimedOut,
}

impl From<Error> for Interruption {
    fn from(error: Error) -> Self {
        match error::exception_of(&error) {
            Some(exception) => Interruption::Exception(PendingRaise::new(exception, None, RaiseScope::Fiber)),
            None => Interruption::Jump(error),
        }
    }
}

impl Scheduler {
    /// Has the backend read or write, and waits for the result: the number of bytes, or a negated errno.
    ///
    /// A pending exception cancels the operation. Bytes that have been transferred by then are not lost: the fiber
    /// continues with them, and the exception is raised in its next wait.
    ///
    /// # Errors
    /// What was raised into the fiber; IOError if the descriptor was closed before the operation came to a result.
    ///
    /// Inlined: each fiber that waits for a socket has the caller's frame on its stack.
    ///
    /// # Safety
    /// The operation's memory is valid for as long as this call lasts.
    #[inline(always)]
    pub unsafe fn operate(&self, ruby: &Ruby, key: FiberKey, wait: Wait, operation: Operation) -> Result<i32, Error> {
        // An exception is postponed by one operation at most, or it would never reach a fiber that reads without end.
        self.raise_pending(key)?;
        // SAFETY: by this function's contract, as every path from here waits for the completion.
        let ticket = unsafe { self.start_operation(ruby, key, operation)? };
        let waited = self.await_end(ruby, key, wait, ticket, None);
        match self.take_result(ticket, &waited) {
            Some(result) => Ok(result),
            // Without a deadline it does not time out.
            None => Ok(self.end_early(ruby, key, (wait, ticket), waited, None)?.unwrap_or(-libc::ETIMEDOUT)),
        }
    }

    /// submitted → completed: waits for the end of the operation, or until an exception is pending in the fiber, or the
    /// deadline has passed. How the operation ended is left to [`Scheduler::take_result`].
    #[inline(always)]
    pub(super) fn await_end(
        &self,
        ruby: &Ruby,
        key: FiberKey,
        wait: Wait,
        ticket: Ticket,
        deadline: Option<Instant>,
    ) -> Result<(), Error> {
        self.wait_until(ruby, key, wait, deadline, &mut |state| {
            state.operations.is_finished(ticket) || state.may_have_raise(key) && state.pending_exception(key).is_some()
        })
    }

    /// The result of an operation that has ended by itself.
    #[inline(always)]
    pub(super) fn take_result(&self, ticket: Ticket, waited: &Result<(), Error>) -> Option<i32> {
        match waited {
            Ok(()) => self.state.borrow_mut().operations.take_own_result(ticket),
            Err(_kept) => None,
        }
    }

    /// The wait for a submitted operation has ended, but not by a result. Returns the result that it has in the end;
    /// `None` if it has none, as the deadline has passed.
    #[cold]
    #[inline(never)]
    pub(super) fn end_early(
        &self,
        ruby: &Ruby,
        key: FiberKey,
        (wait, ticket): (Wait, Ticket),
        waited: Result<(), Error>,
        immediate: Option<&dyn ImmediateTransfer>,
    ) -> Result<Option<i32>, Error> {
        let interruption = match waited {
            Err(error) => error.into(),
            Ok(()) => {
                let ended = self.state.borrow_mut().operations.take_result(ticket);
                if ended.is_some() {
                    return Err(error::stream_closed(ruby));
                }
                // An exception that is raised at waits, perhaps a kill.
                let pending_raise = self.state.borrow_mut().take_pending_raise_at(key, RaisePoint::Wait);
                let is_under_way = self.state.borrow().operations.under_way(ticket).is_some();
                match pending_raise {
                    Some(pending_raise) => Interruption::Exception(pending_raise),
                    None if is_under_way => Interruption::TimedOut,
                    // The scheduler has been closed, and its operations are gone.
                    None => error::scheduler_closed(ruby).into(),
                }
            }
        };
        // While a jump waits to continue, nothing may be raised, not even for a closed IO.
        let is_jump = matches!(interruption, Interruption::Jump(_));
        let immediate = immediate.filter(|immediate| !is_jump && immediate.is_ready());
        self.settle_cancelled(ruby, key, wait, ticket, interruption, immediate)
    }

    /// submitted → cancelled → completed: what the fiber does instead of waiting for the result.
    fn settle_cancelled(
        &self,
        ruby: &Ruby,
        key: FiberKey,
        wait: Wait,
        ticket: Ticket,
        interruption: Interruption,
        immediate: Option<&dyn ImmediateTransfer>,
    ) -> Result<Option<i32>, Error> {
        let (mut result, waited) = self.cancel_and_wait(ruby, key, wait, ticket);
        // The later exception ends the fiber, or replaces the earlier one, as when an `ensure` clause raises.
        let interruption = match waited {
            Ok(()) => interruption,
            Err(later) => Interruption::from(later),
        };
        if result == -libc::ECANCELED && !matches!(interruption, Interruption::Jump(_)) {
            result = immediate.and_then(|immediate| immediate.transfer()).unwrap_or(result);
        }
        match interruption {
            Interruption::Jump(error) => Err(error),
            Interruption::Exception(pending_raise) if result < 0 => Err(pending_raise.to_error()),
            Interruption::Exception(pending_raise) => {
                self.state.borrow_mut().put_back_raise(key, pending_raise);
                Ok(Some(result))
            }
            Interruption::TimedOut => {
                Ok(Some(result).filter(|result| ![-libc::ECANCELED, -libc::EINTR].contains(result)))
            }
        }
    }

    /// (none) → submitted. The descriptor was looked up after the last time that another fiber or thread could run: see
    /// [`crate::io::descriptors`].
    ///
    /// # Errors
    /// IOError if the scheduler has been closed, and so has no backend.
    ///
    /// # Safety
    /// The operation's memory is valid until
    /// [`Operations::take_result`](crate::scheduler::state::Operations::take_result) has told how it ended.
    #[inline(never)]
    pub unsafe fn start_operation(&self, ruby: &Ruby, key: FiberKey, operation: Operation) -> Result<Ticket, Error> {
        let mut reactor = self.io.reactor.borrow_mut();
        let Some(reactor) = reactor.as_mut() else {
            drop(reactor);
            return Err(error::scheduler_closed(ruby));
        };
        let ticket = {
            let mut state = self.state.borrow_mut();
            state.budget.submitted();
            state.begin_operation(key, Some(&operation))
        };
        // SAFETY: by this function's contract.
        unsafe { reactor.backend.submit(ticket.token(), operation) };
        Ok(ticket)
    }

    /// submitted → cancelled → completed, which takes a short time. Returns the result, and what was raised into the
    /// fiber meanwhile.
    pub fn cancel_and_wait(&self, ruby: &Ruby, key: FiberKey, wait: Wait, ticket: Ticket) -> (i32, Result<(), Error>) {
        self.state.borrow_mut().budget.submitted();
        let under_way = self.state.borrow().operations.under_way(ticket);
        if let Some(reactor) = self.io.reactor.borrow_mut().as_mut() {
            under_way.inspect(|token| reactor.backend.cancel(*token));
        }
        let raised = self.await_completion(ruby, key, wait, ticket);
        let ended = self.state.borrow_mut().operations.take_result(ticket);
        (ended.map_or(-libc::ECANCELED, OperationEnd::result), raised)
    }

    /// Waits for the end of an operation that cannot be cancelled, or has been. What is raised into the fiber meanwhile
    /// is returned when it has ended; the last of several.
    pub fn await_completion(&self, ruby: &Ruby, key: FiberKey, wait: Wait, ticket: Ticket) -> Result<(), Error> {
        let mut raised = Ok(());
        let mut cut_short = 0;
        let outer = self.state.borrow_mut().continue_wait(key, wait);
        loop {
            {
                let mut state = self.state.borrow_mut();
                if state.operations.is_finished(ticket) {
                    break;
                }
                state.set_waiting(key);
            }
            let parked = self.park(ruby, key);
            // A pending exception keeps the fiber runnable until it is raised, which is when the operation ends.
            if matches!(&parked, Err(_kept)) || self.state.borrow().pending_exception(key).is_some() {
                cut_short += 1;
            }
            let rested = if cut_short > WAITS_WITHOUT_REST { self.rest_without_switching(ruby) } else { Ok(()) };
            for outcome in [parked, rested] {
                if let Err(error) = outcome {
                    raised = Err(error);
                }
            }
        }
        self.state.borrow_mut().restore_wait(key, outer);
        raised
    }

    /// Sleeps for a moment, and handles what has ended then. For a fiber whose wait ends at once: Ruby raises a kill
    /// again at each switch, and an exception is pending that cannot be raised yet. Other threads run meanwhile.
    pub fn rest_without_switching(&self, ruby: &Ruby) -> Result<(), Error> {
        if without_gvl(ruby, || std::thread::sleep(REST), &|| {}).is_none() {
            interrupts::check(ruby)?;
        }
        self.poll(ruby).map(|_polled| ())
    }
}
