//! Exceptions from signals and other threads reach the thread's root fiber, whichever fiber runs when they arrive.
//! Otherwise a fiber that computes within `rescue Exception` could swallow the process's SIGTERM.
//!
//! Ruby asks the [`RootGate`] before it raises. In any other fiber the gate holds the exception back and triggers the
//! postponed job, which Ruby runs next: the fiber yields, and the root checks its interrupts
//! (`preempt/tick.rs`). Where the job must not switch, the next hook does, or the next tick.
//!
//! The handlers of `trap` run in the current fiber. `lib/heddle/patches/signal_handlers.rb` sends the exceptions that
//! they raise to the root.

use std::cell::{Cell, RefCell};

use magnus::gc::Marker;
use magnus::{Error, RModule, Ruby, Value, prelude::*};

use super::Scheduler;
use super::fibers::FiberKey;
use crate::ruby::constant::Constant;
use crate::ruby::outcome::RubyOutcome;
use crate::ruby::pending_interrupts::{self, Timing};
use crate::ruby::value::{PinnedValue, cast, same};
use crate::ruby::{error, fiber, interrupts, postponed_job, thread};

/// Which fiber checks the thread's interrupts next.
///
/// ```text
///               the gate holds one back            a fiber switches to the root
///     None ──────────────────────────────▶ ForRoot ────────────────────────────▶ Here
///      ▲                                       │                                   │
///      └───────────────────────────────────────┴───────────────────────────────────┘
///                                 the root has checked
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Interrupts {
    /// The fiber that finds an interrupt.
    #[default]
    None,
    /// The root, before any other fiber runs.
    ForRoot,
    /// The fiber that gets control next: the root, or a fiber that leads to it.
    Here,
}

/// See the module.
#[derive(Default)]
pub struct RootInterrupts {
    pub phase: Cell<Interrupts>,
    /// How many interrupts were left when the root checked last, since the root masks them.
    left_count: Cell<usize>,
    /// Exceptions from signal handlers that the root has yet to raise.
    sent: RefCell<Vec<PinnedValue>>,
    /// The last exception that a signal or another thread raised in the root.
    last: Cell<Option<PinnedValue>>,
    /// The exceptions that fibers raise in their own thread, by `Thread.current.raise`, each with its fiber. They stay
    /// here while the fiber masks them.
    pub own: RefCell<Vec<(PinnedValue, PinnedValue)>>,
    /// Whether exceptions that signal handlers raise are sent to the root.
    guards_signals: Cell<bool>,
}

impl RootInterrupts {
    /// Marks all Ruby objects that this refers to.
    pub fn mark(&self, marker: &Marker) {
        self.sent.borrow().iter().chain(&self.last.get()).for_each(|exception| exception.mark(marker));
        for (exception, fiber) in self.own.borrow().iter() {
            exception.mark(marker);
            fiber.mark(marker);
        }
    }
}

/// Decides where an interrupt is raised.
pub struct RootGate;

impl pending_interrupts::Gate for RootGate {
    fn timing(ruby: &Ruby, class: Value, entry: Value) -> Timing {
        // A close is meant for the C function that the current fiber has called, and for no other fiber. On Ruby 3.3
        // and 3.4 that function calls `unblock` with a lock that it would not unlock if the IOError were raised there.
        if error::is_close(ruby, entry) {
            return Timing::OnBlocking;
        }
        let scheduler = fiber::scheduler(ruby);
        match cast::<Scheduler>(scheduler) {
            Some(scheduler) if scheduler.holds_back(ruby, class, entry) => Timing::Never,
            _ => Timing::Unchanged,
        }
    }
}

impl Scheduler {
    fn holds_back(&self, ruby: &Ruby, class: Value, entry: Value) -> bool {
        // `Timeout` is meant for the current block. In a blocking fiber it asks no scheduler, and raises through the
        // thread.
        let is_for_current_fiber = || fiber::current_scheduler(ruby).is_none() && error::is_of_timeout(ruby, class);
        let current = fiber::ensure_current(ruby).not_an_interrupt("no memory for the root fiber's object");
        let is_elsewhere = current.is_some_and(|current| !self.handles_interrupts(current));
        match self.fiber_that_raises(entry) {
            // Masked until now, perhaps.
            Some(fiber) if current.is_some_and(|current| fiber == current) => {
                self.forget_own(entry);
                if is_elsewhere {
                    return false;
                }
            }
            Some(fiber) if self.state.borrow().fibers.find(fiber).is_some() => return true,
            // The fiber has ended.
            Some(_) => self.forget_own(entry),
            None => {}
        }
        let holds_back = is_elsewhere && !is_for_current_fiber();
        if holds_back {
            self.root.phase.set(Interrupts::ForRoot);
            postponed_job::trigger();
        } else {
            self.note_interruption(entry);
        }
        holds_back
    }

    /// The current fiber raises `exception` in its own thread. From now on Ruby may raise it in this fiber, as
    /// `Kernel#raise` would.
    pub fn raises_own(&self, ruby: &Ruby, exception: Value) {
        let state = self.state.borrow();
        let pair = [exception, fiber::current(ruby)];
        // SAFETY: `RootInterrupts::mark` marks both.
        let [exception, fiber] = pair.map(|value| unsafe { PinnedValue::assume_marked(value) });
        let mut own = self.root.own.borrow_mut();
        // Those that are left may be of fibers that have ended since.
        own.retain(|(_, fiber)| state.fibers.find(*fiber).is_some());
        own.push((exception, fiber));
    }

    fn fiber_that_raises(&self, exception: Value) -> Option<PinnedValue> {
        let own = self.root.own.borrow();
        own.iter().find(|(raised, _)| same(*raised, exception)).map(|(_, fiber)| *fiber)
    }

    fn forget_own(&self, exception: Value) {
        self.root.own.borrow_mut().retain(|(raised, _)| !same(*raised, exception));
    }

    /// Whether the current fiber handles the thread's interrupts.
    pub fn handles_interrupts(&self, current: Value) -> bool {
        // If an interrupt ends the fiber that leads to the root, Ruby raises it in the root.
        if !self.is_in_use(&Ruby::get_with(current)) || self.root.phase.get() == Interrupts::Here {
            return true;
        }
        let state = self.state.borrow();
        state.handles_interrupts(state.fibers.find(current))
    }

    /// Whether the root has to run soon because something is to be raised in it.
    pub fn is_root_wanted(&self, ruby: &Ruby) -> bool {
        let count = pending_interrupts::count(ruby);
        if count < self.root.left_count.get() {
            self.root.left_count.set(count);
        }
        // Ruby does not ask the gate about an interrupt that the current fiber masks.
        self.root.phase.get() == Interrupts::ForRoot || count > self.root.left_count.get()
    }

    /// The fiber that handles the thread's interrupts checks them. A trap handler may call anything, so the state is
    /// made consistent first.
    pub fn check_interrupts(&self, ruby: &Ruby, key: FiberKey) -> Result<(), Error> {
        self.state.borrow_mut().set_current(key);
        self.root.phase.set(Interrupts::None);
        let checked = self.raise_sent(ruby).and_then(|()| interrupts::check(ruby));
        self.root.left_count.set(match &checked {
            Ok(()) => pending_interrupts::count(ruby),
            Err(_kept) => 0,
        });
        checked
    }

    /// A signal's handler, or Ruby's default handling, has raised `exception` in a fiber that does not handle the
    /// thread's interrupts.
    pub fn send_to_root(&self, exception: Value) {
        // SAFETY: `RootInterrupts::mark` marks it.
        self.root.sent.borrow_mut().push(unsafe { PinnedValue::assume_marked(exception) });
        self.root.phase.set(Interrupts::ForRoot);
        postponed_job::trigger();
    }

    /// Raises as if from another thread, so that the root's masks apply.
    fn raise_sent(&self, ruby: &Ruby) -> Result<(), Error> {
        loop {
            let mut sent = self.root.sent.borrow_mut();
            if sent.is_empty() {
                return Ok(());
            }
            let exception = sent.remove(0);
            drop(sent);
            thread::raise_into(thread::current(ruby), exception.get())?;
        }
    }

    /// Notes that a signal or another thread raises `exception` in the fiber that handles the thread's interrupts.
    pub fn note_interruption(&self, exception: Value) {
        // SAFETY: `RootInterrupts::mark` marks it.
        self.root.last.set(Some(unsafe { PinnedValue::assume_marked(exception) }));
    }

    /// Whether `error` is the last exception that a signal or another thread raised in the root.
    pub fn is_interrupted_by(&self, error: &Error) -> bool {
        let raised = error::exception_of(error).zip(self.root.last.get());
        raised.is_some_and(|(exception, last)| last == exception)
    }

    /// Ruby handles signals on the main thread. From now on the root raises the exceptions of their handlers.
    pub fn guard_signals(&self, ruby: &Ruby) -> Result<(), Error> {
        if self.root.guards_signals.get() || !thread::is_main(ruby) {
            return Ok(());
        }
        self.root.guards_signals.set(true);
        signal_handlers(ruby)?.funcall::<_, _, Value>("install", ()).map(|_| ())
    }

    /// The inverse of [`Scheduler::guard_signals`], when the scheduler closes.
    ///
    /// # Errors
    /// What a signal or another thread raises meanwhile, and what signal handlers have raised in fibers and the root has
    /// not raised yet. The program's handlers have been restored even then.
    pub fn unguard_signals(&self, ruby: &Ruby) -> Result<(), Error> {
        if !self.root.guards_signals.replace(false) {
            return Ok(());
        }
        let restored = signal_handlers(ruby)?.funcall::<_, _, Value>("restore", ()).map(|_| ());
        restored.and_ensure(|| self.raise_sent(ruby))
    }
}

fn signal_handlers(ruby: &Ruby) -> Result<RModule, Error> {
    static SIGNAL_HANDLERS: Constant = Constant::new(&["Heddle", "SignalHandlers"]);
    SIGNAL_HANDLERS.get(ruby)
}
