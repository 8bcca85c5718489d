//! How the turn goes from fiber to fiber.
//!
//! There is no loop fiber. A fiber that waits (or has had its share) takes the next one off the run queue and switches
//! straight to it. Only when the queue is empty does it ask the kernel, in its own context; if its own event is the
//! first to come, no switch happens at all.

use std::time::{Duration, Instant};

use magnus::{Error, Ruby, Value, prelude::*};

use super::Scheduler;
use super::abandoning::abandon_by_helper;
use super::fibers::{Delivery, FiberKey, Redeemed};
use super::interrupting::Interrupts;
use super::turns::Turns;
use super::wait::Wait;
use crate::ruby::nogvl::without_gvl;
use crate::ruby::value::Held;
use crate::ruby::{error, fiber, insides, interrupts};

/// What the books alone tell of who comes next. Almost always that is all there is to know.
pub(super) enum Glance {
    /// The fiber's own turn has come.
    Own,
    /// It is this one's turn.
    Switch(Held),
    /// It is this one's turn, if it is still alive.
    Perhaps(Redeemed),
    /// Timers and I/O have to be looked at first.
    Overdue,
    /// Anything else.
    Unclear,
}

/// What a fiber that parks has to do next.
pub(super) enum Next {
    /// Its own turn has come.
    Own,
    /// Switch to this one: whose turn it is, or who leads to the fiber that answers for the thread's interrupts.
    Switch(Held),
    /// An exception is due in a fiber that is suspended, but not by us.
    Raise(Held, Delivery),
    /// The grace of this fiber is over, which was told to end and has not.
    Abandon(FiberKey),
    /// Look at the thread's interrupts.
    CheckInterrupts,
}

/// How far a fiber that parks has come.
pub(super) enum Stage {
    /// It has looked who comes next.
    Look(Glance),
    /// It has the control again, with or without its turn.
    Back(Result<(), Error>),
}

impl Scheduler {
    /// Gives the turn away until the fiber gets it back: because somebody woke it, it yielded and its turn came, or
    /// something was raised into it. Its state must have been set to `Waiting` or `Runnable` before.
    ///
    /// May return early without anything having happened; the caller looks at what it waits for and parks again.
    #[inline]
    pub(super) fn park(&self, ruby: &Ruby, key: FiberKey) -> Result<(), Error> {
        let glance = self.glance(&mut self.turns.borrow_mut(), key);
        self.park_after_glance(ruby, key, glance)
    }

    /// Like [`Scheduler::park`], for those who have had the books open anyway.
    #[inline]
    pub(super) fn park_after_glance(&self, ruby: &Ruby, key: FiberKey, glance: Glance) -> Result<(), Error> {
        let Glance::Switch(fiber) = glance else { return self.park_at_length(ruby, key, Stage::Look(glance)) };
        let switched = self.switch(ruby, key, || fiber::transfer(fiber));
        if switched.is_err() || !self.turns.borrow().has_turn(key) {
            return self.park_at_length(ruby, key, Stage::Back(switched));
        }
        self.tick_for(key);
        Ok(())
    }

    #[inline(never)]
    pub(super) fn park_at_length(&self, ruby: &Ruby, key: FiberKey, mut stage: Stage) -> Result<(), Error> {
        loop {
            stage = match stage {
                Stage::Look(glance) => match self.next(ruby, key, glance) {
                    Ok(Next::Own) => break,
                    Ok(Next::Switch(fiber)) => Stage::Back(self.switch(ruby, key, || fiber::transfer(fiber))),
                    Ok(Next::Raise(fiber, delivery)) => {
                        Stage::Back(self.switch(ruby, key, || raise_by_helper(ruby, fiber, delivery)))
                    }
                    Ok(Next::Abandon(overdue)) => {
                        Stage::Back(self.switch(ruby, key, || abandon_by_helper(ruby, self, overdue)))
                    }
                    Ok(Next::CheckInterrupts) => {
                        let checked = self.check_interrupts(key);
                        return self.end_park_early(key, checked);
                    }
                    Err(error) => return self.end_park_early(key, Err(error)),
                },
                Stage::Back(Ok(())) if self.turns.borrow().has_turn(key) => break,
                Stage::Back(switched) => {
                    if let Err(error) = &switched
                        && let Some(newborn) = self.newborn_without_stack(ruby, error)
                    {
                        self.leave_park(key);
                        let retried = self.retry_birth(ruby, newborn, error);
                        return self.end_park_early(key, retried);
                    }
                    self.come_back_early(ruby, key, switched)?;
                    Stage::Look(self.glance(&mut self.turns.borrow_mut(), key))
                }
            };
        }
        self.tick_for(key);
        Ok(())
    }

    /// Like [`Scheduler::park`], switching to `first`, a new fiber, with its arguments, before anybody else.
    pub(super) fn park_after(&self, ruby: &Ruby, key: FiberKey, first: Held, arguments: &[Value]) -> Result<(), Error> {
        let started = self.switch(ruby, key, || fiber::start(first, arguments));
        if started.is_err() || !self.turns.borrow().has_turn(key) {
            self.come_back_early(ruby, key, started)?;
            return self.park(ruby, key);
        }
        self.tick_for(key);
        Ok(())
    }

    /// The fiber got the control back without having been given its turn. An error is what it has to go on with; else
    /// it parks again.
    #[cold]
    fn come_back_early(&self, ruby: &Ruby, key: FiberKey, switched: Result<(), Error>) -> Result<(), Error> {
        match switched {
            Err(error) if !self.is_refusal(ruby, key, &error) => {
                self.recover_giver(key);
                self.end_park_early(key, Err(error))
            }
            // A switch that was refused has not taken place.
            Err(_) => Ok(()),
            Ok(()) => {
                self.recover_giver(key);
                Ok(())
            }
        }
    }

    /// Who has been given the turn and could not begin, if that was for want of a stack.
    fn newborn_without_stack(&self, ruby: &Ruby, error: &Error) -> Option<FiberKey> {
        let newborn = {
            let turns = self.turns.borrow();
            let (_, key) = turns.running()?;
            turns.fibers.get(key).filter(|record| record.wait == Wait::Birth).map(|_| key)
        };
        newborn.filter(|_| error::is_lack_of_stacks(ruby, error))
    }

    /// The fiber begins later, or ends without having begun if there won't be a stack for it.
    #[cold]
    fn retry_birth(&self, ruby: &Ruby, newborn: FiberKey, error: &Error) -> Result<(), Error> {
        self.turns.borrow_mut().enqueue(newborn);
        if self.ended_stacks.collect(ruby) {
            return Ok(());
        }
        let watcher = {
            let mut turns = self.turns.borrow_mut();
            let watcher = turns.fibers.get(newborn).and_then(|record| record.structure.watcher);
            turns.fibers.remove(newborn);
            watcher
        };
        match (watcher, error::exception_of(error)) {
            (Some(watcher), Some(exception)) => {
                watcher.get().funcall::<_, _, Value>("failed", (exception,)).map(|_| ())
            }
            _ => Err(error.clone()),
        }
    }

    #[cold]
    fn end_park_early(&self, key: FiberKey, result: Result<(), Error>) -> Result<(), Error> {
        if self.interrupts.get() == Interrupts::Here {
            // Ruby has looked at them as soon as it was back.
            self.interrupts.set(Interrupts::None);
        }
        self.leave_park(key);
        self.tick_for(key);
        result
    }

    /// The fiber goes on although its turn may not have come: to handle an interrupt, or an exception.
    pub(super) fn leave_park(&self, key: FiberKey) {
        self.turns.borrow_mut().take_turn(key);
    }

    /// Who raises into a waiting fiber (`Fiber#raise`, `Fiber#kill`), or switches to it with `Fiber#transfer`, is in
    /// nobody's queue, and there is no hook. But it is the one that was given the turn last: it goes on the run queue.
    pub(super) fn recover_giver(&self, key: FiberKey) {
        let giver = self.turns.borrow().running();
        let Some((fiber, giver)) = giver.filter(|(_, giver)| *giver != key) else { return };
        let mut turns = self.turns.borrow_mut();
        turns.drop_turn();
        let suspended_elsewhere =
            turns.fibers.get(giver).is_some_and(|record| !record.is_parked() && record.wait != Wait::Birth);
        if suspended_elsewhere && fiber::is_alive(fiber) {
            if let Some(record) = turns.fibers.get_mut(giver) {
                record.wait = Wait::Raiser;
            }
            turns.enqueue(giver);
        }
    }

    /// Whether a switch failed because its target cannot be switched to now, not because something was raised here.
    fn is_refusal(&self, ruby: &Ruby, key: FiberKey, error: &Error) -> bool {
        let refused = self.turns.borrow().running().is_some_and(|(_, target)| target != key)
            && error::is_fiber_error_with(ruby, error, insides::REFUSED_TRANSFER);
        if refused {
            self.turns.borrow_mut().drop_turn();
        }
        refused
    }

    /// Whose turn it is, and gives it the turn, if that is plain.
    #[inline(always)]
    pub(super) fn glance(&self, turns: &mut Turns, key: FiberKey) -> Glance {
        if turns.is_lost(key) || self.interrupts.get() != Interrupts::None {
            return Glance::Unclear;
        }
        let queued = turns.queued();
        // Whoever computes next will not look at I/O for a while.
        if turns.fairness.start_turn(queued) || turns.queue.has_only_preempted() {
            return Glance::Overdue;
        }
        if turns.has_strays() {
            return Glance::Unclear;
        }
        match turns.dequeue() {
            Some(next) if next.key == key => Glance::Own,
            Some(next) if next.is_under_way => Glance::Switch(next.fiber),
            Some(next) => Glance::Perhaps(next),
            None => Glance::Unclear,
        }
    }

    /// Finds out whose turn it is, waiting for it in the kernel if need be.
    fn next(&self, ruby: &Ruby, key: FiberKey, glance: Glance) -> Result<Next, Error> {
        match glance {
            Glance::Own => Ok(Next::Own),
            Glance::Switch(fiber) => Ok(Next::Switch(fiber)),
            Glance::Perhaps(next) => self.search(ruby, key, Some(next)),
            Glance::Overdue => {
                self.poll(ruby, false)?;
                self.search(ruby, key, None)
            }
            Glance::Unclear if self.turns.borrow().is_lost(key) => Err(lost(ruby)),
            Glance::Unclear => match self.interrupts.get() {
                Interrupts::None => self.search(ruby, key, None),
                Interrupts::ForRoot => self.lead_to_root(key),
                Interrupts::Here => Ok(Next::CheckInterrupts),
            },
        }
    }

    fn search(&self, ruby: &Ruby, key: FiberKey, mut next: Option<Redeemed>) -> Result<Next, Error> {
        loop {
            if next.is_none() {
                let mut turns = self.turns.borrow_mut();
                if let Some((fiber, delivery)) = turns.take_stray() {
                    return Ok(Next::Raise(fiber, delivery));
                }
                if let Some(overdue) = turns.take_overdue() {
                    return Ok(Next::Abandon(overdue));
                }
                next = turns.dequeue();
            }
            match next.take() {
                Some(next) if next.key == key => return Ok(Next::Own),
                Some(next) if next.is_under_way || fiber::is_alive(next.fiber) => return Ok(Next::Switch(next.fiber)),
                Some(next) => self.turns.borrow_mut().fibers.remove(next.key),
                None if self.wake_drainers() => {}
                None => {
                    let fall_back = self.prepare_fall_back(key)?;
                    if self.turns.borrow().has_turn(key) {
                        // A trap ran in there, and waited; whatever woke the fiber meanwhile has been taken by that.
                        return Ok(Next::Own);
                    }
                    if self.poll(ruby, true)? == Polled::Interrupted {
                        return Ok(self.fall_back_to(fall_back));
                    }
                }
            }
        }
    }

    /// The root has to look at the thread's interrupts before anybody else has a turn.
    #[cold]
    fn lead_to_root(&self, key: FiberKey) -> Result<Next, Error> {
        let fall_back = self.prepare_fall_back(key)?;
        // A trap ran in there, and waited; whatever woke the fiber meanwhile has been taken by that.
        if self.turns.borrow().has_turn(key) { Ok(Next::Own) } else { Ok(self.fall_back_to(fall_back)) }
    }

    /// Goes to the fiber that answers for the thread's interrupts, by what leads to it.
    fn fall_back_to(&self, fall_back: Option<Held>) -> Next {
        let Some(fiber) = fall_back else { return Next::CheckInterrupts };
        self.fall_back.set(None);
        self.interrupts.set(Interrupts::Here);
        Next::Switch(fiber)
    }

    /// What leads to the fiber that answers for the thread's interrupts; `None` if that is the one that is here.
    fn prepare_fall_back(&self, key: FiberKey) -> Result<Option<Held>, Error> {
        if self.turns.borrow().answers(Some(key)) {
            return Ok(None);
        }
        if let Some((forker, _)) = self.turns.borrow().forker() {
            return Ok(Some(forker));
        }
        if self.fall_back.get().is_none() {
            self.fall_back.set(Some(fiber::fall_back_fiber()?));
        }
        Ok(self.fall_back.get())
    }

    /// Nobody has a turn to come. If nobody is awaited either, those go on that wait for the end of all others.
    fn wake_drainers(&self) -> bool {
        let mut turns = self.turns.borrow_mut();
        let drainers = turns.fibers.finished_drainers();
        drainers.iter().for_each(|drainer| turns.wake(*drainer));
        turns.queued() > 0
    }

    /// Looks at timers and completions, and with `may_block` waits for the first of them if nobody is runnable.
    pub fn poll(&self, ruby: &Ruby, may_block: bool) -> Result<Polled, Error> {
        let now = Instant::now();
        let timeout = {
            let mut turns = self.turns.borrow_mut();
            turns.expire(now);
            turns.fairness.polled(now);
            if !may_block || turns.queued() > 0 || turns.has_strays() {
                Some(Duration::ZERO)
            } else {
                turns.timers.next_deadline().map(|deadline| deadline.saturating_duration_since(now))
            }
        };
        let mut slot = self.reactor.borrow_mut();
        let Some(reactor) = slot.as_mut() else { return Err(error::scheduler_closed(ruby)) };
        self.turns.borrow_mut().cancel_closed(reactor);
        let mut interrupted = false;
        if timeout == Some(Duration::ZERO) {
            reactor.look().map_err(|error| error::from_core(ruby, error))?;
        } else {
            let waker = reactor.waker();
            reactor.arm();
            let pulse = self.pulse.get();
            pulse.inspect(|pulse| pulse.rest());
            let waited = without_gvl(|| reactor.wait(timeout), &|| waker.wake());
            pulse.inspect(|pulse| pulse.rouse());
            reactor.disarm();
            match waited {
                Some(result) => result.map_err(|error| error::from_core(ruby, error))?,
                None => interrupted = true,
            }
        }
        let mut turns = self.turns.borrow_mut();
        turns.complete(reactor.completions());
        if timeout != Some(Duration::ZERO) {
            turns.expire(Instant::now());
            interrupted |= self.owner.get().is_some_and(interrupts::pending);
        }
        Ok(if interrupted { Polled::Interrupted } else { Polled::Looked })
    }
}

/// Raises into a fiber that is suspended, but not by us: one that has resumed another. A fiber of its own does that,
/// since whoever raises may not come back for long.
#[cold]
fn raise_by_helper(ruby: &Ruby, target: Held, delivery: Delivery) -> Result<(), Error> {
    struct Raise;

    impl fiber::FiberBody for Raise {
        fn run(ruby: &Ruby, _: Value, arguments: &[Value]) -> Result<Value, Error> {
            if let Some((target, exception)) = arguments.split_first() {
                // The fiber may have ended meanwhile (FiberError): then there is nothing left to interrupt.
                let _ = fiber::raise_into(*target, exception);
            }
            Ok(ruby.qnil().as_value())
        }
    }

    let nil = ruby.qnil().as_value();
    let raiser = fiber::spawn::<Raise>(nil, nil)?;
    let arguments = [target.get(), delivery.exception.get(), delivery.message.map_or(nil, Held::get)];
    let count = arguments.len() - usize::from(delivery.message.is_none());
    fiber::start(raiser, &arguments[..count])
}

#[cold]
fn lost(ruby: &Ruby) -> Error {
    Error::new(
        ruby.exception_io_error(),
        "what this fiber waited for is lost: its scheduler was closed, or the process forked, meanwhile",
    )
}

/// What came of a look at the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Polled {
    /// Whatever there was has been dealt with.
    Looked,
    /// Besides, the thread has an interrupt to handle.
    Interrupted,
}
