//! What signals and other threads raise at the thread belongs to its root fiber, whichever fiber runs when it comes: a
//! fiber that computes within `rescue Exception` would swallow the SIGTERM of the process.
//!
//! Ruby asks the [`RootsGate`] before it raises. In any other fiber that holds the exception back, and has the postponed
//! job run right after: there the fiber steps aside, and the root looks at its interrupts. Where the job must not switch,
//! the next hook does, or the next tick.
//!
//! The handlers of `trap` run in the fiber that Ruby finds; what they raise is sent to the root by
//! `lib/heddle/signal_handlers.rb`.

use magnus::typed_data::Obj;
use magnus::{Error, RModule, Ruby, TryConvert, Value, prelude::*};

use super::fibers::FiberKey;
use super::{Scheduler, Visit};
use crate::preempt::ticker::{Ticker, TickerChoice};
use crate::preempt::{pace, safe_points};
use crate::ruby::value::Held;
use crate::ruby::{error, fiber, interrupts, pending, postponed_job, thread};

/// Who has to look at the thread's interrupts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Interrupts {
    /// Nobody, but who finds some.
    #[default]
    None,
    /// The fiber that answers for the thread, before anybody else has a turn.
    ForRoot,
    /// Who gets the control next.
    Here,
}

/// See the module.
pub struct RootsGate;

impl pending::Gate for RootsGate {
    fn holds_back(ruby: &Ruby, class: Value, entry: Value) -> bool {
        let scheduler = fiber::scheduler();
        let scheduler = if scheduler.is_nil() { None } else { Obj::<Scheduler>::try_convert(scheduler).ok() };
        scheduler.is_some_and(|scheduler| scheduler.holds_back(ruby, class, entry))
    }
}

impl Scheduler {
    fn holds_back(&self, ruby: &Ruby, class: Value, entry: Value) -> bool {
        // `Timeout` means the block that runs, and no scheduler is asked for that in a blocking fiber.
        let is_meant = || fiber::current_scheduler().is_none() && error::is_of_timeout(ruby, class);
        // It is for the native call that the fiber which runs comes from, and for no other.
        if error::is_close(ruby, entry) {
            return false;
        }
        let holds_back = fiber::ensure_current().is_ok_and(|current| !self.answers(current)) && !is_meant();
        if holds_back {
            self.interrupts.set(Interrupts::ForRoot);
            postponed_job::trigger();
        } else {
            self.note_interruption(entry);
        }
        holds_back
    }

    /// Whether the fiber that runs is the one to be interrupted.
    pub(super) fn answers(&self, current: Held) -> bool {
        if self.is_inherited() || self.owner.get() != Some(thread::current()) {
            return true;
        }
        // What ends the fiber that leads to the root Ruby raises in the root.
        if self.interrupts.get() == Interrupts::Here {
            return true;
        }
        let turns = self.turns.borrow();
        turns.answers(turns.fibers.find(current))
    }

    /// Whether something is to be raised in the root as soon as may be.
    pub(super) fn is_root_wanted(&self) -> bool {
        let count = pending::count();
        if count < self.left_by_root.get() {
            self.left_by_root.set(count);
        }
        // What a fiber has masked the gate was not asked for.
        self.interrupts.get() == Interrupts::ForRoot || count > self.left_by_root.get()
    }

    /// The fiber that a postponed job has found steps aside, and the root looks at its interrupts.
    pub(super) fn hand_to_root(&self, ruby: &Ruby, current: Held) {
        self.interrupts.set(Interrupts::ForRoot);
        let is_shielded = {
            let turns = self.turns.borrow();
            let holder = turns.fibers.find(current).or_else(|| turns.running().map(|(_, key)| key));
            holder.and_then(|key| turns.fibers.get(key)).is_some_and(|record| record.is_shielded())
        };
        if is_shielded || !safe_points::is_here() {
            return self.hand_to_root_soon(ruby);
        }
        if self.turns.borrow().fibers.find(current).is_none() {
            // A blocking one, too, comes back before the scheduler may close: it is not the root.
            self.take_in(current, false, false);
        }
        let Ok(visit) = self.enter(ruby).map(Visit::leave_wake_ups) else { return };
        let key = visit.key;
        pace::end();
        // It goes on as soon as the root has looked: who is not preempted counts on having no others in between.
        let lost = self.pass_turn(ruby, key, |turns| turns.step_aside(key)).map(|_| ());
        self.go_on(ruby, current, visit, lost);
    }

    /// At the next tick, if no hook comes before.
    fn hand_to_root_soon(&self, ruby: &Ruby) {
        self.tick_in_any_case(ruby);
        self.try_again_soon();
    }

    /// Ticks even if no fiber may be preempted: the root is to have a turn beside one that computes. Without a thread to
    /// be had it has one when that comes to a hook.
    pub(super) fn tick_in_any_case(&self, ruby: &Ruby) {
        if self.ticker.borrow().is_none() {
            let tick = self.options.borrow().policy.tick;
            let Ok(ticker) = Ticker::start(ruby, TickerChoice::Timerfd, 0, tick) else { return };
            self.pulse.set(Some(ticker.pulse));
            *self.ticker.borrow_mut() = Some(ticker);
        }
        let _ = self.begin_ticking();
    }

    /// The fiber that answers for the thread looks at its interrupts. A trap may call anything, so the books are right
    /// before.
    pub(super) fn check_interrupts(&self, key: FiberKey) -> Result<(), Error> {
        self.leave_park(key);
        self.interrupts.set(Interrupts::None);
        let checked = self.raise_for_root().and_then(|()| interrupts::check());
        self.left_by_root.set(if checked.is_ok() { pending::count() } else { 0 });
        checked
    }

    /// The handler of a signal, or Ruby in its stead, has raised this in a fiber where it does not belong.
    pub(super) fn send_to_root(&self, exception: Value) {
        self.for_root.borrow_mut().push(Held::new(exception));
        self.interrupts.set(Interrupts::ForRoot);
        postponed_job::trigger();
    }

    /// As if another thread had raised it here, so that masks count.
    fn raise_for_root(&self) -> Result<(), Error> {
        loop {
            let mut all = self.for_root.borrow_mut();
            if all.is_empty() {
                return Ok(());
            }
            let exception = all.remove(0);
            drop(all);
            thread::raise_into(thread::current(), exception.get())?;
        }
    }

    /// A signal or another thread has this raised in the fiber that answers for the thread.
    pub(super) fn note_interruption(&self, exception: Value) {
        self.interruption.set(Some(Held::new(exception)));
    }

    /// Whether that is the error.
    pub(super) fn is_interrupted_by(&self, error: &Error) -> bool {
        let exception = error::exception_of(error).map(Held::new);
        exception.is_some() && exception == self.interruption.get()
    }

    /// Signals are handled on the main thread: from now on the root gets what their handlers raise.
    pub(super) fn guard_signals(&self, ruby: &Ruby) -> Result<(), Error> {
        if self.guards_signals.get() || !thread::is_main() {
            return Ok(());
        }
        self.guards_signals.set(true);
        signal_handlers(ruby)?.funcall::<_, _, Value>("guard", ()).map(|_| ())
    }

    /// The scheduler is closed.
    pub(super) fn unguard_signals(&self) {
        if self.guards_signals.replace(false) {
            // SAFETY: called by hooks, with the GVL.
            let ruby = unsafe { Ruby::get_unchecked() };
            let _ = signal_handlers(&ruby).and_then(|handlers| handlers.funcall::<_, _, Value>("leave", ()));
        }
    }
}

fn signal_handlers(ruby: &Ruby) -> Result<RModule, Error> {
    ruby.class_object().const_get::<_, RModule>("Heddle")?.const_get("SignalHandlers")
}
