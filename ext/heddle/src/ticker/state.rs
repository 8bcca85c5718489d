//! Whether a ticker ticks.

use crate::ruby::outcome::Ignore;
use heddle_core::threads::locking::lock;
use heddle_core::threads::next_tick::NextTick;
use std::mem::ManuallyDrop;
use std::os::raw::c_void;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

/// The state that a ticker shares with its owner. Lock-free, so a signal handler may use it.
///
/// ```text
///            begin               pause
///     Off ──────────▶ Ticking ──────────▶ Paused
///      ▲                 │ ▲                │ │
///      │       end       │ └────────────────┘ │
///      ├─────────────────┘       resume       │
///      └──────────────────────────────────────┘
///                  the last idle tick
/// ```
///
/// The owner pauses the ticker while it waits in the kernel. Some ticks that find it paused are idle ones, and the next
/// one stops the ticker, so an idle process is not woken periodically. Without idle ticks, the owner would have to set
/// the timer again after each short wait.
///
/// Reused and never freed, as a signal may be pending when its timer is deleted.
#[derive(Debug, Default)]
pub struct TickerState {
    state: AtomicU8,
    /// The timer of a [`super::signal::SignalTicker`].
    pub timer: AtomicPtr<c_void>,
    /// Before which time of [`super::throttle::now`] no tick comes.
    pub next: NextTick,
    /// The state that was made before this one.
    older: Option<&'static TickerState>,
}

/// The state that was made last. Those of all tickers follow, also of ended ones.
static NEWEST: AtomicPtr<TickerState> = AtomicPtr::new(std::ptr::null_mut());

/// States without a ticker, for reuse.
static SPARE: Mutex<Vec<&'static TickerState>> = Mutex::new(Vec::new());

fn spare() -> std::sync::MutexGuard<'static, Vec<&'static TickerState>> {
    lock(&SPARE)
}

/// Why a transition need not take place.
const OTHER_STATE: &str = "it is in another state, which stays";

const OFF: u8 = 0;
const TICKING: u8 = 1;
/// Paused, and no tick has come since. Each idle tick adds 1.
const PAUSED: u8 = 2;

/// What the owner of a timer that has expired must do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expired {
    /// Tick.
    Tick,
    /// Nothing, but the timer goes on.
    Idle,
    /// Stop the timer.
    Stop,
}

/// A state for a ticker that has not started. If the start fails, it is given back.
pub struct Obtained(&'static TickerState);

impl Obtained {
    /// The state.
    pub fn get(&self) -> &'static TickerState {
        self.0
    }

    /// The ticker has started, and gives the state back at its end.
    pub fn keep(self) -> &'static TickerState {
        ManuallyDrop::new(self).0
    }
}

impl Drop for Obtained {
    fn drop(&mut self) {
        self.0.give_back();
    }
}

impl TickerState {
    /// A state that is `Off`.
    pub fn obtain() -> Obtained {
        let mut spare = spare();
        // Made under the lock, so that no two states follow the same one.
        let state = spare.pop().unwrap_or_else(TickerState::make);
        state.end();
        state.next.expedite();
        Obtained(state)
    }

    fn make() -> &'static TickerState {
        // SAFETY: null, or a state, which is never freed.
        let older = unsafe { NEWEST.load(Ordering::Acquire).as_ref() };
        let state: &'static TickerState = Box::leak(Box::new(TickerState { older, ..TickerState::default() }));
        NEWEST.store(std::ptr::from_ref(state).cast_mut(), Ordering::Release);
        state
    }

    /// The state at this address, if there is one. Callable from signal handlers.
    pub fn at(address: *const c_void) -> Option<&'static TickerState> {
        // SAFETY: null, or a state, which is never freed.
        let newest = unsafe { NEWEST.load(Ordering::Acquire).as_ref() };
        std::iter::successors(newest, |state| state.older)
            .find(|state| std::ptr::eq(std::ptr::from_ref(*state).cast(), address))
    }

    /// Returns the state for reuse.
    pub fn give_back(&'static self) {
        self.end();
        spare().push(self);
    }

    /// Starts ticking. True if the caller must set the timer.
    pub fn begin(&self) -> bool {
        self.state.swap(TICKING, Ordering::AcqRel) == OFF
    }

    /// Stops ticking.
    pub fn end(&self) {
        self.state.store(OFF, Ordering::Release);
    }

    /// Notes that the owner is about to wait in the kernel.
    pub fn pause(&self) {
        self.state.compare_exchange(TICKING, PAUSED, Ordering::AcqRel, Ordering::Relaxed).ignored(OTHER_STATE);
    }

    /// Notes that the owner has waited.
    pub fn resume(&self) {
        let resumed = |state| (state >= PAUSED).then_some(TICKING);
        self.state.fetch_update(Ordering::AcqRel, Ordering::Relaxed, resumed).ignored(OTHER_STATE);
    }

    /// Whether the timer is set.
    pub fn is_ticking(&self) -> bool {
        self.state.load(Ordering::Acquire) != OFF
    }

    /// Notes that the timer has expired. `idle` is the number of idle ticks after which the timer stops.
    pub fn expire(&self, idle: u8) -> Expired {
        loop {
            let state = self.state.load(Ordering::Acquire);
            let (next, expired) = match state {
                OFF => return Expired::Stop,
                TICKING => return Expired::Tick,
                _ if state < PAUSED + idle => (state + 1, Expired::Idle),
                _ => (OFF, Expired::Stop),
            };
            if self.state.compare_exchange(state, next, Ordering::AcqRel, Ordering::Relaxed) == Ok(state) {
                return expired;
            }
        }
    }
}
