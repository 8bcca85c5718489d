//! Which fiber runs next.

use magnus::{Error, Ruby};

use super::Scheduler;
use super::fibers::FiberKey;
use super::poll::Polled;
use super::raise::PendingRaise;
use super::root_interrupts::Interrupts;
use super::state::State;
use crate::ruby::fiber;
use crate::ruby::value::PinnedValue;

/// What the state alone says about the next fiber, which is almost always enough.
// It fits into two registers, so that a fiber that parks need not have it on its stack.
pub enum NextFiber {
    /// The fiber that parks. It is the current fiber now.
    Own,
    /// Another fiber, which is the current fiber now.
    Other(PinnedValue),
    /// Another fiber, which is the current fiber now, if it is still alive.
    OtherIfAlive(PinnedValue),
    /// Timers and I/O have to be polled first.
    PollDue,
    /// Any other case.
    Unclear,
}

/// What a fiber that parks does next.
pub enum NextStep {
    /// It continues to run.
    Continue,
    /// It switches to this fiber: the next one, or the one that leads to the fiber that handles the thread's
    /// interrupts.
    Switch(PinnedValue),
    /// An exception is due in a fiber that is suspended, but not parked.
    Raise(PinnedValue, PendingRaise),
    /// This fiber was asked to end, and its grace period is over.
    Abandon(FiberKey),
    /// It checks the thread's interrupts.
    CheckInterrupts,
}

impl Scheduler {
    /// Dequeues the next fiber and makes it the current one, if the state alone can tell which.
    #[inline(always)]
    pub fn pick_next(&self, state: &mut State, key: FiberKey) -> NextFiber {
        if state.is_lost(key) || self.root.phase.get() != Interrupts::None {
            return NextFiber::Unclear;
        }
        let queue = &state.queue;
        // The preempted fibers in the queue compute, and will not poll for a while.
        if state.budget.start_slice(|| queue.len()) || state.queue.has_only_preempted() {
            return NextFiber::PollDue;
        }
        if state.has_deferred_raises() {
            return NextFiber::Unclear;
        }
        match state.dequeue() {
            Some(next) if next.key == key => NextFiber::Own,
            Some(next) if next.is_started => NextFiber::Other(next.fiber),
            Some(next) => NextFiber::OtherIfAlive(next.fiber),
            None => NextFiber::Unclear,
        }
    }

    /// Finds the next fiber, waiting in the kernel if there is none.
    pub fn next_step(&self, ruby: &Ruby, key: FiberKey, next: NextFiber) -> Result<NextStep, Error> {
        match next {
            NextFiber::Own => Ok(NextStep::Continue),
            NextFiber::Other(fiber) => Ok(NextStep::Switch(fiber)),
            NextFiber::OtherIfAlive(fiber) if fiber::is_alive(fiber) => Ok(NextStep::Switch(fiber)),
            NextFiber::OtherIfAlive(fiber) => {
                self.state.borrow_mut().forget_dead(fiber);
                self.find_next(ruby, key)
            }
            NextFiber::PollDue => {
                self.state.borrow_mut().end_slice();
                self.poll_parked(ruby, key, false)?;
                self.find_next(ruby, key)
            }
            NextFiber::Unclear if self.state.borrow().is_lost(key) => Err(lost(ruby)),
            NextFiber::Unclear => match self.root.phase.get() {
                Interrupts::None => self.find_next(ruby, key),
                Interrupts::ForRoot => self.switch_to_root(key),
                Interrupts::Here => Ok(NextStep::CheckInterrupts),
            },
        }
    }

    fn find_next(&self, ruby: &Ruby, key: FiberKey) -> Result<NextStep, Error> {
        loop {
            let next = {
                let mut state = self.state.borrow_mut();
                if let Some((fiber, pending_raise)) = state.take_deferred_raise() {
                    return Ok(NextStep::Raise(fiber, pending_raise));
                }
                if let Some(overdue) = state.take_overdue() {
                    return Ok(NextStep::Abandon(overdue));
                }
                state.dequeue()
            };
            match next {
                Some(next) if next.key == key => return Ok(NextStep::Continue),
                Some(next) if next.is_started || fiber::is_alive(next.fiber) => {
                    return Ok(NextStep::Switch(next.fiber));
                }
                Some(next) => self.state.borrow_mut().forget_dead(next.fiber),
                None if self.wake_drainers() => {}
                None => {
                    if self.prepare_fall_back(key)? {
                        return Ok(NextStep::Continue);
                    }
                    self.state.borrow_mut().end_slice();
                    if self.poll_parked(ruby, key, true)? == Polled::Interrupted {
                        return Ok(self.fall_back(key));
                    }
                }
            }
        }
    }

    /// The root has to check the thread's interrupts before any other fiber runs.
    #[cold]
    fn switch_to_root(&self, key: FiberKey) -> Result<NextStep, Error> {
        if self.prepare_fall_back(key)? { Ok(NextStep::Continue) } else { Ok(self.fall_back(key)) }
    }

    /// Makes the fiber that [`Scheduler::fall_back`] may need, unless there is one. Returns whether the fiber `key` is
    /// the current one now: a trap handler ran meanwhile, and waited, and its wait has consumed the wake-up of `key`.
    #[inline]
    fn prepare_fall_back(&self, key: FiberKey) -> Result<bool, Error> {
        if self.owner.fall_back.get().is_some() { Ok(false) } else { self.make_fall_back(key) }
    }

    fn make_fall_back(&self, key: FiberKey) -> Result<bool, Error> {
        {
            let state = self.state.borrow();
            if state.handles_interrupts(Some(key)) || state.forking_fiber().is_some() {
                return Ok(false);
            }
        }
        self.owner.fall_back.set(Some(fiber::fall_back_fiber()?));
        Ok(self.state.borrow().is_current(key))
    }

    /// Switches to the fiber that handles the thread's interrupts, or to one that leads to it, unless that is `key`
    /// itself.
    fn fall_back(&self, key: FiberKey) -> NextStep {
        let forking_fiber = {
            let state = self.state.borrow();
            if state.handles_interrupts(Some(key)) {
                return NextStep::CheckInterrupts;
            }
            state.forking_fiber().map(|(fiber, _)| fiber)
        };
        let Some(fiber) = forking_fiber.or_else(|| self.owner.fall_back.take()) else {
            return NextStep::CheckInterrupts;
        };
        self.root.phase.set(Interrupts::Here);
        NextStep::Switch(fiber)
    }

    /// No fiber is runnable. If no fiber is awaited either, wakes the fibers that wait for the end of all others.
    /// Returns whether the run queue has a fiber now.
    fn wake_drainers(&self) -> bool {
        let mut state = self.state.borrow_mut();
        let drainers = state.fibers.finished_drainers();
        drainers.iter().for_each(|drainer| state.wake(*drainer));
        state.queued() > 0
    }
}

#[cold]
fn lost(ruby: &Ruby) -> Error {
    Error::new(
        ruby.exception_io_error(),
        "this fiber cannot continue its wait: meanwhile its scheduler was closed, or the process forked",
    )
}
