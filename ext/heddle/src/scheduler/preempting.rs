//! How a fiber that computes loses its turn: at a tick, in the job that Ruby runs at its next safe point.
//!
//! The fiber parks right in there, as it would in a hook. What is raised into it meanwhile Ruby would swallow with the
//! job, so another thread raises that at the place where the fiber was preempted (see `ruby/aside.rs`).

use std::time::{Duration, Instant};

use libc::c_int;
use magnus::{Error, Ruby, Value, prelude::*};

use super::fibers::{Delivery, FiberKey, Scope};
use super::options::Preempt;
use super::{Scheduler, Visit};
use crate::preempt::guests;
use crate::preempt::pace;
use crate::preempt::safe_points;
use crate::preempt::ticker::{Ticker, TickerChoice};
use crate::ruby::value::Held;
use crate::ruby::{aside, error, fiber, interrupts, pending, thread};

/// Whether ticks are put off: while a fiber computes, and it is known when somebody else can be due at the earliest.
///
/// ```text
///             a tick finds nobody           the next one, too
///     None ───────────────────────▶ Expected ───────────────▶ Begun ◀─┐ it ends, and
///      ▲                                │                      │ └────┘ there is nobody
///      └────────────────────────────────┴──────────────────────┘
///                anything happens that might make somebody due
/// ```
///
/// The first step sets no timer, so a fiber that computes and calls hooks all the time costs no system calls. It is left
/// out when a fiber that was preempted goes on: see `expect_next_due`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Lull {
    /// The last tick came before what has happened since, or there was none.
    #[default]
    None,
    /// Since the last tick nothing has happened. Ticks come in their usual time.
    Expected,
    /// The next tick is put off.
    Begun,
}

impl Scheduler {
    /// A fiber that may be preempted is about to run on this thread: makes a ticker if there is none, and lets it tick.
    pub fn expect_ticks(&self, ruby: &Ruby) -> Result<(), Error> {
        let options = *self.options.borrow();
        if options.preempt == Preempt::None {
            return Ok(());
        }
        if self.ticker.borrow().is_none() {
            let ticker = Ticker::start(ruby, options.ticker, options.signal, options.policy.tick)?;
            self.pulse.set(Some(ticker.pulse));
            *self.ticker.borrow_mut() = Some(ticker);
        }
        self.begin_ticking().map_err(|error| error::from_core(ruby, error))
    }

    pub(super) fn begin_ticking(&self) -> Result<(), heddle_core::Error> {
        self.ticker.borrow().as_ref().map_or(Ok(()), Ticker::begin)
    }

    /// The fiber begins, or goes on. If it may be preempted it needs ticks.
    #[inline]
    pub fn tick_for(&self, key: FiberKey) {
        self.end_lull();
        if let Some(pulse) = self.pulse.get()
            && !pulse.is_ticking()
            && self.needs_ticks(key)
        {
            // It fails for timers that do not exist alone.
            let _ = self.begin_ticking();
        }
    }

    fn needs_ticks(&self, key: FiberKey) -> bool {
        let turns = self.turns.borrow();
        turns.is_stopping() || turns.fibers.get(key).is_some_and(|record| record.preemptible)
    }

    /// A tick has found nobody who is due. If that is sure to stay so for a while, the next ones would find nobody either.
    fn begin_lull(&self, now: Instant) {
        let since = self.last_tick.get().map_or(Duration::ZERO, |tick| now.saturating_duration_since(tick));
        let due = self.turns.borrow_mut().due_at(now).filter(|_| !self.is_root_wanted());
        let Some(due) = due else { return self.end_lull() };
        let length = due.saturating_duration_since(now);
        let began = self.lull.get() != Lull::None
            && self.ticker.borrow().as_ref().is_some_and(|ticker| ticker.put_off(length, since));
        self.lull.set(if began { Lull::Begun } else { Lull::Expected });
    }

    /// Somebody might be due sooner than the last tick has found. To be called by whoever comes into the scheduler, on
    /// any thread.
    #[inline]
    pub(super) fn end_lull(&self) {
        if self.lull.get() != Lull::None {
            self.break_lull();
        }
    }

    #[cold]
    fn break_lull(&self) {
        if self.lull.replace(Lull::None) == Lull::Begun {
            self.ticker.borrow().as_ref().inspect(|ticker| ticker.hurry());
        }
    }

    /// Gives back the ticker. `inherited` says that it belongs to the parent of this process.
    pub(super) fn release_ticker(&self, inherited: bool) {
        self.pulse.set(None);
        self.lull.set(Lull::None);
        self.masks.set(None);
        match self.ticker.borrow_mut().take() {
            Some(ticker) if inherited => ticker.abandon(),
            ticker => drop(ticker),
        }
    }

    /// The program wants the signal with which the ticker ticks: from now on it ticks without.
    pub fn give_up_signal(&self, ruby: &Ruby, signal: c_int) -> Result<(), Error> {
        let (uses, ticks) = {
            let ticker = self.ticker.borrow();
            let uses = ticker.as_ref().is_some_and(|ticker| ticker.uses(signal));
            (uses, self.pulse.get().is_some_and(|pulse| pulse.is_ticking()))
        };
        if !uses {
            return Ok(());
        }
        self.options.borrow_mut().ticker = TickerChoice::Timerfd;
        self.release_ticker(self.is_inherited());
        if ticks { self.expect_ticks(ruby) } else { Ok(()) }
    }

    /// The ticker's name, if there is one.
    pub fn ticker_name(&self) -> Option<&'static str> {
        self.ticker.borrow().as_ref().map(Ticker::name)
    }

    /// Counts the critical sections, or blocks of the program's, within the hook that the fiber is in.
    pub(super) fn expose(&self, key: FiberKey, by: i32) {
        if let Some(record) = self.turns.borrow_mut().fibers.get_mut(key) {
            record.exposures = record.exposures.saturating_add_signed(by);
        }
    }

    /// Runs a block of the program's within a hook: there it may be preempted.
    pub fn exposed<T>(&self, key: FiberKey, block: impl FnOnce() -> T) -> T {
        self.expose(key, 1);
        let result = block();
        self.expose(key, -1);
        result
    }

    /// Runs the block of the hook's caller; the fiber counts as being in a hook meanwhile, and is not preempted.
    pub fn without_preemption(&self, ruby: &Ruby) -> Result<Value, Error> {
        let result = {
            let _visit = self.enter(ruby)?.leave_wake_ups();
            ruby.yield_value(())
        };
        if result.is_ok() && self.missed.get() {
            self.make_up_for_missed(ruby)?;
        }
        result
    }

    /// A tick has come in a critical section that is over now. Who has one after the other would never be preempted
    /// otherwise.
    #[cold]
    fn make_up_for_missed(&self, ruby: &Ruby) -> Result<(), Error> {
        let current = fiber::current();
        let Some(Some(holder)) = self.preemptible_holder(current) else { return Ok(()) };
        self.missed.set(false);
        let visit = self.enter(ruby)?.leave_wake_ups();
        if !self.turns.borrow().queue.has_woken() {
            self.poll(ruby, false)?;
        }
        self.raise_due(holder)?;
        if !self.turns.borrow_mut().must_make_way(Instant::now()) {
            return Ok(());
        }
        self.lose_turn(ruby, visit.key)?;
        self.raise_due(holder)
    }

    /// Gives up the turn of a fiber that computes until it comes again.
    fn lose_turn(&self, ruby: &Ruby, key: FiberKey) -> Result<(), Error> {
        self.preemptions.set(self.preemptions.get() + 1);
        self.pass_turn(ruby, key, |turns| turns.preempt(key, Instant::now())).map(|_| ())
    }

    /// A tick has come. Called from Ruby's postponed job, at a safe point, in whichever fiber runs.
    pub fn tick(&self, ruby: &Ruby) {
        if self.is_inherited() || self.owner.get() != Some(thread::current()) {
            return;
        }
        self.attend_to_closing(ruby);
        if pending::is_sent() {
            return interrupts::look_again();
        }
        let Ok(current) = fiber::ensure_current() else { return };
        if self.is_root_wanted() && !self.answers(current) {
            return self.hand_to_root(ruby, current);
        }
        let Some(holder) = self.preemptible_holder(current) else { return };
        if self.turns.borrow().queue.has_woken() {
            // Nobody needs to be looked for who is due, but this fiber's own time may be up.
            self.turns.borrow_mut().expire(Instant::now());
        } else if self.poll(ruby, false).is_err() {
            // Whoever waits next polls again, and is told.
            return;
        }
        // What is masked is looked at again when the others are due, too: nobody tells of the end of a mask.
        let struck = holder.filter(|holder| self.due_unmasked(ruby, *holder));
        if let Some(holder) = struck.filter(|_| safe_points::may_raise_here()) {
            return self.strike(ruby, current, holder);
        }
        let now = Instant::now();
        self.last_tick.set(Some(now));
        if !self.turns.borrow_mut().must_make_way(now) {
            if struck.is_some() { self.try_again_soon() } else { self.begin_lull(now) }
        } else if safe_points::is_here() && !interrupts::is_trap_due() {
            self.make_way(ruby, current);
        } else {
            self.try_again_soon();
        }
    }

    /// Whether something is to be raised in the fiber that the masks of the one that runs let through.
    fn due_unmasked(&self, ruby: &Ruby, key: FiberKey) -> bool {
        self.look_for_swallowed_at_tick(key);
        let exception = self.turns.borrow().due_exception(key);
        exception.is_some_and(|exception| !self.is_masked(ruby, exception.get()))
    }

    fn is_masked(&self, ruby: &Ruby, exception: Value) -> bool {
        self.masks.get().is_some_and(|masks| masks.defer(ruby, exception))
    }

    /// Raises what has been sent to `holder`.
    fn strike(&self, ruby: &Ruby, current: Held, holder: FiberKey) {
        let Some(delivery) = self.turns.borrow_mut().take_delivery(holder) else { return };
        if self.raise_here(ruby, current, &delivery.to_error()).is_err() {
            self.turns.borrow_mut().deliver(holder, delivery);
        }
    }

    /// A tick came where the fiber could not be preempted, though somebody is due, or could not be struck.
    pub(super) fn try_again_soon(&self) {
        self.lull.set(Lull::None);
        self.ticker.borrow().as_ref().inspect(|ticker| ticker.try_again_soon());
    }

    /// Who has the turn, if `current`, which is that one or was resumed by it, may be preempted now; `Some(None)` if it
    /// may be, and nobody has the turn. Stops the ticker if there is nobody left to be preempted.
    fn preemptible_holder(&self, current: Held) -> Option<Option<FiberKey>> {
        let preempt = self.options.borrow().preempt;
        let turns = self.turns.borrow();
        if turns.is_ending(current) {
            return None;
        }
        // What another has resumed, and the books do not know, is preempted as that one is.
        let holder = turns.fibers.find(current).or_else(|| turns.running().map(|(_, key)| key));
        let record = holder.and_then(|key| turns.fibers.get(key));
        let blocking = fiber::current_scheduler().is_none();
        // While all are told to end who computes must not keep that from the others.
        let is_stopping = turns.is_stopping();
        let preemptible = match record {
            Some(record) if record.preemptible || is_stopping && !record.blocking => true,
            Some(record) if record.fiber == current => false,
            _ if blocking => false,
            _ => preempt == Preempt::All || (preempt.takes_yielding() && guests::presence_of(current).is_some()),
        };
        if !preemptible {
            if !turns.queue.has_preempted()
                && let Some(ticker) = self.ticker.borrow().as_ref()
            {
                ticker.end();
            }
            return None;
        }
        let shielded = blocking || record.is_some_and(|record| record.is_shielded());
        self.missed.set(shielded);
        (!shielded).then_some(holder)
    }

    /// The fiber that runs gives up its turn until it comes again.
    fn make_way(&self, ruby: &Ruby, current: Held) {
        let Ok(visit) = self.enter(ruby).map(Visit::leave_wake_ups) else { return };
        let key = visit.key;
        pace::end();
        let lost = self.lose_turn(ruby, key);
        self.go_on(ruby, current, visit, lost);
    }

    /// The fiber goes on where the job has found it. `lost` is what was raised into it meanwhile.
    pub(super) fn go_on(&self, ruby: &Ruby, current: Held, visit: Visit<'_>, lost: Result<(), Error>) {
        let key = visit.key;
        let raised = lost.and_then(|()| self.raise_due_here(ruby, key));
        let is_due = self.due_unmasked(ruby, key);
        // A fiber that is not ours is in the books until here.
        drop(visit);
        match raised {
            Ok(()) if is_due => self.try_again_soon(),
            Ok(()) => self.expect_next_due(),
            Err(raised) => self.raise_or_keep(ruby, current, &raised),
        }
    }

    /// Like [`Scheduler::raise_due`], if this is a place for it. What waits for a better one is left where it is: the block
    /// that it is meant for may end before.
    fn raise_due_here(&self, ruby: &Ruby, key: FiberKey) -> Result<(), Error> {
        if self.due_unmasked(ruby, key) && safe_points::may_raise_here() {
            let delivery = self.turns.borrow_mut().take_delivery(key);
            return delivery.map_or(Ok(()), |delivery| Err(delivery.to_error()));
        }
        Ok(())
    }

    /// The fiber goes on, and others have had their turns. Who sleeps for as long as a tick takes would be due just after
    /// the next tick, and so late by another one: that one is put off until then.
    fn expect_next_due(&self) {
        let now = Instant::now();
        if !self.turns.borrow_mut().must_make_way(now) {
            self.lull.set(Lull::Expected);
            self.begin_lull(now);
        }
    }

    /// Like [`Scheduler::raise_here`]; what cannot be raised now is due at the next tick, or in the fiber's next hook.
    fn raise_or_keep(&self, ruby: &Ruby, current: Held, raised: &Error) {
        let may_raise = error::exception_of(raised)
            .is_none_or(|exception| safe_points::may_raise_here() && !self.is_masked(ruby, exception));
        if may_raise && self.raise_here(ruby, current, raised).is_ok() {
            return;
        }
        self.try_again_soon();
        let Some(exception) = error::exception_or_stop(ruby, raised) else { return };
        let delivery = Delivery { exception: Held::new(exception), message: None, scope: Scope::Fiber };
        let mut turns = self.turns.borrow_mut();
        match turns.fibers.find(current).or_else(|| turns.running().map(|(_, holder)| holder)) {
            Some(key) => turns.deliver(key, delivery),
            None => turns.add_stray(current, delivery),
        }
    }

    /// Has an error raised where the fiber was preempted. A `Thread#kill` ends it there, too.
    ///
    /// Ruby's `Fiber#kill` is no exception, and cannot be sent on: a fiber of ours, or a yielding one, gets
    /// `Heddle::Stop` instead, which its outermost frame takes for the kill. Another one ends when it is switched to by
    /// somebody else than the scheduler. Either is not preempted any more, as Ruby would kill it again and again.
    fn raise_here(&self, ruby: &Ruby, current: Held, raised: &Error) -> Result<(), Error> {
        if pending::repeat_kill(raised) {
            return Ok(());
        }
        if let Some(exception) = error::exception_of(raised) {
            return aside::raise_after_job(ruby, exception);
        }
        error::end_jump(ruby);
        let ours = {
            let mut turns = self.turns.borrow_mut();
            let key = turns.fibers.find(current);
            let record = key.and_then(|key| turns.fibers.get_mut(key));
            record.is_some_and(|record| {
                record.preemptible = false;
                record.ours
            })
        };
        if ours || guests::presence_of(current).is_some() {
            aside::raise_after_job(ruby, error::stop_class(ruby)?.as_value())
        } else {
            Ok(())
        }
    }
}
