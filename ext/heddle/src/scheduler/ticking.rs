//! When the ticker ticks: while a preemptible fiber computes, and another one may be runnable.

use std::cell::{Cell, OnceCell, RefCell};
use std::time::{Duration, Instant};

use heddle_core::queue::cooperative::Cooperative;
use heddle_core::queue::tick::TimeToYield;
use heddle_core::queue::tick_spacing::SliceAge;
use libc::c_int;
use magnus::{Error, Ruby, Value};

use super::Scheduler;
use super::options::Preempt;
use super::record::FiberKey;
use crate::ruby::error;
use crate::ruby::frames::Frame;
use crate::ruby::masks::Masks;
use crate::ruby::outcome::Ignore;
use crate::ruby::pending_interrupts::Deferred;
use crate::ticker::{Ticker, TickerChoice, TickerState};

/// The ticker of a scheduler, and what preemption has to remember.
#[derive(Default)]
pub struct Preemption {
    /// Created with the first preemptible fiber.
    pub ticker: RefCell<Option<Ticker>>,
    /// The ticker's state, without a borrow.
    pub ticker_state: Cell<Option<&'static TickerState>>,
    /// Whether nothing has happened since the last tick that might make a fiber runnable.
    pub is_quiet: Cell<bool>,
    pub last_tick: Cell<Option<Instant>>,
    /// How many times a fiber was preempted.
    pub preemptions: Cell<u64>,
    /// Whether the last tick came in a critical section.
    pub missed_tick: Cell<bool>,
    /// The thread's masks. Found by the first hook.
    pub masks: Cell<Option<Masks>>,
    /// How many of the masks are the root's.
    pub root_mask_count: Cell<usize>,
    /// Whose code is not preempted, if the program has said so.
    pub cooperative: OnceCell<Cooperative>,
    /// Where an explored schedule has its next point within a line.
    pub next_branch: Cell<NextBranch>,
    /// In an explored schedule, the number of the fiber that has passed the last point, and at how many of its last
    /// points Ruby has checked no interrupts.
    pub unchecked_points: Cell<(u64, u32)>,
    /// How many points an explored schedule had at the last tick.
    pub points_at_tick: Cell<u64>,
    /// Whether an explored schedule has preempted a fiber at a branch, since the test has last asked.
    pub preempted_at_branch: Cell<bool>,
}

/// In an explored schedule, the next check of interrupts within a line. Ruby checks them at branches.
#[derive(Debug, Clone, Copy, Default)]
pub enum NextBranch {
    /// It is no point, as something else has come before.
    #[default]
    NoPoint,
    /// The fiber with this number has passed a point within a line, which continues after Ruby's hooks for that.
    WithinLine(u64),
    /// It is a point, if it is in this frame of the fiber with this number. The frame is compared, and not used: it may
    /// have ended.
    Point(u64, Frame),
    /// It has been, in this frame or in another one. So a tick's is none, before a method returns to this frame.
    Passed(u64, Frame),
}

impl NextBranch {
    /// Interrupts are checked. Returns the fiber's number and the frame, if that may be a point.
    pub fn pass(branch: &Cell<Self>) -> Option<(u64, Frame)> {
        let Self::Point(fiber, frame) = branch.get() else { return None };
        branch.set(Self::Passed(fiber, frame));
        Some((fiber, frame))
    }
}

/// Why a ticker does not begin.
const NO_TIMER: &str = "only for a timer that does not exist";

impl Scheduler {
    /// Whether the current masks of the thread hold the exception back from the fiber that runs.
    pub fn is_masked(&self, ruby: &Ruby, exception: Value) -> bool {
        self.preemption.masks.get().is_some_and(|masks| masks.defer(ruby, exception))
    }

    /// A preemptible fiber is about to run on this thread: starts the ticker, and creates it if there is none.
    pub fn expect_ticks(&self, ruby: &Ruby) -> Result<(), Error> {
        let options = *self.options.borrow();
        if options.preempt == Preempt::None {
            return Ok(());
        }
        if self.preemption.ticker.borrow().is_none() {
            let ticker = Ticker::start(ruby, options.ticker, options.signal, options.policy.tick)?;
            self.keep_ticker(ticker);
        }
        self.begin_ticking().map_err(|error| error::from_core(ruby, error))
    }

    /// Starts the ticker even if no fiber is preemptible, since the root has to run beside a fiber that computes. If
    /// no ticker thread can be created, the root runs when that fiber calls a hook.
    pub fn force_ticks(&self, ruby: &Ruby) {
        if self.preemption.ticker.borrow().is_none() {
            let tick = self.options.borrow().policy.tick;
            let Some(ticker) = Ticker::start(ruby, TickerChoice::Timerfd, 0, tick).deferred() else { return };
            self.keep_ticker(ticker);
        }
        self.begin_ticking().ignored(NO_TIMER);
    }

    fn keep_ticker(&self, ticker: Ticker) {
        self.preemption.ticker_state.set(Some(ticker.state));
        *self.preemption.ticker.borrow_mut() = Some(ticker);
        self.state.borrow_mut().budget.date_slices();
    }

    fn begin_ticking(&self) -> Result<(), heddle_core::Error> {
        self.preemption.ticker.borrow().as_ref().map_or(Ok(()), Ticker::begin)
    }

    /// The fiber starts or continues. If it is preemptible, starts the ticker.
    #[inline(always)]
    pub fn tick_for(&self, key: FiberKey) {
        self.allow_ticks();
        if self.preemption.ticker_state.get().is_some_and(|ticker_state| !ticker_state.is_ticking()) {
            self.begin_ticking_for(key);
        }
    }

    #[inline(never)]
    fn begin_ticking_for(&self, key: FiberKey) {
        if self.needs_ticks(key) {
            self.begin_ticking().ignored(NO_TIMER);
        }
    }

    fn needs_ticks(&self, key: FiberKey) -> bool {
        let state = self.state.borrow();
        state.raises.is_stopping() || state.fibers.get(key).is_some_and(|record| record.preemptible)
    }

    /// Whether the running fiber has to yield, as a tick at `now` finds it.
    pub fn time_to_yield(&self, now: Instant) -> TimeToYield {
        let short = self.options.borrow().policy.tick / 2;
        let mut state = self.state.borrow_mut();
        let age = state.slice_age(now, short);
        self.preemption.ticker.borrow().as_ref().inspect(|ticker| ticker.note(age));
        if state.should_preempt(now) {
            return TimeToYield::Now;
        }
        match state.fibers.queue().protected_for(now) {
            // Most probably, the fiber yields by itself before.
            Some(_) if age == SliceAge::New => TimeToYield::Unknown,
            Some(time) => TimeToYield::In(time),
            None => TimeToYield::Unknown,
        }
    }

    /// A tick has found no other fiber runnable, and it is known when one can be at the earliest. If nothing has
    /// happened since the tick before, either, the next one is postponed until then.
    ///
    /// The first of these ticks sets no timer, so a fiber that computes and calls hooks all the time costs no system
    /// calls. When a preempted fiber continues, its first tick is postponed: see `expect_next_yield` in
    /// `preempt/tick.rs`.
    pub fn suppress_ticks(&self, ruby: &Ruby, now: Instant) {
        let since = self.preemption.last_tick.get().map_or(Duration::ZERO, |tick| now.saturating_duration_since(tick));
        let next_yield = self.state.borrow_mut().next_yield_at(now);
        // Not while the state is borrowed: on Ruby 3.3 and 3.4 `is_root_wanted` lets another Ractor collect.
        let Some(at) = next_yield.filter(|_| !self.is_root_wanted(ruby)) else { return self.allow_ticks() };
        if self.preemption.is_quiet.replace(true) {
            let ticker = self.preemption.ticker.borrow();
            ticker.as_ref().inspect(|ticker| ticker.postpone(at.saturating_duration_since(now), since));
        }
    }

    /// A fiber may be runnable sooner than the last tick has found. Called at each entry into the scheduler, on any
    /// thread.
    #[inline]
    pub fn allow_ticks(&self) {
        if self.preemption.is_quiet.get() {
            self.end_quiet();
        }
    }

    #[cold]
    fn end_quiet(&self) {
        self.preemption.is_quiet.set(false);
        self.preemption.ticker.borrow().as_ref().inspect(|ticker| ticker.expedite());
    }

    /// A tick came where the fiber could be neither preempted nor interrupted, although it has to be.
    pub fn try_again_soon(&self) {
        self.preemption.is_quiet.set(false);
        self.preemption.ticker.borrow().as_ref().inspect(|ticker| ticker.try_again_soon());
    }

    /// The running fiber is to be preempted after `time`, if that is sooner than the next tick may come.
    pub fn expect_tick_in(&self, time: Duration) {
        self.preemption.is_quiet.set(false);
        self.preemption.ticker.borrow().as_ref().inspect(|ticker| ticker.bring_forward(time));
    }

    /// Releases the ticker. `inherited` says that it belongs to the parent of this process.
    pub fn release_ticker(&self, inherited: bool) {
        self.preemption.ticker_state.set(None);
        self.preemption.is_quiet.set(false);
        self.preemption.masks.set(None);
        match self.preemption.ticker.borrow_mut().take() {
            Some(ticker) if inherited => ticker.abandon(),
            ticker => drop(ticker),
        }
    }

    /// The program traps the ticker's signal. The scheduler changes to a ticker without a signal.
    pub fn give_up_signal(&self, ruby: &Ruby, signal: c_int) -> Result<(), Error> {
        let (uses, ticks) = {
            let ticker = self.preemption.ticker.borrow();
            let uses = ticker.as_ref().is_some_and(|ticker| ticker.uses(signal));
            (uses, self.preemption.ticker_state.get().is_some_and(|ticker_state| ticker_state.is_ticking()))
        };
        if !uses {
            return Ok(());
        }
        self.options.borrow_mut().ticker = TickerChoice::Timerfd;
        self.release_ticker(self.is_inherited());
        if ticks { self.expect_ticks(ruby) } else { Ok(()) }
    }
}
