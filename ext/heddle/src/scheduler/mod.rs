//! `Heddle::Scheduler`: the object that Ruby calls its hooks on.
//!
//! * [`fibers`]: which fibers there are, and the states of their lives.
//! * [`turns`]: the books – run queue, timers, operations under way. Pure Rust, never calls Ruby.
//! * [`reactor`]: what asks the kernel.
//! * [`hand_off`]: how the turn goes from fiber to fiber. There is no loop fiber: who waits takes the next one off the
//!   run queue and switches straight to it.
//! * [`waiting`]: how a hook waits for something, and gets out of it whatever happens.
//! * [`preempting`]: how a fiber that computes loses its turn.
//! * [`interrupting`]: how the root gets what is raised at the thread while another fiber computes.
//! * [`sharing`]: how a fiber that never has to wait loses it.
//! * [`swallowing`]: how an exception is raised again that a fiber has swallowed.
//! * [`abandoning`]: what becomes of a fiber that does not end when it is told to.
//! * [`callers`]: which methods want something else of a hook than the others do.
//! * [`hooks`]: what Ruby calls, one file per group.

mod abandoning;
mod callers;
mod ended_stacks;
mod fibers;
mod hand_off;
mod hooks;
mod interrupting;
mod masking;
mod options;
mod pending_raises;
mod preempting;
pub mod reactor;
pub mod registry;
mod sharing;
mod shield;
mod structure;
mod swallowing;
pub mod turns;
mod unhandled;
pub mod wait;
mod waiting;
mod whereabouts;
mod yielding;

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Instant;

use heddle_core::patience::Patience;
use heddle_core::workers::WorkerPool;
use magnus::gc::Marker;
use magnus::typed_data::Obj;
use magnus::{DataTypeFunctions, Error, RModule, Ruby, TryConvert, TypedData, prelude::*};

use self::callers::Callers;
use self::ended_stacks::EndedStacks;
use self::fibers::FiberKey;
use self::interrupting::Interrupts;
use self::options::{Options, Preempt};
use self::preempting::Lull;
use self::reactor::Reactor;
use self::turns::{Alarm, Turns};
use self::wait::Wait;
use crate::preempt::Pulse;
use crate::preempt::guests;
use crate::preempt::ticker::Ticker;
use crate::ruby::masks::Masks;
use crate::ruby::receiver::KeptAlive;
use crate::ruby::value::Held;
use crate::ruby::{error, fiber, fork, pending, ractor, thread};

/// A scheduler. It belongs to the thread that calls its first hook.
///
/// Other threads may come in at any time that the owner is without the GVL: `unblock`, `fiber_interrupt`, `inspect` and
/// the garbage collector. They touch `turns`, `waker` and `ticker` only. All cells are guarded by the GVL, and no borrow of
/// `turns` lives across a call into Ruby.
#[derive(TypedData, Default)]
#[magnus(class = "Heddle::Scheduler", mark, free_immediately)]
pub struct Scheduler {
    options: RefCell<Options>,
    /// `initialize` has been called.
    initialized: Cell<bool>,
    pub turns: RefCell<Turns>,
    /// Borrowed while the owner waits in the kernel. Made with the first hook, given back by `close`, made anew in a forked child.
    pub reactor: RefCell<Option<Reactor>>,
    /// Ends the owner's wait in the kernel.
    waker: RefCell<Option<heddle_core::waker::Waker>>,
    workers: RefCell<Option<Arc<WorkerPool>>>,
    /// The threads that look up names: made with the first look-up, and none of the workers, since a dead resolver can
    /// keep all of them for half a minute.
    names: RefCell<Option<Arc<WorkerPool>>>,
    /// Made with the first fiber that may be preempted.
    ticker: RefCell<Option<Ticker>>,
    /// The ticker's, where it costs nothing to look at.
    pulse: Cell<Option<&'static Pulse>>,
    lull: Cell<Lull>,
    last_tick: Cell<Option<Instant>>,
    ended_stacks: EndedStacks,
    /// How often a fiber was preempted.
    preemptions: Cell<u64>,
    /// The last tick came in a critical section.
    missed: Cell<bool>,
    /// Known from the first hook on.
    masks: Cell<Option<Masks>>,
    /// How many of them are the root's.
    masks_of_root: Cell<usize>,
    callers: RefCell<Callers>,
    patience: RefCell<Patience>,
    /// Ruby is about to close a file that another machine or another process keeps.
    closes_remote: Cell<bool>,
    /// `close` is under way.
    closing: Cell<bool>,
    /// Fibers whose wait on an IO was ended because a blocking fiber of their thread closes it.
    leavers: RefCell<Vec<FiberKey>>,
    /// An Array of what stands for such fibers; see `hooks/interrupting.rs`.
    leaving_proxies: Cell<Option<Held>>,
    pub owner: Cell<Option<Held>>,
    /// The backend that was set up last; known to other threads, too, while the owner waits in the kernel.
    backend_name: Cell<Option<&'static str>>,
    /// See [`heddle_core::Backend::is_batching`].
    batches: Cell<bool>,
    /// The thread that set up the backend; a ring is of use on that thread alone.
    opened_by: Cell<Option<Held>>,
    /// The process that all this belongs to; see [`fork`].
    generation: Cell<u64>,
    /// See [`fiber::fall_back_fiber`].
    fall_back: Cell<Option<Held>>,
    interrupts: Cell<Interrupts>,
    /// How much was left to be raised when the root looked last: it masks that.
    left_by_root: Cell<usize>,
    /// What signal handlers have raised, on its way to the root.
    for_root: RefCell<Vec<Held>>,
    /// What was raised in the root last by a signal or another thread.
    interruption: Cell<Option<Held>>,
    /// Whether what signal handlers raise is sent to the root; see `lib/heddle/signal_handlers.rb`.
    guards_signals: Cell<bool>,
}

// SAFETY: magnus asks for this because the garbage collector may free the object on any thread. All access, that one
// included, happens with the GVL, so never from two threads at once; and what the backend needs its own thread for is
// over by then, or given up (see `Reactor::release`).
unsafe impl Send for Scheduler {}

impl DataTypeFunctions for Scheduler {
    fn mark(&self, marker: &Marker) {
        let turns = self.turns.borrow();
        for (_, record) in turns.fibers.iter() {
            record.fiber.mark(marker);
            if let Some(block) = record.block {
                block.mark(marker);
            }
            if let Wait::Block(blocker) = record.wait {
                blocker.mark(marker);
            }
            record.deliveries.iter().for_each(|delivery| delivery.mark(marker));
            record.structure.mark(marker);
        }
        for alarm in turns.timers.iter() {
            if let Alarm::Deadline { delivery, .. } = alarm {
                delivery.mark(marker);
            }
        }
        for (fiber, delivery) in turns.strays() {
            fiber.mark(marker);
            delivery.mark(marker);
        }
        if let Some((fiber, _)) = turns.running() {
            fiber.mark(marker);
        }
        self.for_root.borrow().iter().for_each(|exception| exception.mark(marker));
        if let Some(fiber) = turns.ending() {
            fiber.mark(marker);
        }
        let masks = self.masks.get().map(Masks::held);
        let (proxies, interruption) = (self.leaving_proxies.get(), self.interruption.get());
        let held = [self.owner.get(), self.opened_by.get(), self.fall_back.get(), proxies, interruption, masks];
        held.into_iter().flatten().for_each(|value| value.mark(marker));
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        registry::remove(self);
        let inherited = self.is_inherited();
        self.release_ticker(inherited);
        if let Some(reactor) = self.reactor.get_mut().take() {
            reactor.release(inherited);
        }
        if inherited {
            [self.workers.get_mut().take(), self.names.get_mut().take()]
                .into_iter()
                .flatten()
                .for_each(WorkerPool::abandon);
        }
    }
}

/// A hook is under way in a fiber. Ends with the value.
pub struct Visit<'a> {
    scheduler: &'a Scheduler,
    /// The fiber.
    pub key: FiberKey,
    leaves_wake_ups: bool,
}

impl<'a> Visit<'a> {
    #[inline]
    fn new(scheduler: &'a Scheduler, key: FiberKey) -> Self {
        Visit { scheduler, key, leaves_wake_ups: false }
    }

    /// For what may come between any two instructions of the program's: an `unblock` that has come by its end is for the
    /// fiber's next hook. It might be about to call `block`, because the condition was not yet fulfilled when it looked.
    fn leave_wake_ups(mut self) -> Self {
        self.leaves_wake_ups = true;
        self
    }
}

impl Drop for Visit<'_> {
    #[inline]
    fn drop(&mut self) {
        let mut turns = self.scheduler.turns.borrow_mut();
        let Some(record) = turns.fibers.get_mut(self.key) else { return };
        record.end_visit(self.leaves_wake_ups);
        if record.visits == 0 && !record.ours {
            turns.dismiss(self.key);
        }
    }
}

impl Scheduler {
    /// The current thread's scheduler, if it is one of ours. In a Ractor other than the main one there is none.
    pub fn of_thread() -> Option<KeptAlive<Self>> {
        let scheduler = fiber::scheduler();
        if scheduler.is_nil() || !ractor::is_main() {
            return None;
        }
        Obj::try_convert(scheduler).ok().map(KeptAlive::new)
    }

    /// To be called first in each hook that only the owner's fibers may call.
    ///
    /// # Errors
    /// FiberError on another thread, as Ruby says of a fiber that is switched to from there.
    #[inline(always)]
    pub fn enter(&self, ruby: &Ruby) -> Result<Visit<'_>, Error> {
        self.enter_and(ruby, |turns, current| turns.begin_visit(current).map(|key| (key, ()))).map(|(visit, ())| visit)
    }

    /// Like [`Scheduler::enter`], for a hook that has to do with the books right away. `begin` is given them, and the fiber
    /// that runs; it returns `None`, having done nothing, if that is not the one that was given the turn, and is called
    /// again.
    #[inline(always)]
    fn enter_and<T>(
        &self,
        ruby: &Ruby,
        mut begin: impl FnMut(&mut Turns, Held) -> Option<(FiberKey, T)>,
    ) -> Result<(Visit<'_>, T), Error> {
        if self.is_inherited() {
            self.after_fork();
        }
        self.end_lull();
        let current = fiber::current();
        let (key, begun) = loop {
            if let Some(begun) = begin(&mut self.turns.borrow_mut(), current) {
                break begun;
            }
            self.enter_unexpected(ruby, current)?;
        };
        Ok((Visit::new(self, key), begun))
    }

    /// The fiber that is here is not the one that was given the turn: it is the root, one that another has resumed, or
    /// nobody's. Or this is the first hook of all.
    #[cold]
    fn enter_unexpected(&self, ruby: &Ruby, current: Held) -> Result<FiberKey, Error> {
        self.expect_owner(ruby)?;
        if self.owner.get().is_none() {
            fiber::ensure_current()?;
            pending::find(ruby)?;
            self.find_masks();
            let thread = thread::current();
            self.owner.set(Some(thread));
            if self.opened_by.get() != Some(thread) {
                self.reactor.borrow_mut().take();
            }
        }
        if self.reactor.borrow().is_none() {
            self.open(ruby)?;
        }
        self.guard_signals(ruby)?;
        self.give_turn_to(current)
    }

    /// Notes that this fiber has the turn, taking it into the books if it is not there.
    fn give_turn_to(&self, current: Held) -> Result<FiberKey, Error> {
        let found = self.turns.borrow().fibers.find(current);
        let key = match found {
            Some(key) => key,
            None => {
                let blocking = fiber::is_current_blocking()?;
                let yielding = self.options.borrow().preempt.takes_yielding() && guests::presence_of(current).is_some();
                self.take_in(current, blocking, yielding)
            }
        };
        self.turns.borrow_mut().take_turn(key);
        Ok(key)
    }

    /// Takes a fiber into the books that is not ours. Whoever has the turn has resumed it, so it is preempted as that is.
    fn take_in(&self, current: Held, blocking: bool, yielding: bool) -> FiberKey {
        let mut turns = self.turns.borrow_mut();
        let holder = turns.running().map(|(_, holder)| holder).filter(|holder| turns.has_turn(*holder));
        let resumer = holder.and_then(|holder| turns.fibers.get(holder));
        let shielded = resumer.is_some_and(|record| record.is_shielded());
        let inherited = resumer.map(|record| record.preemptible);
        let key = turns.fibers.insert(current, false, blocking, None);
        if let Some(record) = turns.fibers.get_mut(key) {
            record.resumed_by = holder;
            let wanted = yielding || inherited.unwrap_or(self.options.borrow().preempt == Preempt::All);
            record.preemptible = wanted && !shielded;
        }
        key
    }

    /// Whether `thread` is the owner.
    pub fn is_owned_by(&self, thread: Held) -> bool {
        self.owner.get() == Some(thread)
    }

    /// FiberError on any thread but the owner's.
    fn expect_owner(&self, ruby: &Ruby) -> Result<(), Error> {
        match self.owner.get() {
            Some(owner) if owner != thread::current() => Err(error::fiber_error(ruby, "fiber called across threads")),
            _ => Ok(()),
        }
    }

    /// Sets up backend and workers, if that has not been done.
    fn open(&self, ruby: &Ruby) -> Result<(), Error> {
        if self.reactor.borrow().is_some() {
            return Ok(());
        }
        if !self.initialized.get() {
            return Err(Error::new(
                ruby.exception_type_error(),
                "uninitialized Heddle::Scheduler: call `super` in initialize",
            ));
        }
        let options = *self.options.borrow();
        {
            let mut turns = self.turns.borrow_mut();
            turns.queue.set_policy(options.policy);
            turns.grace = options.grace;
        }
        let workers =
            Arc::clone(self.workers.borrow_mut().get_or_insert_with(|| Arc::new(WorkerPool::new(options.workers))));
        let reactor = Reactor::new(options.backend, workers).map_err(|error| error::from_core(ruby, error))?;
        self.backend_name.set(Some(reactor.backend_name()));
        self.batches.set(reactor.is_batching());
        *self.waker.borrow_mut() = Some(reactor.waker());
        *self.reactor.borrow_mut() = Some(reactor);
        self.opened_by.set(Some(thread::current()));
        registry::add(self);
        Ok(())
    }

    /// Whether the scheduler comes from the parent of this process and has not been used here.
    pub fn is_inherited(&self) -> bool {
        self.generation.get() != fork::generation()
    }

    /// This process is a forked child, and the fiber that runs the only one that came along.
    #[cold]
    fn after_fork(&self) {
        self.generation.set(fork::generation());
        let current = fiber::current();
        {
            let mut turns = self.turns.borrow_mut();
            let survivor = turns.fibers.find(current);
            turns.forget_siblings(survivor);
            turns.set_forker(survivor);
            // So that this hook takes the long way, which sets up a backend.
            turns.drop_turn();
        }
        self.release_ticker(true);
        if let Some(reactor) = self.reactor.borrow_mut().take() {
            reactor.release(true);
        }
        *self.waker.borrow_mut() = None;
        [self.workers.take(), self.names.take()].into_iter().flatten().for_each(WorkerPool::abandon);
        self.opened_by.set(None);
        self.fall_back.set(None);
        // The thread that forked is the only one in this process, whatever thread was the owner before.
        self.owner.set(Some(thread::current()));
    }

    /// Ends the owner's wait in the kernel, if it is in one, or has it look soon who is due. Called by any thread.
    pub fn wake_owner(&self) {
        self.end_lull();
        if let Some(waker) = self.waker.borrow().as_ref() {
            waker.wake();
        }
    }
}

/// Defines the class.
pub fn define(ruby: &Ruby, heddle: RModule) -> Result<(), Error> {
    pending::register::<interrupting::RootsGate>(ruby)?;
    hooks::define(ruby, heddle)
}
