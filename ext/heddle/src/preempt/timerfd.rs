//! The ticker that needs no signal: a native thread that reads a timerfd.
//!
//! A timer's interrupt comes to the processor on which the timer was set. So while it ticks the thread itself sets its
//! timer, and does so on another processor than the fiber that computes, if there is one. That one's thread only leaves
//! a note when a tick is to come later.

use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
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
    /// No tick is wanted before this time, of [`pace::now`].
    not_before: AtomicU64,
    /// Whether the timer is set to that time. If not, it runs out when the next tick usually comes.
    is_put_off: AtomicBool,
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
        if self.stopped.load(Ordering::Acquire) || !self.pulse.tick() || self.sleep_on() {
            return;
        }
        // First, as the job may want the next tick sooner.
        let _ = self.set(self.period);
        if !pace::is_quiet() {
            postponed_job::trigger();
        }
    }

    /// Sets the timer to the time before which no tick is wanted. False if that has come.
    fn sleep_on(&self) -> bool {
        let until = self.not_before.load(Ordering::SeqCst);
        let left = until.saturating_sub(pace::now());
        self.is_put_off.store(left > 0, Ordering::SeqCst);
        if left > 0 {
            let _ = self.set(Duration::from_nanos(left));
            // Who has been in a hurry since then has set the timer before this did, or has seen no need to.
            if self.not_before.load(Ordering::SeqCst) != until {
                let _ = self.set(self.period);
            }
        }
        left > 0
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
        let shared = Arc::new(Shared {
            timer,
            period,
            pulse,
            stopped: AtomicBool::new(false),
            not_before: AtomicU64::new(0),
            is_put_off: AtomicBool::new(false),
        });
        let ticking = Arc::clone(&shared);
        let ready = Arc::new(Barrier::new(2));
        let is_ready = Arc::clone(&ready);
        let blocked = SignalsBlocked::new();
        let thread = std::thread::Builder::new()
            .name(THREAD_NAME.to_owned())
            .spawn(move || {
                ask_for_short_slices();
                is_ready.wait();
                ticking.run();
            })
            .map_err(|error| Error::io("pthread_create", &error))?;
        drop(blocked);
        // A new thread has its first turn when those before it have had theirs, some milliseconds later.
        ready.wait();
        Ok(TimerfdTicker { shared, thread: Some(thread) })
    }

    /// Begins to tick.
    pub fn begin(&self) -> Result<(), Error> {
        if self.shared.pulse.begin() { self.set_next(self.shared.period) } else { Ok(()) }
    }

    /// The next tick comes after this time, and the others every period from then on. Does not begin to tick.
    pub fn set_next(&self, time: Duration) -> Result<(), Error> {
        self.shared.not_before.store(0, Ordering::SeqCst);
        self.shared.set(time)
    }

    /// The next tick comes only after this time, which is later than it would come otherwise.
    pub fn put_off(&self, time: Duration) {
        let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.shared.not_before.store(pace::now().saturating_add(time), Ordering::SeqCst);
    }

    /// The next tick comes in its usual time after all.
    pub fn hurry(&self) {
        self.shared.not_before.store(0, Ordering::SeqCst);
        if self.shared.is_put_off.load(Ordering::SeqCst) {
            // It fails for timers that do not exist alone.
            let _ = self.shared.set(self.shared.period);
        }
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

/// Asks the kernel to let this thread run soon after it is woken, even where somebody computes on the same processor:
/// whoever is content with short slices of time is preferred. Linux 6.12 and later; those before do as they always did.
fn ask_for_short_slices() {
    /// The least that there is.
    const SLICE_IN_NANOSECONDS: u64 = 100_000;
    // The thread that calls.
    const SELF: libc::pid_t = 0;
    const NO_FLAGS: libc::c_uint = 0;
    // SAFETY: all of its fields may be zero.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    let size = size_of_val(&attributes) as u32;
    // SAFETY: writes so many bytes to a variable of this function.
    let result = unsafe { libc::syscall(libc::SYS_sched_getattr, SELF, &raw mut attributes, size, NO_FLAGS) };
    if result == 0 && attributes.sched_policy == libc::SCHED_OTHER as u32 {
        attributes.sched_runtime = SLICE_IN_NANOSECONDS;
        // SAFETY: reads from a variable of this function, which tells its size.
        unsafe { libc::syscall(libc::SYS_sched_setattr, SELF, &raw const attributes, NO_FLAGS) };
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
