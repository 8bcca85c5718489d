//! What the backend, or a worker, does for fibers.

use std::os::fd::RawFd;
use std::rc::Rc;

use heddle_core::descriptor_index::DescriptorIndex;
use heddle_core::{Completion, Interest, Operation, Token};
use slab::Slab;

use super::State;
use crate::ruby::io::ReadBuffer;
use crate::scheduler::fibers::FiberKey;
use crate::scheduler::reactor::Reactor;

/// An operation that the backend, or a worker, does for a fiber.
///
/// ```text
///            begin                    its completion comes              take_result
///   (none) ─────────▶ under way ───────────────────────────▶ finished ─────────────▶ (none)
///                         │                                                             ▲
///                         └── abandon: no fiber waits for it any more ── completion ────┘
/// ```
///
/// Until its result is taken it names its descriptor's number. To close the number marks it as closed: whatever it has
/// come to, or comes to, is not told, as Ruby does not tell it to a thread either.
struct Pending {
    fiber: FiberKey,
    interest: Interest,
    result: Option<i32>,
    /// No fiber waits for it any more.
    abandoned: bool,
    /// Its descriptor was closed before its result was taken.
    closed: bool,
    /// The memory that it reads into, if the IO that lent it was closed meanwhile.
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
    /// By itself, or cancelled: what the backend answers.
    Result(i32),
    /// Its descriptor was closed.
    Closed,
}

impl Ended {
    /// The backend's answer; for a descriptor that was closed the same as for a cancel.
    pub fn result(self) -> i32 {
        match self {
            Ended::Result(result) => result,
            Ended::Closed => -libc::ECANCELED,
        }
    }
}

/// The operations of a scheduler.
#[derive(Default)]
pub struct Operations {
    pending: Slab<Pending>,
    /// By the number that they name.
    index: DescriptorIndex,
    /// Those of closed numbers that have not been cancelled.
    to_cancel: Vec<Token>,
}

impl Operations {
    /// How many are under way, or have results that no fiber has taken.
    pub fn len(&self) -> usize {
        self.pending.len()
    }

    /// A new operation of a fiber, on a descriptor or on none. It is to be submitted with the token.
    pub fn begin(&mut self, fiber: FiberKey, operation: Option<&Operation>) -> Token {
        let interest = operation.map_or(Interest::default(), Operation::interest);
        let pending = Pending { fiber, interest, result: None, abandoned: false, closed: false, memory: None };
        let token = self.pending.insert(pending);
        if let Some(operation) = operation {
            self.index.insert(token, operation.fd());
        }
        token
    }

    /// How the operation ended, once it has. The token is then free.
    pub fn take_result(&mut self, token: Token) -> Option<Ended> {
        let pending = self.pending.get(token)?;
        let result = pending.result?;
        let ended = if pending.closed { Ended::Closed } else { Ended::Result(result) };
        self.remove(token);
        Some(ended)
    }

    /// Whether the operation has come to its end.
    pub fn is_finished(&self, token: Token) -> bool {
        self.pending.get(token).is_none_or(|pending| pending.result.is_some())
    }

    /// No fiber waits for the operation any more. It must own what it works on. Returns how it has ended; `None` if it is
    /// still under way.
    pub fn abandon(&mut self, token: Token) -> Option<Ended> {
        let ended = self.take_result(token);
        if let Some(pending) = self.pending.get_mut(token) {
            pending.abandoned = true;
        }
        ended
    }

    /// An operation has ended. Returns the fiber that waits for it.
    fn complete(&mut self, Completion { token, result }: Completion) -> Option<FiberKey> {
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

    /// Whether an operation under way names the number, for one of `interest`.
    pub fn names(&self, fd: RawFd, interest: Interest) -> bool {
        self.index.named(fd).map(|token| &self.pending[token]).any(|pending| pending.is_under_way_for(interest))
    }

    /// The number is being closed: operations on it, for one of `interest`, end as [`Ended::Closed`], and have to be
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

    /// The next operation of a closed number that has not been cancelled.
    fn next_to_cancel(&mut self) -> Option<Token> {
        while let Some(token) = self.to_cancel.pop() {
            // It may have ended by itself, and the token may name another operation by now.
            if self.pending.get(token).is_some_and(|pending| pending.closed && pending.result.is_none()) {
                return Some(token);
            }
        }
        None
    }

    /// The number is given back although operations on it are still in the kernel's hands. They own the file; `memory` is
    /// what they read into, and is freed with the last of them.
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

    /// No fiber waits for the operations of these fibers any more. Returns those that are under way.
    pub fn abandon_all_of(&mut self, fibers: &[FiberKey]) -> Vec<Token> {
        let theirs = self.pending.iter().filter(|(_, pending)| fibers.contains(&pending.fiber));
        let tokens: Vec<Token> = theirs.map(|(token, _)| token).collect();
        tokens.into_iter().filter(|token| self.abandon(*token).is_none()).collect()
    }

    /// Forgets all operations. The backend has given all memory back.
    pub fn clear(&mut self) {
        self.pending.clear();
        self.index.clear();
        self.to_cancel.clear();
    }
}

impl State {
    /// Cancels the operations of closed numbers.
    #[inline]
    pub fn cancel_closed(&mut self, reactor: &mut Reactor) {
        while let Some(token) = self.operations.next_to_cancel() {
            reactor.cancel(token);
        }
    }

    /// Operations have ended: whatever waits for them is woken.
    pub fn complete(&mut self, completions: impl Iterator<Item = Completion>) {
        let mut any = false;
        for completion in completions {
            any = true;
            if let Some(fiber) = self.operations.complete(completion) {
                self.wake(fiber);
            }
        }
        if any && self.has_close_waiters() {
            self.wake_close_waiters();
        }
    }
}
