//! What the backend, or a worker, does for fibers.

use heddle_core::{Completion, Token};

use super::Turns;
use crate::scheduler::fibers::FiberKey;

/// An operation that the backend, or a worker, does for a fiber.
pub(super) struct Pending {
    fiber: FiberKey,
    result: Option<i32>,
    /// Nobody waits for it any more.
    abandoned: bool,
}

impl Turns {
    /// How many are under way, or have results that nobody has taken.
    pub fn operations_under_way(&self) -> usize {
        self.operations.len()
    }

    /// A new operation of a fiber. It is to be submitted with the token.
    pub fn begin_operation(&mut self, fiber: FiberKey) -> Token {
        self.operations.insert(Pending { fiber, result: None, abandoned: false })
    }

    /// The result of an operation, once it is there. The token is then free.
    pub fn take_result(&mut self, token: Token) -> Option<i32> {
        let result = self.operations.get(token)?.result?;
        self.operations.remove(token);
        Some(result)
    }

    /// Whether the operation has come to its end.
    pub fn is_finished(&self, token: Token) -> bool {
        self.operations.get(token).is_none_or(|pending| pending.result.is_some())
    }

    /// Nobody waits for the operation any more. It must own what it works on. Returns whether it is still under way.
    pub fn abandon_operation(&mut self, token: Token) -> bool {
        if self.take_result(token).is_some() {
            return false;
        }
        match self.operations.get_mut(token) {
            Some(pending) => {
                pending.abandoned = true;
                true
            }
            None => false,
        }
    }

    /// Operations have ended.
    pub fn complete(&mut self, completions: impl Iterator<Item = Completion>) {
        for Completion { token, result } in completions {
            let Some(pending) = self.operations.get_mut(token) else { continue };
            if pending.abandoned {
                self.operations.remove(token);
            } else {
                pending.result = Some(result);
                let fiber = pending.fiber;
                self.wake(fiber);
            }
        }
    }
}
