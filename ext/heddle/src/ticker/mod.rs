//! Tickers, which interrupt a computing fiber at intervals, so that the scheduler can preempt it.
//!
//! A ticker triggers Ruby's postponed job (`preempt/tick.rs`), in the handler of a [`signal`] or from a native thread
//! ([`timerfd`]). [`state`]: whether a ticker ticks. [`throttle`]: when ticks are suppressed. [`signal_disposition`]:
//! which signals a ticker may use. [`foreign_ticker`]: the ticker for yielding fibers on other schedulers.

pub mod foreign_ticker;
mod signal;
pub mod signal_disposition;
mod state;
pub mod throttle;
mod timerfd;

use std::cell::Cell;
use std::time::Duration;

use heddle_core::Error as CoreError;
use heddle_core::queue::tick_spacing::{SliceAge, TickSpacing};
use libc::c_int;
use magnus::{Error, Ruby};

use self::signal::SignalTicker;
use self::timerfd::TimerfdTicker;
use crate::ruby::error;
use crate::ruby::outcome::Ignore;

pub use self::state::TickerState;

/// The shortest time to the next tick. The kernel disarms a timer that is set to zero.
const IMMEDIATELY: Duration = Duration::from_nanos(1);

/// The kind of ticker that a scheduler's options choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TickerChoice {
    /// A native thread. The default, as it interrupts no system call.
    Timerfd,
    /// A signal. Fails if the signal is in use.
    Signal,
}

/// The ticker of one scheduler.
pub struct Ticker {
    source: TickSource,
    /// The usual period.
    period: Duration,
    spacing: Cell<TickSpacing>,
    /// Whether it ticks.
    pub state: &'static TickerState,
}

enum TickSource {
    Signal(SignalTicker),
    Timerfd(TimerfdTicker),
}

impl Ticker {
    /// Makes a ticker for the current thread, with the interval `tick`. It does not tick yet.
    ///
    /// # Errors
    /// ArgumentError if the chosen signal is in use; SystemCallError if timers, descriptors or threads have run out.
    pub fn start(ruby: &Ruby, choice: TickerChoice, signal: c_int, tick: Duration) -> Result<Self, Error> {
        let by_signal = match choice {
            TickerChoice::Timerfd => false,
            TickerChoice::Signal => signal_disposition::expect_free(ruby, signal).map(|()| true)?,
        };
        let period = if by_signal { signal_period(tick) } else { tick };
        let state = TickerState::obtain();
        let source = if by_signal {
            signal_disposition::watch_trap(ruby)?;
            SignalTicker::start(signal, period, state.get()).map(TickSource::Signal)
        } else {
            TimerfdTicker::start(period, state.get()).map(TickSource::Timerfd)
        };
        let source = source.map_err(|error| error::from_core(ruby, error))?;
        Ok(Ticker { source, period, spacing: Cell::default(), state: state.keep() })
    }

    /// The ticker's name, as users spell it.
    pub fn name(&self) -> &'static str {
        match self.source {
            TickSource::Signal(_) => "signal",
            TickSource::Timerfd(_) => "timerfd",
        }
    }

    /// Whether the ticker uses this signal.
    pub fn uses(&self, signal: c_int) -> bool {
        matches!(&self.source, TickSource::Signal(ticker) if ticker.signal() == signal)
    }

    /// Starts ticking, if it does not tick.
    pub fn begin(&self) -> Result<(), CoreError> {
        match &self.source {
            TickSource::Signal(ticker) => ticker.begin(),
            TickSource::Timerfd(ticker) => ticker.begin(),
        }
    }

    /// Postpones the next tick until `time` from now. `since` is the time since the last tick. Does nothing if the next
    /// tick comes later anyway.
    pub fn postpone(&self, time: Duration, since: Duration) {
        if time + since > self.spaced_period() {
            let until = throttle::now().saturating_add(in_nanoseconds(time));
            match &self.source {
                TickSource::Signal(_) => {
                    self.set_next(time);
                    self.state.next.postpone_and_set(until);
                }
                TickSource::Timerfd(_) => self.state.next.postpone(until),
            }
        }
    }

    /// Undoes a postponement, so that the next tick comes after one period. Callable from any thread.
    pub fn expedite(&self) {
        if self.state.next.expedite() {
            self.set_next(self.spaced_period());
        }
    }

    /// Makes the next tick early, as the last one came at a point where the fiber could not be preempted.
    pub fn try_again_soon(&self) {
        /// The next tick comes after this fraction of a period. Shorter ones would cost too many interrupts.
        const DIVISOR: u32 = 4;
        self.set_next(self.period / DIVISOR);
    }

    /// Makes the next tick come after `time`, which is less than a period.
    pub fn bring_forward(&self, time: Duration) {
        self.set_next(time.clamp(IMMEDIATELY, self.period));
    }

    fn set_next(&self, time: Duration) {
        let set = match &self.source {
            TickSource::Signal(ticker) => ticker.set_next(time),
            TickSource::Timerfd(ticker) => ticker.set_next(time),
        };
        set.ignored("only for a timer that does not exist");
    }

    /// The time from one tick to the next.
    fn spaced_period(&self) -> Duration {
        self.period * self.spacing.get().periods()
    }

    /// A tick has found a slice of this age, and further ticks come accordingly. If they come closer, so does the next
    /// one.
    pub fn note(&self, age: SliceAge) {
        let before = self.spaced_period();
        let mut spacing = self.spacing.get();
        spacing.note(age);
        self.spacing.set(spacing);
        let period = self.spaced_period();
        if period == before {
            return;
        }
        let set = match &self.source {
            TickSource::Signal(ticker) => ticker.set_period(period),
            TickSource::Timerfd(ticker) => ticker.set_period(period),
        };
        set.ignored("only for a timer that does not exist");
    }

    /// Stops ticking.
    pub fn end(&self) {
        match &self.source {
            TickSource::Signal(ticker) => ticker.end(),
            TickSource::Timerfd(ticker) => ticker.end(),
        }
    }

    /// Releases the ticker in a forked child, which inherits neither timers nor threads.
    pub fn abandon(self) {
        match self.source {
            TickSource::Signal(ticker) => ticker.abandon(),
            TickSource::Timerfd(ticker) => ticker.abandon(),
        }
    }
}

/// The time from one signal to the next, slightly longer than `tick`. A fiber that sleeps for `tick` starts some
/// microseconds after a tick. With a period of `tick` it would expire just after the next tick, and the timer would
/// have to be set again each time, which costs more than the timer's interrupt.
fn signal_period(tick: Duration) -> Duration {
    const MAX_EXTENSION: Duration = Duration::from_micros(100);
    const DIVISOR: u32 = 10;
    tick + MAX_EXTENSION.min(tick / DIVISOR)
}

fn in_nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).ignored("centuries").unwrap_or(u64::MAX)
}
