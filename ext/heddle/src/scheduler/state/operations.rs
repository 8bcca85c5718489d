//! The operations that the backend, or a worker, performs for fibers.

use std::os::fd::RawFd;
use std::rc::Rc;

use heddle_core::descriptor_index::DescriptorIndex;
use heddle_core::trace::Source;
use heddle_core::{Completion, Interest, Operation, Token};
use slab::Slab;

use super::State;
use crate::ruby::io::ReadBuffer;
use crate::scheduler::fibers::FiberKey;
use crate::scheduler::reactor::Reactor;

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
struct Pending {
    fiber: FiberKey,
    interest: Interest,
    result: Option<i32>,
    /// No fiber waits for it any more.
    abandoned: bool,
    /// Its descriptor was closed before its result was taken.
    closed: bool,
    /// The memory that it reads into, if the IO that owns the memory was closed meanwhile.
    memory: Option<Rc<ReadBuffer>>,
}

impl Pending {
    fn is_under_way_for(&self, interest: Interest) -> bool {
        self.result.is_none() && self.interest.intersects(interest)
    }
}

/// How an operation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The backend's result. The operation completed, or was cancelled.
    Result(i32),
    /// Its descriptor was closed.
    Closed,
}

impl Ended {
    /// The backend's result; for a closed descriptor the same as for a cancelled operation.
    pub fn result(self) -> i32 {
        match self {
            Ended::Result(result) => result,
            Ended::Closed => -libc::ECANCELED,
        }
    }
}

/// The names of the kinds of operations, as users see them. The last is a job for a pool of threads.
pub const KINDS: [&str; 6] = ["ready", "read", "write", "receive", "send", "job"];

fn kind(operation: Option<&Operation>) -> usize {
    match operation {
        Some(Operation::Ready { .. }) => 0,
        Some(Operation::Read { .. }) => 1,
        Some(Operation::Write { .. }) => 2,
        Some(Operation::Receive { .. }) => 3,
        Some(Operation::Send { .. }) => 4,
        None => 5,
    }
}

/// The operations of a scheduler.
#[derive(Default)]
pub struct Operations {
    pending: Slab<Pending>,
    /// How many have begun of each of the [`KINDS`].
    begun: [u64; KINDS.len()],
    /// The operations by descriptor number.
    index: DescriptorIndex,
    /// The operations on closed numbers that have not been cancelled.
    to_cancel: Vec<Token>,
}

impl Operations {
    /// The number of operations that are under way, or have results that no fiber has taken.
    pub fn len(&self) -> usize {
        self.pending.len()
    }

    /// How many have begun of each of the [`KINDS`].
    pub fn begun(&self) -> [u64; KINDS.len()] {
        self.begun
    }

    /// The counts start at zero again.
    pub fn reset_counts(&mut self) {
        self.begun = Default::default();
    }

    /// Adds a fiber's operation, on a descriptor or on none. The caller submits it with the token.
    #[inline]
    fn begin(&mut self, fiber: FiberKey, operation: Option<&Operation>) -> Token {
        let interest = operation.map_or(Interest::default(), Operation::interest);
        let pending = Pending { fiber, interest, result: None, abandoned: false, closed: false, memory: None };
        let token = self.pending.insert(pending);
        self.begun[kind(operation)] += 1;
        if let Some(operation) = operation {
            self.index.insert(token, operation.fd());
        }
        token
    }

    /// How the operation ended, or `None` if it is under way. Frees the token of an operation that has ended.
    pub fn take_result(&mut self, token: Token) -> Option<Ended> {
        let pending = self.pending.get(token)?;
        let result = pending.result?;
        let ended = if pending.closed { Ended::Closed } else { Ended::Result(result) };
        self.remove(token);
        Some(ended)
    }

    /// Like [`Operations::take_result`], unless the descriptor was closed before.
    #[inline]
    pub fn take_own_result(&mut self, token: Token) -> Option<i32> {
        let pending = self.pending.get(token)?;
        let result = pending.result.filter(|_| !pending.closed);
        if result.is_some() {
            self.remove(token);
        }
        result
    }

    /// Whether the operation has ended.
    pub fn is_finished(&self, token: Token) -> bool {
        self.pending.get(token).is_none_or(|pending| pending.result.is_some())
    }

    /// No fiber waits for the operation any more, so the operation must own its memory and its file. Returns how it
    /// has ended; `None` if it is still under way.
    pub fn abandon(&mut self, token: Token) -> Option<Ended> {
        let ended = self.take_result(token);
        if let Some(pending) = self.pending.get_mut(token) {
            pending.abandoned = true;
        }
        ended
    }

    /// Stores the result of an operation. Returns the fiber that waits for it.
    fn complete(&mut self, &Completion { token, result }: &Completion) -> Option<FiberKey> {
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

    /// Whether an operation with one of the interests is under way on the number.
    pub fn names(&self, fd: RawFd, interest: Interest) -> bool {
        self.index.named(fd).map(|token| &self.pending[token]).any(|pending| pending.is_under_way_for(interest))
    }

    /// The fibers whose operations name the number, for one of `interest`.
    pub fn fibers_on(&self, fd: RawFd, interest: Interest) -> Vec<FiberKey> {
        let named = self.index.named(fd).map(|token| &self.pending[token]);
        named.filter(|pending| pending.interest.intersects(interest)).map(|pending| pending.fiber).collect()
    }

    /// The number is being closed: operations on it with one of the interests end as [`Ended::Closed`], and have to be
    /// cancelled. Returns whether any is under way.
    pub fn close(&mut self, fd: RawFd, interest: Interest) -> bool {
        let mut any = false;
        for token in self.index.named(fd) {
            let pending = &mut self.pending[token];
            if pending.interest.intersects(interest) {
                any |= pending.is_under_way_for(interest);
                if !pending.closed {
                    pending.closed = true;
                    self.to_cancel.push(token);
                }
            }
        }
        any
    }

    /// The next operation on a closed number that has not been cancelled.
    fn next_to_cancel(&mut self) -> Option<Token> {
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
    pub fn detach(&mut self, fd: RawFd, interest: Interest, memory: Option<&Rc<ReadBuffer>>) {
        let named: Vec<Token> = self.index.named(fd).collect();
        for token in named {
            let pending = &mut self.pending[token];
            if pending.is_under_way_for(interest) {
                pending.memory = memory.cloned();
                self.index.remove(token);
            }
        }
    }

    /// Abandons the operations of these fibers. Returns those that are under way.
    pub fn abandon_all_of(&mut self, fibers: &[FiberKey]) -> Vec<Token> {
        let theirs = self.pending.iter().filter(|(_, pending)| fibers.contains(&pending.fiber));
        let tokens: Vec<Token> = theirs.map(|(token, _)| token).collect();
        tokens.into_iter().filter(|token| self.abandon(*token).is_none()).collect()
    }

    /// Removes all operations. The backend does not use their memory any more.
    pub fn clear(&mut self) {
        self.pending.clear();
        self.index.clear();
        self.to_cancel.clear();
    }
}

impl State {
    /// Cancels the operations on closed numbers.
    #[inline]
    pub fn cancel_closed(&mut self, reactor: &mut Reactor) {
        while let Some(token) = self.operations.next_to_cancel() {
            reactor.cancel(token);
        }
    }

    /// See [`Operations::begin`].
    #[inline]
    pub fn begin_operation(&mut self, fiber: FiberKey, operation: Option<&Operation>) -> Token {
        let token = self.operations.begin(fiber, operation);
        if let Some(trace) = &self.trace {
            trace.operation_begin(fiber, kind(operation), operation.map_or(-1, Operation::fd), token);
        }
        token
    }

    /// Stores results, and wakes the fibers that wait for them.
    pub fn complete(&mut self, completions: impl Iterator<Item = Completion>) {
        let mut size = 0;
        self.trace_source(Some(Source::Completion));
        for completion in completions {
            size += 1;
            let fiber = self.operations.complete(&completion);
            if let Some(trace) = &self.trace {
                trace.operation_end(&completion, fiber);
            }
            if let Some(fiber) = fiber {
                self.wake(fiber);
            }
        }
        self.trace_source(None);
        self.counters.batch(size);
        if size > 0 && self.has_close_waiters() {
            self.wake_close_waiters();
        }
    }
}
