//! What ticks while a fiber computes, so that the scheduler can look which other fibers are due.
//!
//! A ticker asks Ruby, by a [`signal`] or from a native thread ([`timerfd`]), to run the postponed job at its next safe point
//! (`preempt/job.rs`). [`state`] is whether it ticks, [`throttle`] when a tick is not passed on, [`signal_disposition`] which
//! signals it may take, [`foreign_fibers`] the ticker for yielding fibers on other schedulers.

pub mod foreign_fibers;
pub mod interrupt_phase;
mod signal;
pub mod signal_disposition;
mod state;
pub mod throttle;
mod timerfd;

use std::time::Duration;

use heddle_core::Error as CoreError;
use libc::c_int;
use magnus::{Error, Ruby};

use self::signal::SignalTicker;
use self::timerfd::TimerfdTicker;
use crate::ruby::error;

pub use self::state::TickerState;

/// Which ticker is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TickerChoice {
    /// A native thread. It interrupts no system call, so it is the default.
    Timerfd,
    /// A signal, or an error if the signal is in use.
    Signal,
}

/// A ticker, as one scheduler has it.
pub struct Ticker {
    source: Source,
    period: Duration,
    /// Whether it ticks.
    pub state: &'static TickerState,
}

enum Source {
    Signal(SignalTicker),
    Timerfd(TimerfdTicker),
}

impl Ticker {
    /// Makes a ticker for the thread that is running. It does not tick yet. `tick` is how often it is to.
    ///
    /// # Errors
    /// ArgumentError if the signal is asked for and somebody uses it; SystemCallError if timers, descriptors or threads
    /// have run out.
    pub fn start(ruby: &Ruby, choice: TickerChoice, signal: c_int, tick: Duration) -> Result<Self, Error> {
        let by_signal = match choice {
            TickerChoice::Timerfd => false,
            TickerChoice::Signal => signal_disposition::expect_free(ruby, signal).map(|()| true)?,
        };
        let period = if by_signal { signal_period(tick) } else { tick };
        let state = TickerState::obtain();
        let source = if by_signal {
            signal_disposition::watch_trap(ruby)?;
            SignalTicker::start(signal, period, state).map(Source::Signal)
        } else {
            TimerfdTicker::start(period, state).map(Source::Timerfd)
        };
        match source {
            Ok(source) => Ok(Ticker { source, period, state }),
            Err(error) => {
                state.give_back();
                Err(error::from_core(ruby, error))
            }
        }
    }

    /// Its name, as users spell it.
    pub fn name(&self) -> &'static str {
        match self.source {
            Source::Signal(_) => "signal",
            Source::Timerfd(_) => "timerfd",
        }
    }

    /// Whether it ticks with this signal.
    pub fn uses(&self, signal: c_int) -> bool {
        matches!(&self.source, Source::Signal(ticker) if ticker.signal() == signal)
    }

    /// Begins to tick, if it does not.
    pub fn begin(&self) -> Result<(), CoreError> {
        match &self.source {
            Source::Signal(ticker) => ticker.begin(),
            Source::Timerfd(ticker) => ticker.begin(),
        }
    }

    /// The next tick comes only after this time. Does nothing, and returns false, if it would come later than that
    /// anyway: the last one came `since` ago.
    pub fn postpone(&self, time: Duration, since: Duration) -> bool {
        let later = time + since > self.period;
        if later {
            match &self.source {
                Source::Signal(_) => self.set_next(time),
                Source::Timerfd(ticker) => ticker.postpone(time),
            }
        }
        later
    }

    /// The next tick comes in its usual time again. From any thread.
    pub fn expedite(&self) {
        match &self.source {
            Source::Signal(_) => self.set_next(self.period),
            Source::Timerfd(ticker) => ticker.expedite(),
        }
    }

    /// The last tick could do nothing, so the next one comes early.
    pub fn try_again_soon(&self) {
        /// The part of a period after which it comes. Interrupts cost more than what is done in them.
        const PART: u32 = 4;
        self.set_next(self.period / PART);
    }

    fn set_next(&self, time: Duration) {
        // It fails for timers that do not exist alone.
        let _ = match &self.source {
            Source::Signal(ticker) => ticker.set_next(time),
            Source::Timerfd(ticker) => ticker.set_next(time),
        };
    }

    /// Stops ticking.
    pub fn end(&self) {
        match &self.source {
            Source::Signal(ticker) => ticker.end(),
            Source::Timerfd(ticker) => ticker.end(),
        }
    }

    /// In a forked child: neither timers nor threads are inherited.
    pub fn abandon(self) {
        match self.source {
            Source::Signal(ticker) => ticker.abandon(),
            Source::Timerfd(ticker) => ticker.abandon(),
        }
    }
}

/// The time from one signal to the next. A bit longer than asked for: who sleeps for just as long begins to do so some
/// microseconds after a tick, so it would be due just after the next one, and the timer would have to be set anew each
/// time. To set a timer that runs costs more than its interrupt.
fn signal_period(tick: Duration) -> Duration {
    const MOST: Duration = Duration::from_micros(100);
    const PART: u32 = 10;
    tick + MOST.min(tick / PART)
}
