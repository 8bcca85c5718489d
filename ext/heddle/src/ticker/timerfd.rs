//! The ticker without a signal: a native thread that reads a timerfd.
//!
//! A timer interrupts the processor on which it was set. So the ticker's thread sets the timer itself while it ticks,
//! and does so on another processor than the computing fiber's, if there is one. To postpone a tick, the fiber's thread
//! only stores the time.

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
use super::{IMMEDIATELY, throttle};
use crate::ruby::postponed_job;

const THREAD_NAME: &str = "heddle ticker";

/// See the module.
pub struct TimerfdTicker {
    /// The owner's descriptor of the timer. The thread has another one, as setting a timer takes an exclusive
    /// reference.
    timer: RefCell<TimerFd>,
    /// The thread's descriptor, for a forked child to close.
    thread_fd: RawFd,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    period: Duration,
    state: &'static TickerState,
    stopped: AtomicBool,
    /// The time of [`throttle::now`] to which the next tick is postponed.
    not_before: AtomicU64,
    /// Whether the timer is set to that time. Otherwise it expires after the usual period.
    is_postponed: AtomicBool,
}

/// Sets the timer for a single tick, so that no thread has to stop a timer while another thread starts it.
fn set(timer: &mut TimerFd, time: Duration) -> Result<(), Error> {
    // Panics if the descriptor is no longer the timer's, as the program has closed it.
    catch_unwind(AssertUnwindSafe(|| timer.set_state(TimerState::Oneshot(time), SetTimeFlags::Default)))
        .map(|_| ())
        .map_err(|_| Error::os("timerfd_settime", Errno::EBADF))
}

/// A second descriptor of the same timer.
fn duplicate(timer: &TimerFd) -> std::io::Result<TimerFd> {
    let descriptor = timer.as_fd().try_clone_to_owned()?;
    // SAFETY: the descriptor is a timer's, and has no other owner.
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
        if self.stopped.load(Ordering::Acquire) || !self.state.tick() || self.wait_on(timer) {
            return;
        }
        // Before the trigger, as the job may set an earlier time.
        let _ = set(timer, self.period);
        if !throttle::suppresses_ticks() {
            postponed_job::trigger();
        }
    }

    /// Sets the timer to the postponed tick's time. False if that has passed.
    fn wait_on(&self, timer: &mut TimerFd) -> bool {
        let until = self.not_before.load(Ordering::SeqCst);
        let left = until.saturating_sub(throttle::now());
        self.is_postponed.store(left > 0, Ordering::SeqCst);
        if left > 0 {
            let _ = set(timer, Duration::from_nanos(left));
            // If `expedite` was called since, it has set the timer before the line above, or has not set it at all.
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
        let thread_fd = timer_of_thread.as_raw_fd();
        let shared = Arc::new(Shared {
            period,
            state,
            stopped: AtomicBool::new(false),
            not_before: AtomicU64::new(0),
            is_postponed: AtomicBool::new(false),
        });
        let ticking = Arc::clone(&shared);
        let ready = Arc::new(Barrier::new(2));
        let is_ready = Arc::clone(&ready);
        let blocked = SignalsBlocked::new();
        let thread = std::thread::Builder::new()
            .name(THREAD_NAME.to_owned())
            .spawn(move || {
                request_short_slices();
                is_ready.wait();
                ticking.run(timer_of_thread);
            })
            .map_err(|error| Error::io("pthread_create", &error))?;
        drop(blocked);
        // The kernel may start a new thread only milliseconds later, after other threads' time slices.
        ready.wait();
        Ok(TimerfdTicker { timer: RefCell::new(timer), thread_fd, shared, thread: Some(thread) })
    }

    /// Starts ticking.
    pub fn begin(&self) -> Result<(), Error> {
        if self.shared.state.begin() { self.set_next(self.shared.period) } else { Ok(()) }
    }

    /// Sets the time to the next tick; further ticks follow at the usual period. Does not start a stopped ticker.
    pub fn set_next(&self, time: Duration) -> Result<(), Error> {
        self.shared.not_before.store(0, Ordering::SeqCst);
        self.set(time)
    }

    /// Postpones the next tick until `time` from now, which must be later than it is due.
    pub fn postpone(&self, time: Duration) {
        let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.shared.not_before.store(throttle::now().saturating_add(time), Ordering::SeqCst);
    }

    /// Undoes a postponement.
    pub fn expedite(&self) {
        self.shared.not_before.store(0, Ordering::SeqCst);
        if self.shared.is_postponed.load(Ordering::SeqCst) {
            // Fails only for a timer that does not exist.
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

    /// Releases the ticker in a forked child, where the thread does not exist.
    pub fn abandon(mut self) {
        // Dropping the handle would detach the thread, which does not exist in the child.
        std::mem::forget(self.thread.take());
        // SAFETY: the descriptor's owner, the thread, does not exist in this process, and nothing else uses the
        // descriptor.
        unsafe { libc::close(self.thread_fd) };
    }
}

/// Asks the kernel for short time slices, with which it runs this thread soon after a wake-up even if another thread
/// computes on the same processor. Has an effect on Linux 6.12 and later.
fn request_short_slices() {
    /// The minimum.
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
        // SAFETY: reads from a variable of this function, which contains its size.
        unsafe { libc::syscall(libc::SYS_sched_setattr, SELF, &raw const attributes, NO_FLAGS) };
    }
}

impl Drop for TimerfdTicker {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        self.shared.stopped.store(true, Ordering::Release);
        self.shared.state.end();
        // The thread never waits for Ruby, so it ends as soon as the timer wakes it. If it cannot be woken, it cannot
        // tick either, and its state is leaked.
        if self.set(IMMEDIATELY).is_ok() {
            let _ = thread.join();
            self.shared.state.give_back();
        }
    }
}
