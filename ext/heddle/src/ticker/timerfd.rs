//! The ticker that needs no signal: a native thread that reads a timerfd.
//!
//! A timer's interrupt comes to the processor on which the timer was set. So while it ticks the thread itself sets its
//! timer, and does so on another processor than the fiber that computes, if there is one. That one's thread only leaves
//! a note when a tick is to come later.

use std::cell::RefCell;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, IntoRawFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread::JoinHandle;
use std::time::Duration;

use heddle_core::Error;
use heddle_core::signals::SignalsBlocked;
use nix::errno::Errno;
use timerfd::{ClockId, SetTimeFlags, TimerFd, TimerState};

use super::state::TickerState;
use super::throttle;
use crate::ruby::postponed_job;

/// The smallest time that is not 'never'.
const AT_ONCE: Duration = Duration::from_nanos(1);
const THREAD_NAME: &str = "heddle ticker";

/// See the module.
pub struct TimerfdTicker {
    /// The owner's descriptor of the timer. The thread has one of its own: to set a timer takes an exclusive reference.
    timer: RefCell<TimerFd>,
    /// The thread's descriptor, for a forked child to close.
    of_thread: RawFd,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    period: Duration,
    state: &'static TickerState,
    stopped: AtomicBool,
    /// No tick is wanted before this time, of [`throttle::now`].
    not_before: AtomicU64,
    /// Whether the timer is set to that time. If not, it runs out when the next tick usually comes.
    is_put_off: AtomicBool,
}

/// Each tick is asked for on its own, so no thread has to stop a timer while another one starts it.
fn set(timer: &mut TimerFd, time: Duration) -> Result<(), Error> {
    // It panics where the descriptor is no timer's any more: the program has closed it.
    catch_unwind(AssertUnwindSafe(|| timer.set_state(TimerState::Oneshot(time), SetTimeFlags::Default)))
        .map(|_| ())
        .map_err(|_| Error::os("timerfd_settime", Errno::EBADF))
}

/// A second descriptor of the same timer.
fn duplicate(timer: &TimerFd) -> std::io::Result<TimerFd> {
    let descriptor = timer.as_fd().try_clone_to_owned()?;
    // SAFETY: it is a timer's, and belongs to this ticker alone.
    Ok(unsafe { TimerFd::from_raw_fd(descriptor.into_raw_fd()) })
}

impl Shared {
    fn run(&self, mut timer: TimerFd) {
        while !self.stopped.load(Ordering::Acquire) {
            timer.read();
            self.tick(&mut timer);
        }
    }

    fn tick(&self, timer: &mut TimerFd) {
        if self.stopped.load(Ordering::Acquire) || !self.state.tick() || self.sleep_on(timer) {
            return;
        }
        // First, as the job may want the next tick sooner.
        let _ = set(timer, self.period);
        if !throttle::is_quiet() {
            postponed_job::trigger();
        }
    }

    /// Sets the timer to the time before which no tick is wanted. False if that has come.
    fn sleep_on(&self, timer: &mut TimerFd) -> bool {
        let until = self.not_before.load(Ordering::SeqCst);
        let left = until.saturating_sub(throttle::now());
        self.is_put_off.store(left > 0, Ordering::SeqCst);
        if left > 0 {
            let _ = set(timer, Duration::from_nanos(left));
            // Who has been in a hurry since then has set the timer before this did, or has seen no need to.
            if self.not_before.load(Ordering::SeqCst) != until {
                let _ = set(timer, self.period);
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
    pub fn start(period: Duration, state: &'static TickerState) -> Result<Self, Error> {
        let timer = TimerFd::new_custom(ClockId::Monotonic, false, true)
            .map_err(|error| Error::io("timerfd_create", &error))?;
        let timer_of_thread = duplicate(&timer).map_err(|error| Error::io("dup", &error))?;
        let of_thread = timer_of_thread.as_raw_fd();
        let shared = Arc::new(Shared {
            period,
            state,
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
                ticking.run(timer_of_thread);
            })
            .map_err(|error| Error::io("pthread_create", &error))?;
        drop(blocked);
        // A new thread has its first turn when those before it have had theirs, some milliseconds later.
        ready.wait();
        Ok(TimerfdTicker { timer: RefCell::new(timer), of_thread, shared, thread: Some(thread) })
    }

    /// Begins to tick.
    pub fn begin(&self) -> Result<(), Error> {
        if self.shared.state.begin() { self.set_next(self.shared.period) } else { Ok(()) }
    }

    /// The next tick comes after this time, and the others every period from then on. Does not begin to tick.
    pub fn set_next(&self, time: Duration) -> Result<(), Error> {
        self.shared.not_before.store(0, Ordering::SeqCst);
        self.set(time)
    }

    /// The next tick comes only after this time, which is later than it would come otherwise.
    pub fn postpone(&self, time: Duration) {
        let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.shared.not_before.store(throttle::now().saturating_add(time), Ordering::SeqCst);
    }

    /// The next tick comes in its usual time after all.
    pub fn expedite(&self) {
        self.shared.not_before.store(0, Ordering::SeqCst);
        if self.shared.is_put_off.load(Ordering::SeqCst) {
            // It fails for timers that do not exist alone.
            let _ = self.set(self.shared.period);
        }
    }

    /// Stops ticking.
    pub fn end(&self) {
        self.shared.state.end();
    }

    fn set(&self, time: Duration) -> Result<(), Error> {
        set(&mut self.timer.borrow_mut(), time)
    }

    /// In a forked child, where the thread does not exist.
    pub fn abandon(mut self) {
        // To drop it would detach the thread, which the child knows nothing of.
        std::mem::forget(self.thread.take());
        // SAFETY: the thread, which would have closed it, does not exist in this process; it is not used here.
        unsafe { libc::close(self.of_thread) };
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
        self.shared.state.end();
        // It never waits for Ruby, so this takes as long as waking it. If it cannot be woken it cannot tick either.
        if self.set(AT_ONCE).is_ok() {
            let _ = thread.join();
            self.shared.state.give_back();
        }
    }
}
