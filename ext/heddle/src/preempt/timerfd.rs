//! The ticker that needs no signal: a native thread that reads a timerfd.

use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use heddle_core::Error;
use heddle_core::signals::SignalsBlocked;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use super::pace;
use super::pulse::Pulse;
use crate::ruby::postponed_job;

/// The smallest time that is not 'never'.
const AT_ONCE: Duration = Duration::from_nanos(1);
const THREAD_NAME: &str = "heddle ticker";

/// See the module.
pub struct TimerfdTicker {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    timer: TimerFd,
    period: Duration,
    pulse: &'static Pulse,
    stopped: AtomicBool,
}

impl Shared {
    /// Each tick is asked for on its own, so that nobody has to stop a timer while somebody else starts it.
    fn set(&self, time: Duration) -> Result<(), Error> {
        self.timer
            .set(Expiration::OneShot(time.into()), TimerSetTimeFlags::empty())
            .map_err(|errno| Error::os("timerfd_settime", errno))
    }

    fn run(&self) {
        while !self.stopped.load(Ordering::Acquire) {
            if self.timer.wait().is_err() {
                return;
            }
            self.tick();
        }
    }

    fn tick(&self) {
        if !self.stopped.load(Ordering::Acquire) && self.pulse.tick() {
            // First, as the job may put off the next tick.
            let _ = self.set(self.period);
            if !pace::is_quiet() {
                postponed_job::trigger();
            }
        }
    }
}

impl TimerfdTicker {
    /// Starts the thread. It does not tick yet.
    ///
    /// # Errors
    /// Descriptors or threads have run out.
    pub fn start(period: Duration, pulse: &'static Pulse) -> Result<Self, Error> {
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC)
            .map_err(|errno| Error::os("timerfd_create", errno))?;
        let shared = Arc::new(Shared { timer, period, pulse, stopped: AtomicBool::new(false) });
        let ticking = Arc::clone(&shared);
        let blocked = SignalsBlocked::new();
        let thread = std::thread::Builder::new()
            .name(THREAD_NAME.to_owned())
            .spawn(move || ticking.run())
            .map_err(|error| Error::io("pthread_create", &error))?;
        drop(blocked);
        Ok(TimerfdTicker { shared, thread: Some(thread) })
    }

    /// Begins to tick.
    pub fn begin(&self) -> Result<(), Error> {
        if self.shared.pulse.begin() { self.set_next(self.shared.period) } else { Ok(()) }
    }

    /// The next tick comes after this time, and the others every period from then on. Does not begin to tick.
    pub fn set_next(&self, time: Duration) -> Result<(), Error> {
        self.shared.set(time)
    }

    /// Stops ticking.
    pub fn end(&self) {
        self.shared.pulse.end();
    }

    /// In a forked child, where the thread does not exist.
    pub fn abandon(mut self) {
        drop(self.thread.take());
        // SAFETY: the thread's reference, which is never dropped here, would keep the descriptor open; nobody uses it.
        unsafe { libc::close(self.shared.timer.as_fd().as_raw_fd()) };
    }
}

impl Drop for TimerfdTicker {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        self.shared.stopped.store(true, Ordering::Release);
        self.shared.pulse.end();
        // It never waits for Ruby, so this takes as long as waking it. If it cannot be woken it cannot tick either.
        if self.shared.set(AT_ONCE).is_ok() {
            let _ = thread.join();
            self.shared.pulse.give_back();
        }
    }
}
