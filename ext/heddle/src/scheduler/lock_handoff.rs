//! Lock hand-off: fairness among fibers that hold locks and never have to wait.
//!
//! A fiber whose cooperative budget is used up yields in the middle of its next operation. If that operation is a
//! write under a lock (the program's, or Ruby's own for an IO), other fibers that write to the same IO find the lock
//! taken each time they run. Hence two rules:
//!
//! - A fiber that has written, and releases a lock that another fiber waits for, yields to that fiber, which finds the
//!   lock free. Otherwise the first fiber would take the lock again before any other fiber runs. The same holds for a
//!   fiber that computes under a lock and was preempted: a preempted fiber most likely held the lock.
//! - A fiber that finds a lock taken lets the fibers that yielded in the middle of an operation run first: one of them
//!   is likely to hold the lock. Otherwise all other fibers would queue for the lock, and each be woken for a single
//!   line.
//!
//! ```text
//! A writes 32 lines ─▶ B finds it locked ─▶ A writes a line, unlocks ─▶ B writes 32 lines ─▶ C finds it locked ─▶ …
//! ```
//!
//! Ruby does not tell which fiber holds a lock. Letting the wrong fiber run first does no harm: it loses nothing, and
//! may only finish its operation.

use magnus::{Error, Ruby, Value};

use super::Scheduler;
use super::record::FiberKey;
use super::state::Requeue;
use crate::ruby::{fiber, frames, thread};

impl Scheduler {
    /// Called before an operation that may succeed at once: a fiber that has used up its cooperative budget yields.
    pub fn consume_budget(&self, ruby: &Ruby, key: FiberKey) -> Result<(), Error> {
        if self.state.borrow_mut().budget.consume() {
            return Ok(());
        }
        if self.state.borrow().fibers.queue().is_empty() {
            self.poll(ruby)?;
        }
        self.mark_yield_after_unlock(key);
        if self.yield_in_operation(ruby, key)? { self.raise_pending(key) } else { Ok(()) }
    }

    fn yield_in_operation(&self, ruby: &Ruby, key: FiberKey) -> Result<bool, Error> {
        {
            let mut state = self.state.borrow_mut();
            // A fiber is not boosted twice in a row, or it would gain by yielding in its operations.
            if !state.budget.is_boosted() {
                state.lock_holders.add(key);
            }
        }
        let may_have_raise = self.yield_within(ruby, key, Requeue::Last);
        let mut state = self.state.borrow_mut();
        if state.lock_holders.remove(key) {
            state.budget.boost();
        }
        may_have_raise
    }

    /// The fiber yields when it releases a lock, as after a write.
    fn mark_yield_after_unlock(&self, key: FiberKey) {
        if let Some(record) = self.state.borrow_mut().fibers.get_mut(key) {
            record.yield_after_unlock = true;
        }
    }

    /// The current fiber is about to wait for `blocker`. If that is a lock, the remembered fibers run first.
    pub fn boost_lock_holders(&self, ruby: &Ruby, blocker: Value) -> Result<(), Error> {
        if self.state.borrow().lock_holders.is_empty() || !thread::is_mutex(ruby, blocker)? {
            return Ok(());
        }
        self.state.borrow_mut().boost_lock_holders();
        Ok(())
    }

    /// `woken`, which waited for `blocker`, has been unblocked. If `blocker` is a lock that the current fiber has
    /// released, and that fiber is to yield after an unlock, it yields to `woken`.
    pub fn hand_off_lock(&self, ruby: &Ruby, blocker: Value, woken: Value) -> Result<(), Error> {
        let yielding = {
            let state = self.state.borrow();
            let yields = |key| state.fibers.get(key).is_some_and(|record| record.yield_after_unlock);
            state.fibers.current().filter(|(_, key)| yields(*key))
        };
        let Some((fiber, key)) = yielding else { return Ok(()) };
        if fiber != fiber::current(ruby) || !thread::is_mutex(ruby, blocker)? || wakes_a_list(ruby) {
            return Ok(());
        }
        {
            let mut state = self.state.borrow_mut();
            if let Some(woken) = state.fibers.find(woken) {
                state.fibers.move_to_front(woken);
            }
        }
        // Ruby does not expect an exception here, so a pending raise is left for the fiber's next wait.
        self.yield_in_operation(ruby, key).map(|_| ())
    }
}

/// Methods that wake waiters of a list, or interrupt them as `IO#close` does on Ruby 4.0.
const WAKING_ALL: [&str; 10] = [
    "IO#close",
    "IO#close_read",
    "IO#close_write",
    "IO#reopen",
    "Thread::ConditionVariable#signal",
    "Thread::ConditionVariable#broadcast",
    "Thread::Queue#close",
    "Thread::SizedQueue#close",
    "Thread::SizedQueue#clear",
    "Thread::SizedQueue#max=",
];

/// Whether Ruby walks over a list whose elements are on the waiters' stacks. A waiter that ran meanwhile could end, and
/// leave the walk with an element that is gone.
///
/// A condition variable names the lock of the waiter as the blocker. And the walk may be anywhere on the stack: a
/// subclass of `Heddle::Scheduler` may override `unblock` or `fiber_interrupt`, and release locks of its own there.
fn wakes_a_list(ruby: &Ruby) -> bool {
    /// How many frames are looked at. On a deeper stack no lock is handed off.
    const FRAMES: usize = 512;
    let mut count = 1;
    let mut callers = frames::callers::<FRAMES>(ruby).inspect(|_| count += 1);
    let wakes = |frame: frames::Frame| {
        !frame.is_of_program() && frame.method_name().is_none_or(|name| WAKING_ALL.contains(&name.as_str()))
    };
    callers.any(wakes) || count == FRAMES
}
