//! Whether a ticker ticks.

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
///                        a tick
/// ```
///
/// The owner pauses the ticker while it waits in the kernel. The first tick that finds it paused stops the ticker, so
/// an idle process is not woken periodically.
///
/// Reused and never freed, as a signal may be pending when its timer is deleted.
#[derive(Debug, Default)]
pub struct TickerState {
    state: AtomicU8,
    /// The timer of a [`super::signal::SignalTicker`].
    pub timer: AtomicPtr<c_void>,
}

/// States without a ticker, for reuse.
static SPARE: Mutex<Vec<&'static TickerState>> = Mutex::new(Vec::new());

fn spare() -> std::sync::MutexGuard<'static, Vec<&'static TickerState>> {
    SPARE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

const OFF: u8 = 0;
const TICKING: u8 = 1;
const PAUSED: u8 = 2;

impl TickerState {
    /// A state that is `Off`.
    pub fn obtain() -> &'static TickerState {
        let state = spare().pop().unwrap_or_else(|| Box::leak(Box::default()));
        state.end();
        state
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
        let _ = self.state.compare_exchange(TICKING, PAUSED, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Notes that the owner has waited.
    pub fn resume(&self) {
        let _ = self.state.compare_exchange(PAUSED, TICKING, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Whether the timer is set.
    pub fn is_ticking(&self) -> bool {
        self.state.load(Ordering::Acquire) != OFF
    }

    /// Notes that the timer has expired. False if the caller must stop the timer.
    pub fn tick(&self) -> bool {
        let _ = self.state.compare_exchange(PAUSED, OFF, Ordering::AcqRel, Ordering::Relaxed);
        self.is_ticking()
    }
}
