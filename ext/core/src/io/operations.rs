//! The operations that a backend, or a worker, performs for fibers: the life of each, from its submission until its
//! fiber has taken the result.
//!
//! `tests/simulation` runs them, the run queue and the timers over a simulated backend.

use std::os::fd::RawFd;

use slab::Slab;

use crate::io::backend::{Completion, Operation, Token};
use crate::io::descriptor_index::DescriptorIndex;

/// An operation that the backend, or a worker, performs for a fiber.
///
/// ```text
///            begin                    its completion arrives            take_result
///   (none) ─────────▶ under way ───────────────────────────▶ finished ─────────────▶ (none)
///                         │                                                             ▲
///                         └── abandon: no fiber waits for it any more ── completion ────┘
/// ```
///
/// Until its result is taken, the operation uses its descriptor's number. When the number is closed, the operation is
/// marked as closed. Its result is then discarded, as Ruby discards it for a thread.
struct Pending<F, M> {
    fiber: F,
    serial: u32,
    result: Option<i32>,
    /// No fiber waits for it any more.
    abandoned: bool,
    /// Its descriptor was closed before its result was taken.
    closed: bool,
    /// The memory that it reads into, if the IO that owns the memory was closed meanwhile.
    memory: Option<M>,
}

impl<F, M> Pending<F, M> {
    fn is_under_way(&self) -> bool {
        self.result.is_none()
    }
}

/// Names an operation to the fiber that has begun it. A token is used again when an operation has ended, so it may name
/// another fiber's by then: a fiber that was abandoned in the middle of a wait may get control again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    index: u32,
    serial: u32,
}

impl Ticket {
    /// What names the operation to the backend, and in completions.
    pub fn token(self) -> Token {
        self.index as Token
    }
}

/// How an operation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationEnd {
    /// The backend's result. The operation completed, or was cancelled.
    Result(i32),
    /// Its descriptor was closed.
    Closed,
}

impl OperationEnd {
    /// The backend's result; for a closed descriptor the same as for a cancelled operation.
    pub fn result(self) -> i32 {
        match self {
            OperationEnd::Result(result) => result,
            OperationEnd::Closed => -libc::ECANCELED,
        }
    }
}

/// The names of the kinds of operations, as users see them. The last is a job for a pool of threads.
pub const OPERATION_KINDS: [&str; 6] = ["ready", "read", "write", "receive", "send", "job"];

/// The index of the operation's kind in [`OPERATION_KINDS`]; `None` is a job.
#[inline]
pub fn kind(operation: Option<&Operation>) -> usize {
    match operation {
        Some(Operation::Ready { .. }) => 0,
        Some(Operation::Read { .. }) => 1,
        Some(Operation::Write { .. }) => 2,
        Some(Operation::Receive { .. }) => 3,
        Some(Operation::Send { .. }) => 4,
        None => 5,
    }
}

/// The operations of a scheduler. `F` names a fiber, and `M` is memory that an operation may own.
pub struct Operations<F, M> {
    pending: Slab<Pending<F, M>>,
    /// The serial number of the next one.
    serial: u32,
    /// How many have begun of each of the [`OPERATION_KINDS`].
    begun: [u64; OPERATION_KINDS.len()],
    /// The operations by descriptor number.
    index: DescriptorIndex,
    /// The operations on closed numbers that have not been cancelled.
    to_cancel: Vec<Token>,
}

impl<F, M> Default for Operations<F, M> {
    fn default() -> Self {
        Operations {
            pending: Slab::new(),
            serial: 0,
            begun: Default::default(),
            index: DescriptorIndex::default(),
            to_cancel: Vec::new(),
        }
    }
}

impl<F: Copy + PartialEq, M: Clone> Operations<F, M> {
    /// The number of operations that are under way, or have results that no fiber has taken.
    pub fn len(&self) -> usize {
        self.pending.len()
    }

    /// How many have begun of each of the [`OPERATION_KINDS`].
    pub fn begun(&self) -> [u64; OPERATION_KINDS.len()] {
        self.begun
    }

    /// The counts start at zero again.
    pub fn reset_counts(&mut self) {
        self.begun = Default::default();
    }

    /// Adds a fiber's operation, on a descriptor or on none. The caller submits it with the ticket's token.
    #[inline]
    pub fn begin(&mut self, fiber: F, operation: Option<&Operation>) -> Ticket {
        let serial = self.serial;
        self.serial = serial.wrapping_add(1);
        let pending = Pending { fiber, serial, result: None, abandoned: false, closed: false, memory: None };
        let token = self.pending.insert(pending);
        self.begun[kind(operation)] += 1;
        if let Some(operation) = operation {
            self.index.insert(token, operation.fd());
        }
        // There are never so many: each waits for a file, and has a fiber.
        Ticket { index: token as u32, serial }
    }

    /// The ticket's operation, unless it is over: its result was taken, or its fiber was abandoned.
    #[inline]
    fn get(&self, ticket: Ticket) -> Option<&Pending<F, M>> {
        self.pending.get(ticket.token()).filter(|pending| pending.serial == ticket.serial && !pending.abandoned)
    }

    /// How the operation ended, or `None` if it is under way, or over. Frees the token of an operation that has ended.
    pub fn take_result(&mut self, ticket: Ticket) -> Option<OperationEnd> {
        let pending = self.get(ticket)?;
        let result = pending.result?;
        let ended = if pending.closed { OperationEnd::Closed } else { OperationEnd::Result(result) };
        self.remove(ticket.token());
        Some(ended)
    }

    /// Like [`Operations::take_result`], unless the descriptor was closed before.
    #[inline]
    pub fn take_own_result(&mut self, ticket: Ticket) -> Option<i32> {
        let pending = self.get(ticket)?;
        let result = pending.result.filter(|_| !pending.closed);
        if result.is_some() {
            self.remove(ticket.token());
        }
        result
    }

    /// Whether the operation has ended, or is over.
    pub fn is_finished(&self, ticket: Ticket) -> bool {
        self.get(ticket).is_none_or(|pending| pending.result.is_some())
    }

    /// The operation's token, if it is under way, and may be cancelled.
    pub fn under_way(&self, ticket: Ticket) -> Option<Token> {
        self.get(ticket).filter(|pending| pending.is_under_way()).map(|_| ticket.token())
    }

    /// No fiber waits for the operation any more, so the operation must own its memory and its file. Returns how it
    /// has ended; `None` if it is still under way, or over.
    pub fn abandon(&mut self, ticket: Ticket) -> Option<OperationEnd> {
        let ended = self.take_result(ticket);
        if let Some(token) = self.under_way(ticket)
            && let Some(pending) = self.pending.get_mut(token)
        {
            pending.abandoned = true;
        }
        ended
    }

    /// Stores the result of an operation. Returns the fiber that waits for it.
    pub fn complete(&mut self, &Completion { token, result }: &Completion) -> Option<F> {
        let pending = self.pending.get_mut(token)?;
        pending.memory = None;
        if pending.abandoned {
            self.remove(token);
            return None;
        }
        pending.result = Some(result);
        Some(pending.fiber)
    }

    fn remove(&mut self, token: Token) {
        self.index.remove(token);
        self.pending.remove(token);
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Whether an operation is under way on the number.
    pub fn names(&self, fd: RawFd) -> bool {
        self.index.named(fd).any(|token| self.pending[token].is_under_way())
    }

    /// The fibers whose operations name the number.
    pub fn fibers_on(&self, fd: RawFd) -> Vec<F> {
        self.index.named(fd).map(|token| self.pending[token].fiber).collect()
    }

    /// The number is being closed: operations on it end as [`OperationEnd::Closed`], and have to be cancelled. Returns
    /// whether any is under way.
    pub fn close(&mut self, fd: RawFd) -> bool {
        let mut any = false;
        for token in self.index.named(fd) {
            let pending = &mut self.pending[token];
            any |= pending.is_under_way();
            if !pending.closed {
                pending.closed = true;
                self.to_cancel.push(token);
            }
        }
        any
    }

    /// The next operation on a closed number that has not been cancelled.
    pub fn next_to_cancel(&mut self) -> Option<Token> {
        while let Some(token) = self.to_cancel.pop() {
            // It may have ended by itself, and the token may name another operation by now.
            if self.pending.get(token).is_some_and(|pending| pending.closed && pending.result.is_none()) {
                return Some(token);
            }
        }
        None
    }

    /// The number is freed although the kernel still performs operations on it. They own the file. `memory` is what
    /// they read into; it is freed with the last of them.
    pub fn detach(&mut self, fd: RawFd, memory: Option<&M>) {
        let named: Vec<Token> = self.index.named(fd).collect();
        for token in named {
            let pending = &mut self.pending[token];
            if pending.is_under_way() {
                pending.memory = memory.cloned();
                self.index.remove(token);
            }
        }
    }

    /// Abandons the operations of these fibers. Returns those that are under way.
    pub fn abandon_all_of(&mut self, fibers: &[F]) -> Vec<Token> {
        let theirs = self.pending.iter().filter(|(_, pending)| fibers.contains(&pending.fiber) && !pending.abandoned);
        let tickets = theirs.map(|(token, pending)| Ticket { index: token as u32, serial: pending.serial });
        let tickets: Vec<Ticket> = tickets.collect();
        tickets.into_iter().filter(|ticket| self.abandon(*ticket).is_none()).map(Ticket::token).collect()
    }

    /// The tokens of all operations, also of those that have ended.
    pub fn tokens(&self) -> impl Iterator<Item = Token> + '_ {
        self.pending.iter().map(|(token, _)| token)
    }

    /// Removes all operations. The backend does not use their memory any more.
    pub fn clear(&mut self) {
        self.pending.clear();
        self.index.clear();
        self.to_cancel.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Interest;

    const READY: Operation = Operation::Ready { fd: 5, interest: Interest::READABLE };

    /// The ticket of a fiber that was abandoned, and that of another fiber's operation, which has the same token.
    fn reused() -> (Operations<u32, ()>, Ticket, Ticket) {
        let mut operations = Operations::default();
        let lost = operations.begin(1, Some(&READY));
        assert_eq!(operations.abandon_all_of(&[1]), [lost.token()]);
        assert_eq!(operations.complete(&Completion { token: lost.token(), result: -libc::ECANCELED }), None);
        let own = operations.begin(2, Some(&READY));
        assert_eq!(own.token(), lost.token());
        (operations, lost, own)
    }

    #[test]
    fn an_abandoned_operation_is_over_for_its_fiber_while_it_is_under_way() {
        let mut operations = Operations::<u32, ()>::default();
        let lost = operations.begin(1, Some(&READY));
        operations.abandon_all_of(&[1]);
        assert!(operations.is_finished(lost));
        assert_eq!((operations.take_result(lost), operations.under_way(lost)), (None, None));
        assert_eq!(operations.abandon_all_of(&[1]), []);
    }

    #[test]
    fn a_ticket_names_no_later_operation_with_its_token() {
        let (mut operations, lost, own) = reused();
        assert!(operations.is_finished(lost) && !operations.is_finished(own));
        assert_eq!((operations.under_way(lost), operations.abandon(lost)), (None, None));
        assert_eq!(operations.under_way(own), Some(own.token()));
        assert_eq!(operations.complete(&Completion { token: own.token(), result: 1 }), Some(2));
        assert_eq!((operations.take_own_result(lost), operations.take_result(lost)), (None, None));
        assert_eq!(operations.take_own_result(own), Some(1));
    }
}
