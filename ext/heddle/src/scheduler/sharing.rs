//! How fibers share the turn that never have to wait, and the locks that they hold meanwhile.
//!
//! A fiber that has had its share of operations gives up its turn within the next one. But if that is a write under a
//! lock (the program's, or the one that Ruby takes for an IO), those that want to write there, too, then find it locked,
//! however often they get a turn. So who has written owes a turn, and pays when it releases a lock that somebody waits
//! for. To owe it only when the share is used up is not enough: of three fibers two would hand the lock to each other.

use magnus::{Error, Ruby, Value};

use super::Scheduler;
use super::fibers::FiberKey;
use super::turns::Turns;
use crate::ruby::{fiber, thread};

impl Scheduler {
    /// To be called before an operation that may succeed at once: a fiber that never has to wait gives up its turn when
    /// it has had its share.
    pub(super) fn be_fair(&self, ruby: &Ruby, key: FiberKey) -> Result<(), Error> {
        if self.turns.borrow_mut().fairness.may_operate() {
            return Ok(());
        }
        if self.turns.borrow().queued() == 0 {
            self.poll(ruby, false)?;
        }
        self.yield_turn(ruby, key)
    }

    /// To be called with each write.
    pub(super) fn owe_turn(&self, key: FiberKey) {
        if let Some(record) = self.turns.borrow_mut().fibers.get_mut(key) {
            record.owes_turn = true;
        }
    }

    /// Somebody has been unblocked that waited for `blocker`: if that is a lock which the fiber that is running has
    /// released, it is time for the turn that it owes.
    pub(super) fn be_fair_after_lock(&self, ruby: &Ruby, blocker: Value) -> Result<(), Error> {
        let Some((fiber, key)) = self.turns.borrow().running() else { return Ok(()) };
        let owes = |turns: &Turns| turns.fibers.get(key).is_some_and(|record| record.owes_turn);
        if !owes(&self.turns.borrow()) || fiber != fiber::current() || !thread::is_mutex(ruby, blocker)? {
            return Ok(());
        }
        if let Some(record) = self.turns.borrow_mut().fibers.get_mut(key) {
            record.owes_turn = false;
        }
        // What has been sent to the fiber is left for its next wait: Ruby takes no exception well here.
        self.pass_turn(ruby, key, |turns| turns.give_up_turn(key)).map(|_| ())
    }
}
