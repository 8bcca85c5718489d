//! The operations that a backend, or a worker, performs for fibers: the life of each, from its submission until its
//! fiber has taken the result.
//!
//! `tests/simulation` runs them, the run queue and the timers over a simulated backend.

use std::os::fd::RawFd;

use slab::Slab;

use crate::backend::{Completion, Operation, Token};
use crate::descriptor_index::DescriptorIndex;

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
pub const KINDS: [&str; 6] = ["ready", "read", "write", "receive", "send", "job"];

/// The index of the operation's kind in [`KINDS`]; `None` is a job.
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
    /// How many have begun of each of the [`KINDS`].
    begun: [u64; KINDS.len()],
    /// The operations by descriptor number.
    index: DescriptorIndex,
    /// The operations on closed numbers that have not been cancelled.
    to_cancel: Vec<Token>,
}

impl<F, M> Default for Operations<F, M> {
    fn default() -> Self {
        Operations {
            pending: Slab::new(),
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
    pub fn begin(&mut self, fiber: F, operation: Option<&Operation>) -> Token {
        let pending = Pending { fiber, result: None, abandoned: false, closed: false, memory: None };
        let token = self.pending.insert(pending);
        self.begun[kind(operation)] += 1;
        if let Some(operation) = operation {
            self.index.insert(token, operation.fd());
        }
        token
    }

    /// How the operation ended, or `None` if it is under way. Frees the token of an operation that has ended.
    pub fn take_result(&mut self, token: Token) -> Option<OperationEnd> {
        let pending = self.pending.get(token)?;
        let result = pending.result?;
        let ended = if pending.closed { OperationEnd::Closed } else { OperationEnd::Result(result) };
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
    pub fn abandon(&mut self, token: Token) -> Option<OperationEnd> {
        let ended = self.take_result(token);
        if let Some(pending) = self.pending.get_mut(token) {
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
