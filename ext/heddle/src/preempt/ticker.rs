//! What makes a thread look, every now and then, whether somebody else is due.

use std::time::Duration;

use heddle_core::Error as CoreError;
use libc::c_int;
use magnus::{Error, Ruby};

use super::dispositions;
use super::pulse::Pulse;
use super::signal::SignalTicker;
use super::timerfd::TimerfdTicker;
use crate::ruby::error;

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
    means: Means,
    period: Duration,
    /// Whether it ticks.
    pub pulse: &'static Pulse,
}

enum Means {
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
            TickerChoice::Signal => dispositions::expect_free(ruby, signal).map(|()| true)?,
        };
        let period = if by_signal { signal_period(tick) } else { tick };
        let pulse = Pulse::obtain();
        let means = if by_signal {
            dispositions::watch_trap(ruby)?;
            SignalTicker::start(signal, period, pulse).map(Means::Signal)
        } else {
            TimerfdTicker::start(period, pulse).map(Means::Timerfd)
        };
        match means {
            Ok(means) => Ok(Ticker { means, period, pulse }),
            Err(error) => {
                pulse.give_back();
                Err(error::from_core(ruby, error))
            }
        }
    }

    /// Its name, as users spell it.
    pub fn name(&self) -> &'static str {
        match self.means {
            Means::Signal(_) => "signal",
            Means::Timerfd(_) => "timerfd",
        }
    }

    /// Whether it ticks with this signal.
    pub fn uses(&self, signal: c_int) -> bool {
        matches!(&self.means, Means::Signal(ticker) if ticker.signal() == signal)
    }

    /// Begins to tick, if it does not.
    pub fn begin(&self) -> Result<(), CoreError> {
        match &self.means {
            Means::Signal(ticker) => ticker.begin(),
            Means::Timerfd(ticker) => ticker.begin(),
        }
    }

    /// The next tick comes only after this time. Does nothing, and returns false, if it would come later than that
    /// anyway: the last one came `since` ago.
    pub fn put_off(&self, time: Duration, since: Duration) -> bool {
        let later = time + since > self.period;
        if later {
            match &self.means {
                Means::Signal(_) => self.set_next(time),
                Means::Timerfd(ticker) => ticker.put_off(time),
            }
        }
        later
    }

    /// The next tick comes in its usual time again. From any thread.
    pub fn hurry(&self) {
        match &self.means {
            Means::Signal(_) => self.set_next(self.period),
            Means::Timerfd(ticker) => ticker.hurry(),
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
        let _ = match &self.means {
            Means::Signal(ticker) => ticker.set_next(time),
            Means::Timerfd(ticker) => ticker.set_next(time),
        };
    }

    /// Stops ticking.
    pub fn end(&self) {
        match &self.means {
            Means::Signal(ticker) => ticker.end(),
            Means::Timerfd(ticker) => ticker.end(),
        }
    }

    /// In a forked child: neither timers nor threads are inherited.
    pub fn abandon(self) {
        match self.means {
            Means::Signal(ticker) => ticker.abandon(),
            Means::Timerfd(ticker) => ticker.abandon(),
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
