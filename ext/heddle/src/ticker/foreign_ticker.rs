//! Yielding fibers whose thread has another scheduler, or none, and the one ticker for all of them.

use std::cell::Cell;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use heddle_core::Error;
use heddle_core::threads::locking::lock;
use magnus::typed_data::Obj;
use magnus::{DataTypeFunctions, Ruby, TypedData, Value};

use super::state::TickerState;
use super::timerfd::TimerfdTicker;
use crate::ruby::value::cast;
use crate::ruby::{fiber, fork};

/// How often the ticker ticks.
const TICK: Duration = Duration::from_micros(2500);

/// One ticker serves all threads: the job finds the thread that runs Ruby.
struct ForeignFibers {
    ticker: Option<(TimerfdTicker, u64)>,
    alive: usize,
}

static FOREIGN_FIBERS: Mutex<ForeignFibers> = Mutex::new(ForeignFibers { ticker: None, alive: 0 });

/// Nothing may be allocated in Ruby while this is locked: the collector may drop a [`YieldState`], which locks it, too.
fn foreign_fibers() -> MutexGuard<'static, ForeignFibers> {
    lock(&FOREIGN_FIBERS)
}

/// A yielding fiber that has started and not ended. Attached to the fiber, so it is collected together with the fiber.
#[derive(TypedData, Default)]
#[magnus(class = "Heddle::YieldState", free_immediately)]
pub struct YieldState {
    /// The time of the first tick that found the fiber computing in its present slice.
    pub since: Cell<Option<Instant>>,
    /// How many critical sections the fiber is in.
    pub shields: Cell<u32>,
    /// Whether [`ForeignFibers::alive`] counts it.
    counted: Cell<bool>,
}

// SAFETY: magnus asks for this because the collector may free the object on any thread. That happens with the GVL, as
// all access does.
unsafe impl Send for YieldState {}

impl DataTypeFunctions for YieldState {}

impl Drop for YieldState {
    fn drop(&mut self) {
        self.release_ticker();
    }
}

impl YieldState {
    /// Counts the fiber, which runs on a thread without a Heddle scheduler, and starts the ticker.
    pub fn acquire_ticker(&self) -> Result<(), Error> {
        let mut foreign_fibers = foreign_fibers();
        begin_ticking(&mut foreign_fibers)?;
        foreign_fibers.alive += 1;
        self.counted.set(true);
        Ok(())
    }

    /// The inverse of [`YieldState::acquire_ticker`].
    pub fn release_ticker(&self) {
        if !self.counted.replace(false) {
            return;
        }
        let mut foreign_fibers = foreign_fibers();
        foreign_fibers.alive = foreign_fibers.alive.saturating_sub(1);
        if foreign_fibers.alive == 0
            && let Some((ticker, _)) = &foreign_fibers.ticker
        {
            ticker.end();
        }
    }
}

/// The state of a yielding fiber that has started. `None` for any other fiber.
pub fn yield_state_of(fiber: Value) -> Option<Obj<YieldState>> {
    cast(fiber::attached(fiber))
}

fn begin_ticking(foreign_fibers: &mut ForeignFibers) -> Result<(), Error> {
    if foreign_fibers.ticker.as_ref().is_some_and(|(_, generation)| *generation != fork::generation()) {
        foreign_fibers.alive = 0;
        if let Some((inherited, _)) = foreign_fibers.ticker.take() {
            inherited.abandon();
        }
    }
    if foreign_fibers.ticker.is_none() {
        let state = TickerState::obtain();
        let ticker = TimerfdTicker::start(TICK, state.get())?;
        state.keep();
        foreign_fibers.ticker = Some((ticker, fork::generation()));
    }
    match &foreign_fibers.ticker {
        Some((ticker, _)) => ticker.begin(),
        None => Ok(()),
    }
}

/// Counts the current fiber anew in a forked child, where it is the only fiber.
pub fn after_fork(ruby: &Ruby) -> Result<(), Error> {
    match yield_state_of(fiber::current(ruby)).filter(|yield_state| yield_state.counted.get()) {
        Some(yield_state) => {
            yield_state.counted.set(false);
            yield_state.acquire_ticker()
        }
        None => Ok(()),
    }
}

/// Stops the ticker when Ruby frees this object, the only one of its class, at the end of the process: after the last
/// `at_exit` handler and finalizer, which may start the ticker, and before Ruby frees what the ticker's thread uses.
/// See 'The end of a process' in docs/internals/architecture.md.
#[derive(TypedData)]
#[magnus(class = "Heddle::ForeignTicker", free_immediately)]
pub struct ForeignTicker;

impl DataTypeFunctions for ForeignTicker {}

impl Drop for ForeignTicker {
    fn drop(&mut self) {
        stop();
    }
}

fn stop() {
    let ticker = foreign_fibers().ticker.take();
    match ticker {
        // Its thread exists in the parent only, so joining it would never end.
        Some((inherited, generation)) if generation != fork::generation() => inherited.abandon(),
        ticker => drop(ticker),
    }
}
