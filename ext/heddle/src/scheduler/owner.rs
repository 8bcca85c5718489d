//! The thread and the process that a scheduler belongs to, and the first hook in a forked child.

use std::cell::{Cell, RefCell, UnsafeCell};
use std::ops::Deref;

use magnus::{Error, Ruby, Value};

use super::record::FiberKey;
use super::state::ending::LossCause;
use super::{Scheduler, closing_numbers};
use crate::ruby::insides::Mutexes;
use crate::ruby::receiver::KeptAlive;
use crate::ruby::value::{PinnedValue, cast};
use crate::ruby::{error, fiber, fork, ractor, thread};

/// See the module.
#[derive(Default)]
pub struct Owner {
    /// The thread that called the first hook.
    pub thread: Cell<Option<PinnedValue>>,
    /// The fork generation of the process; see [`fork`].
    pub generation: Cell<u64>,
    /// See [`fiber::fall_back_fiber`].
    pub fall_back: Cell<Option<PinnedValue>>,
}

impl Owner {
    /// The scheduler belongs to this thread from now on.
    pub fn set_thread(&self, thread: Value) {
        // SAFETY: `Scheduler::mark` marks it.
        self.thread.set(Some(unsafe { PinnedValue::assume_marked(thread) }));
    }
}

/// A cell for what a thread may have borrowed while it is without the GVL, and another thread forks. In the child that
/// thread does not exist, and never returns its borrow.
pub struct ForkCell<T>(UnsafeCell<RefCell<Option<T>>>);

impl<T> ForkCell<T> {
    /// Takes what the cell has inherited from the parent of this process, whether or not it is borrowed. Called in a
    /// forked child only, before the cell is borrowed there.
    pub fn take_inherited(&self) -> Option<T> {
        // SAFETY: a thread forks with the GVL, which it gets only after its own borrow has ended: a borrow lives across
        // no call into Ruby but the wait without the GVL. So each borrow is of a thread that does not exist here.
        let cell = unsafe { &mut *self.0.get() };
        let taken = cell.get_mut().take();
        *cell = RefCell::default();
        taken
    }
}

impl<T> Default for ForkCell<T> {
    fn default() -> Self {
        ForkCell(UnsafeCell::default())
    }
}

impl<T> Deref for ForkCell<T> {
    type Target = RefCell<Option<T>>;
    #[inline]
    fn deref(&self) -> &RefCell<Option<T>> {
        // SAFETY: `take_inherited` alone makes an exclusive reference, and nothing else runs meanwhile.
        unsafe { &*self.0.get() }
    }
}

impl Scheduler {
    /// The current thread's scheduler, if it is a Heddle scheduler. Only the main Ractor has one.
    pub fn of_thread(ruby: &Ruby) -> Option<KeptAlive<Self>> {
        if !ractor::is_main(ruby) {
            return None;
        }
        cast(fiber::scheduler(ruby)).map(KeptAlive::new)
    }

    /// The current thread's scheduler, if it is a Heddle scheduler that this thread has used, in this process.
    pub fn in_use(ruby: &Ruby) -> Option<KeptAlive<Self>> {
        Scheduler::of_thread(ruby).filter(|scheduler| scheduler.is_in_use(ruby))
    }

    /// Whether the current thread has used the scheduler in this process.
    pub fn is_in_use(&self, ruby: &Ruby) -> bool {
        self.is_owned_by(thread::current(ruby)) && !self.is_inherited()
    }

    /// Whether `thread` is the owner.
    pub fn is_owned_by(&self, thread: Value) -> bool {
        self.owner.thread.get().is_some_and(|owner| owner == thread)
    }

    /// In a forked child, where the owner may not exist, the current thread becomes the owner of an inherited
    /// scheduler.
    ///
    /// # Errors
    /// FiberError on any thread but the owner's.
    pub fn expect_owner(&self, ruby: &Ruby) -> Result<(), Error> {
        if self.is_inherited() {
            self.after_fork(ruby);
        }
        match self.owner.thread.get() {
            Some(owner) if owner != thread::current(ruby) => {
                Err(error::fiber_error(ruby, "fiber called across threads"))
            }
            _ => Ok(()),
        }
    }

    /// Whether the scheduler comes from the parent of this process and has not been used here.
    pub fn is_inherited(&self) -> bool {
        self.owner.generation.get() != fork::generation()
    }

    /// This process is a forked child, in which only the current fiber exists.
    #[cold]
    pub fn after_fork(&self, ruby: &Ruby) {
        self.owner.generation.set(fork::generation());
        let survivor = self.leave_fibers_in_parent(ruby);
        {
            let mut state = self.state.borrow_mut();
            state.set_forking_fiber(survivor);
            state.reset_counts();
            state.end_trace();
            // The hook then takes the slow path, which sets up a backend.
            state.fibers.clear_current();
        }
        let current = fiber::current(ruby);
        closing_numbers::forget_closers(ruby, |closer| closer != current);
        self.preemption.preemptions.set(0);
        self.release_resources(true);
        self.io.opened_by.set(None);
        self.owner.fall_back.set(None);
        // The thread that forked is the only one in this process, even if another thread was the owner before.
        self.owner.set_thread(thread::current(ruby));
        // Its fibers keep their masks, as in the parent.
        self.find_masks(ruby);
    }

    /// All fibers but the current one stayed in the parent of this process. They are forgotten, and with them what they
    /// held and waited for: this is the rule for all that a forked child inherits, as Ruby has it for threads. Called
    /// as early as the child can, and again at its first hook, as a child of `Process.daemon` calls nothing earlier.
    ///
    /// Returns the current fiber's key, if the scheduler knows it.
    pub fn leave_fibers_in_parent(&self, ruby: &Ruby) -> Option<FiberKey> {
        let survivor = self.state.borrow().fibers.find(fiber::current(ruby));
        let left = self.state.borrow().left_in_parent(survivor);
        let mutexes = Mutexes::layout(ruby);
        if let Some(mutexes) = mutexes {
            let holders = self.state.borrow().leave_waits(ruby, &left, mutexes);
            mutexes.abandon(&holders, ruby);
        }
        let mut state = self.state.borrow_mut();
        state.forget_other_fibers(ruby, survivor, LossCause::Fork);
        // Otherwise Ruby's Mutexes still refer to the stacks of their waiters, which must stay then.
        if mutexes.is_some() {
            state.remove_left(&left);
        }
        survivor
    }
}
