//! Whether a ticker ticks.

use std::os::raw::c_void;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

/// What a ticker and its owner agree on. Neither waits for the other, so a signal handler may use it.
///
/// ```text
///            begin               rest
///     Off ──────────▶ Ticking ──────────▶ Resting
///      ▲                 │ ▲                 │ │
///      │       end       │ └─────────────────┘ │
///      ├─────────────────┘        rouse        │
///      └───────────────────────────────────────┘
///                        a tick
/// ```
///
/// The owner rests while it waits in the kernel. The first tick that finds it resting is the last one: who is idle is
/// not woken again and again.
///
/// Never freed, as a signal may be on its way when its timer is deleted, but used again.
#[derive(Debug, Default)]
pub struct TickerState {
    state: AtomicU8,
    /// The timer of a [`super::signal::SignalTicker`].
    pub timer: AtomicPtr<c_void>,
}

/// Those that nobody uses now.
static SPARE: Mutex<Vec<&'static TickerState>> = Mutex::new(Vec::new());

fn spare() -> std::sync::MutexGuard<'static, Vec<&'static TickerState>> {
    SPARE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

const OFF: u8 = 0;
const TICKING: u8 = 1;
const PAUSED: u8 = 2;

impl TickerState {
    /// One that is off.
    pub fn obtain() -> &'static TickerState {
        let state = spare().pop().unwrap_or_else(|| Box::leak(Box::default()));
        state.end();
        state
    }

    /// Nobody uses it any more.
    pub fn give_back(&'static self) {
        self.end();
        spare().push(self);
    }

    /// The owner wants ticks. True says that the timer has to be set.
    pub fn begin(&self) -> bool {
        self.state.swap(TICKING, Ordering::AcqRel) == OFF
    }

    /// The owner wants no more ticks.
    pub fn end(&self) {
        self.state.store(OFF, Ordering::Release);
    }

    /// The owner is about to wait.
    pub fn pause(&self) {
        let _ = self.state.compare_exchange(TICKING, PAUSED, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// The owner has waited.
    pub fn resume(&self) {
        let _ = self.state.compare_exchange(PAUSED, TICKING, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Whether ticks are to be expected.
    pub fn is_ticking(&self) -> bool {
        self.state.load(Ordering::Acquire) != OFF
    }

    /// The timer has run out. False says that this was the last tick: the timer is to be stopped.
    pub fn tick(&self) -> bool {
        let _ = self.state.compare_exchange(PAUSED, OFF, Ordering::AcqRel, Ordering::Relaxed);
        self.is_ticking()
    }
}
