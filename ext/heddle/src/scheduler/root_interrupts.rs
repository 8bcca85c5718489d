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
use super::raise::{PendingRaise, RaiseScope};
use super::record::FiberKey;
use crate::ruby::constant::Constant;
use crate::ruby::outcome::RubyOutcome;
use crate::ruby::pending_interrupts::{self, RaiseTiming};
use crate::ruby::value::{PinnedValue, cast, same};
use crate::ruby::{error, fiber, interrupts, postponed_job, thread};

/// Which fiber checks the thread's interrupts next.
///
/// ```text
///               the gate holds one back            a fiber switches to the root
///     None ──────────────────────────────▶ ForRoot ────────────────────────────▶ ForNext
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
    ForNext,
}

/// An exception that a fiber has raised in its own thread, by `Thread.current.raise`.
struct OwnException {
    exception: PinnedValue,
    /// See [`Scheduler::raising_fiber`].
    fiber: PinnedValue,
    /// Ruby's list has held it. If it does not any more, Ruby has raised it.
    was_listed: bool,
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
    /// That of the last fiber whose end ends the thread, too: an `exit`, or an error with `abort_on_exception`.
    fatal: Cell<Option<PinnedValue>>,
    /// They stay here while the fiber masks them.
    own: RefCell<Vec<OwnException>>,
    /// Whether exceptions that signal handlers raise are sent to the root.
    guards_signals: Cell<bool>,
}

impl RootInterrupts {
    /// Marks all Ruby objects that this refers to.
    pub fn mark(&self, marker: &Marker) {
        let sent = self.sent.borrow();
        sent.iter().chain(&self.last.get()).chain(&self.fatal.get()).for_each(|exception| exception.mark(marker));
        for own in self.own.borrow().iter() {
            own.exception.mark(marker);
            own.fiber.mark(marker);
        }
    }
}

/// Decides where an interrupt is raised.
pub struct RootGate;

impl pending_interrupts::Gate for RootGate {
    fn timing(ruby: &Ruby, class: Value, entry: Value) -> RaiseTiming {
        // A close is meant for the C function that the current fiber has called, and for no other fiber. On Ruby 3.3
        // and 3.4 that function calls `unblock` with a lock that it would not unlock if the IOError were raised there.
        if error::is_close(ruby, entry) {
            return RaiseTiming::OnBlocking;
        }
        let scheduler = fiber::scheduler(ruby);
        match cast::<Scheduler>(scheduler) {
            Some(scheduler) if scheduler.holds_back(ruby, class, entry) => RaiseTiming::Never,
            _ => RaiseTiming::Unchanged,
        }
    }
}

impl Scheduler {
    fn holds_back(&self, ruby: &Ruby, class: Value, entry: Value) -> bool {
        let current = fiber::ensure_current(ruby).not_an_interrupt("no memory for the root fiber's object");
        let is_elsewhere = current.is_some_and(|current| !self.handles_interrupts(current));
        let is_own = |fiber: PinnedValue| current.is_some_and(|current| fiber == self.raising_fiber(current));
        match self.fiber_that_raises(entry) {
            // Masked until now, perhaps.
            Some(fiber) if is_own(fiber) && is_elsewhere => return false,
            Some(fiber) if is_own(fiber) => {}
            Some(fiber) if self.state.borrow().fibers.find(fiber).is_some() => {
                // Ruby asks for a class, and so takes the answer for that of this fiber's own of the same class, too.
                // The job looks for those.
                if self.root.own.borrow().iter().any(|own| is_own(own.fiber)) {
                    postponed_job::trigger();
                }
                return true;
            }
            // The fiber has ended.
            Some(_) => self.forget_own(entry),
            None => {}
        }
        // In a blocking fiber, and in `Fiber.blocking`, `Timeout` asks no scheduler, and raises through the thread. The
        // fiber with the limit may have resumed the current one.
        let is_for_current_fiber = || {
            let resumer = self.state.borrow().fibers.current().map(|(fiber, _)| fiber.get());
            fiber::current_scheduler(ruby).is_none()
                && current.into_iter().chain(resumer).any(fiber::is_time_limited)
                && error::is_of_timeout(ruby, class)
        };
        let holds_back = is_elsewhere && !is_for_current_fiber();
        if holds_back {
            self.root.phase.set(Interrupts::ForRoot);
            postponed_job::trigger();
        } else {
            self.note_interruption(entry);
            // Ruby raises one exception at a time, and the others when the thread next waits.
            if pending_interrupts::count(ruby) > 1 || !self.root.sent.borrow().is_empty() {
                self.root.phase.set(Interrupts::ForRoot);
            }
        }
        holds_back
    }

    /// The current fiber raises `exception` in its own thread. From now on Ruby may raise it in this fiber, as
    /// `Kernel#raise` would.
    pub fn raises_own(&self, ruby: &Ruby, exception: Value) {
        let current = fiber::current(ruby);
        self.forget_raised(ruby, current);
        let pair = [exception, self.raising_fiber(current)];
        // SAFETY: `RootInterrupts::mark` marks both.
        let [exception, fiber] = pair.map(|value| unsafe { PinnedValue::assume_marked(value) });
        let (state, mut own) = (self.state.borrow(), self.root.own.borrow_mut());
        // Those that are left may be of fibers that have ended since.
        own.retain(|own| state.fibers.find(own.fiber).is_some());
        own.push(OwnException { exception, fiber, was_listed: false });
    }

    /// Ruby has been asked to raise what [`Scheduler::raises_own`] has noted. It has done so, or holds it on its list
    /// until masks let it through.
    pub fn has_raised_own(&self, ruby: &Ruby, exception: Value) {
        if !pending_interrupts::has(ruby, exception) {
            return self.forget_own(exception);
        }
        let mut own = self.root.own.borrow_mut();
        own.iter_mut().filter(|own| same(own.exception, exception)).for_each(|own| own.was_listed = true);
    }

    /// Forgets what `current` has raised in its own thread, if Ruby's list has held it, and does not any more. Returns
    /// whether there is anything.
    pub fn forget_raised(&self, ruby: &Ruby, current: Value) -> bool {
        let fiber = self.raising_fiber(current);
        let listed = pending_interrupts::listed(ruby);
        let is_raised =
            |own: &OwnException| own.was_listed && own.fiber == fiber && !listed.contains(&own.exception.into());
        let mut own = self.root.own.borrow_mut();
        let before = own.len();
        own.retain(|own| !is_raised(own));
        own.len() < before
    }

    /// The fiber in which `Thread.current.raise` of `current` raises, when masks let it: the fiber itself, or the one
    /// that has resumed it, and that has its generators as a thread has them.
    fn raising_fiber(&self, current: Value) -> Value {
        let state = self.state.borrow();
        let key = state.fibers.find_running(current);
        key.and_then(|key| state.fibers.fiber(state.outermost(key))).unwrap_or(current)
    }

    /// The next exception that `current` has raised in its own thread, if Ruby has yet to raise it and no mask holds it
    /// back. It is to be raised as soon as the running postponed job ends. Another fiber must not run before that: it
    /// would check interrupts, and then Ruby does not search its list again for this one.
    pub fn own_next(&self, ruby: &Ruby, current: Value) -> Option<Value> {
        self.own_that(ruby, current, |own| !self.is_masked(ruby, own))
    }

    fn own_that(&self, ruby: &Ruby, current: Value, is_let_through: impl Fn(Value) -> bool) -> Option<Value> {
        if !self.may_have_own() {
            return None;
        }
        let fiber = self.raising_fiber(current);
        let listed = pending_interrupts::listed(ruby);
        let is_left = |own: &&OwnException| own.fiber == fiber && listed.contains(&own.exception.into());
        // `is_let_through` allocates, so nothing may be borrowed that the collector marks.
        let left: Vec<PinnedValue> = self.root.own.borrow().iter().filter(is_left).map(|own| own.exception).collect();
        left.into_iter().map(PinnedValue::get).find(|own| is_let_through(*own))
    }

    /// `current`, which has this key, is about to wait. Of several exceptions Ruby raises one at the end of a mask, and
    /// the others when the thread next waits. They are raised in this wait, or in the fiber's next one.
    #[cold]
    pub fn send_own(&self, ruby: &Ruby, key: FiberKey) {
        self.forget_raised(ruby, fiber::current(ruby));
        let masks = self.preemption.masks.get();
        let is_let_through = |own| !masks.is_some_and(|masks| masks.defer_in_wait(ruby, own));
        while let Some(own) = self.own_that(ruby, fiber::current(ruby), is_let_through) {
            let mut state = self.state.borrow_mut();
            let outermost = state.outermost(key);
            state.send_raise(outermost, PendingRaise::new(own, None, RaiseScope::Fiber));
            drop(state);
            self.withdraw_own(ruby, own);
        }
    }

    /// The program's part of the current fiber has ended. Drops what the fiber has raised in its own thread and Ruby
    /// has yet to raise, as the end of a thread does.
    pub fn drop_own(&self, ruby: &Ruby) {
        let current = fiber::current(ruby);
        let next = || self.root.own.borrow().iter().find(|own| own.fiber == current).map(|own| own.exception.get());
        while let Some(own) = next() {
            self.withdraw_own(ruby, own);
        }
    }

    fn withdraw_own(&self, ruby: &Ruby, exception: Value) {
        pending_interrupts::withdraw(ruby, exception);
        self.forget_own(exception);
    }

    fn fiber_that_raises(&self, exception: Value) -> Option<PinnedValue> {
        let own = self.root.own.borrow();
        own.iter().find(|own| same(own.exception, exception)).map(|own| own.fiber)
    }

    fn forget_own(&self, exception: Value) {
        let mut own = self.root.own.borrow_mut();
        let index = own.iter().position(|own| same(own.exception, exception));
        index.map(|index| own.remove(index));
    }

    /// Whether a fiber of the scheduler has raised an exception in its own thread that Ruby has perhaps not raised yet.
    #[inline]
    pub fn may_have_own(&self) -> bool {
        !self.root.own.borrow().is_empty()
    }

    /// Whether the current fiber handles the thread's interrupts.
    pub fn handles_interrupts(&self, current: Value) -> bool {
        // If an interrupt ends the fiber that leads to the root, Ruby raises it in the root.
        if !self.is_in_use(&Ruby::get_with(current)) || self.root.phase.get() == Interrupts::ForNext {
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
        if pending_interrupts::is_any(ruby) {
            interrupts::request_check(ruby);
        }
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

    /// Notes that a fiber ends by what ends the thread, too: Ruby raises it in the root.
    pub fn note_fatal(&self, exception: Value) {
        // SAFETY: `RootInterrupts::mark` marks it.
        self.root.fatal.set(Some(unsafe { PinnedValue::assume_marked(exception) }));
    }

    /// Whether `error` is the last exception that a signal or another thread raised in the root.
    pub fn is_interrupted_by(&self, error: &Error) -> bool {
        is_noted(&self.root.last, error)
    }

    /// Whether `error` is that, or of a fiber whose end ends the thread, too.
    pub fn ends_all(&self, error: &Error) -> bool {
        self.is_interrupted_by(error) || is_noted(&self.root.fatal, error)
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
    /// What a signal or another thread raises meanwhile, and what signal handlers have raised in fibers and the root
    /// has not raised yet. The program's handlers have been restored even then.
    pub fn unguard_signals(&self, ruby: &Ruby) -> Result<(), Error> {
        if !self.root.guards_signals.replace(false) {
            return Ok(());
        }
        let restored = signal_handlers(ruby)?.funcall::<_, _, Value>("restore", ()).map(|_| ());
        restored.and_ensure(|| self.raise_sent(ruby))
    }
}

fn is_noted(noted: &Cell<Option<PinnedValue>>, error: &Error) -> bool {
    error::exception_of(error).zip(noted.get()).is_some_and(|(exception, noted)| noted == exception)
}

fn signal_handlers(ruby: &Ruby) -> Result<RModule, Error> {
    static SIGNAL_HANDLERS: Constant = Constant::new(&["Heddle", "SignalHandlers"]);
    SIGNAL_HANDLERS.get(ruby)
}
