//! How fibers share the turn that never have to wait, and the locks that they hold meanwhile.
//!
//! A fiber that has had its share of operations gives up its turn halfway through the next one. But if that is a write
//! under a lock (the program's, or the one that Ruby takes for an IO), those that want to write there, too, find it
//! locked, however often they get a turn. Hence two rules:
//!
//! - Who has written, and releases a lock that somebody waits for, gives its turn to that one, which finds it free. Else it
//!   would take it again before anybody else has had a turn. It is the same with one that computes under a lock, and was
//!   preempted: mostly while it held it.
//! - Who finds a lock taken lets those go first who are halfway: one of them is likely to hold it. Else all others would
//!   line up for it, and each be woken for a single line.
//!
//! ```text
//! A writes 32 lines ─▶ B finds it locked ─▶ A writes a line, unlocks ─▶ B writes 32 lines ─▶ C finds it locked ─▶ …
//! ```
//!
//! Ruby does not tell who holds a lock. Whoever goes first and does not hold it has lost nothing, and may do no more than
//! end what it has begun.

use std::collections::VecDeque;

use magnus::{Error, Ruby, Value};

use super::Scheduler;
use super::fibers::FiberKey;
use crate::ruby::value::Held;
use crate::ruby::{fiber, thread};

/// How many are remembered who were halfway. Who is forgotten has to wait for its turn, and those with it that want its
/// lock.
const MOST_REMEMBERED: usize = 8;

/// Who gave up its turn halfway through an operation, or when it had released a lock. It may hold a lock, or another one.
#[derive(Debug, Default)]
pub struct Halfway {
    /// Those that have had no turn since.
    fibers: VecDeque<FiberKey>,
    /// Those that get it before its time, for what they have begun, and nothing else.
    hurried: Vec<FiberKey>,
}

impl Halfway {
    fn add(&mut self, key: FiberKey) {
        if self.fibers.len() == MOST_REMEMBERED {
            self.fibers.pop_front();
        }
        self.fibers.push_back(key);
    }

    /// The fiber has its turn again. Returns whether it came before its time.
    fn remove(&mut self, key: FiberKey) -> bool {
        self.fibers.retain(|halfway| *halfway != key);
        let position = self.hurried.iter().position(|hurried| *hurried == key);
        position.map(|position| self.hurried.swap_remove(position)).is_some()
    }
}

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
        self.owe_turn(key);
        if self.give_up_turn_halfway(ruby, key)? { self.raise_due(key) } else { Ok(()) }
    }

    fn give_up_turn_halfway(&self, ruby: &Ruby, key: FiberKey) -> Result<bool, Error> {
        let may_be_due = self.pass_turn(ruby, key, |turns| {
            // Who was let go first once has to wait for its turn, so that it is of no use to be halfway all the time.
            if !turns.fairness.is_cut_short() {
                turns.halfway.add(key);
            }
            turns.give_up_turn(key)
        });
        let mut turns = self.turns.borrow_mut();
        if turns.halfway.remove(key) {
            turns.fairness.cut_short();
        }
        may_be_due
    }

    /// To be called with each write.
    pub(super) fn owe_turn(&self, key: FiberKey) {
        if let Some(record) = self.turns.borrow_mut().fibers.get_mut(key) {
            record.owes_turn = true;
        }
    }

    /// The fiber that is running is about to wait for `blocker`. If that is a lock, who is halfway may hold it.
    pub(super) fn let_holder_go_first(&self, ruby: &Ruby, blocker: Value) -> Result<(), Error> {
        if self.turns.borrow().halfway.fibers.is_empty() || !thread::is_mutex(ruby, blocker)? {
            return Ok(());
        }
        let mut turns = self.turns.borrow_mut();
        // Who gave up its turn last is brought forward last, and so goes first.
        while let Some(halfway) = turns.halfway.fibers.pop_front() {
            if turns.bring_forward(halfway) {
                turns.halfway.hurried.push(halfway);
            }
        }
        Ok(())
    }

    /// `woken` has been unblocked, which waited for `blocker`: if that is a lock that the fiber which is running has
    /// released, it is time for the turn that this one owes.
    pub(super) fn be_fair_after_lock(&self, ruby: &Ruby, blocker: Value, woken: Held) -> Result<(), Error> {
        let Some((fiber, key)) = self.turns.borrow().running() else { return Ok(()) };
        let owes = self.turns.borrow().fibers.get(key).is_some_and(|record| record.owes_turn);
        if !owes || fiber != fiber::current() || !thread::is_mutex(ruby, blocker)? {
            return Ok(());
        }
        {
            let mut turns = self.turns.borrow_mut();
            if let Some(woken) = turns.fibers.find(woken) {
                turns.bring_forward(woken);
            }
        }
        // What has been sent to the fiber is left for its next wait: Ruby takes no exception well here.
        self.give_up_turn_halfway(ruby, key).map(|_| ())
    }
}
