//! The ticker without a signal: a native thread that reads a timerfd.
//!
//! A timer interrupts the processor on which it was set. So the ticker's thread sets the timer itself while it ticks,
//! and does so on another processor than the computing fiber's, if there is one. To postpone a tick, the fiber's thread
//! only stores the time.

use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread::JoinHandle;
use std::time::Duration;

use heddle_core::Error;
use heddle_core::io::process_fd::ProcessFd;
use heddle_core::threads::native_thread;
use nix::errno::Errno;

use super::state::{Expired, TickerState};
use super::{IMMEDIATELY, in_nanoseconds, throttle};
use crate::ruby::outcome::Ignore;
use crate::ruby::postponed_job;

const THREAD_NAME: &str = "heddle ticker";
/// After how many ticks without a computing fiber the ticker stops. A server that waits for its next request for less
/// than that need not set the timer for it: that is a system call, and its interrupt would come to the server's own
/// processor.
const IDLE_TICKS: u8 = 4;
/// Why a timer cannot be set.
const CLOSED: &str = "the program has closed the descriptor";

/// See the module.
pub struct TimerfdTicker {
    shared: Arc<TickLoop>,
    thread: Option<JoinHandle<()>>,
}

struct TickLoop {
    timer: Timer,
    /// In nanoseconds.
    period: AtomicU64,
    state: &'static TickerState,
}

/// A timerfd, which any thread may set.
struct Timer(ProcessFd);

impl Timer {
    fn new() -> Result<Self, Error> {
        // SAFETY: takes no pointers.
        let fd = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC) };
        let fd = Errno::result(fd).map_err(|errno| Error::os("timerfd_create", errno))?;
        // SAFETY: the kernel has just opened the descriptor, and nothing else owns it.
        Ok(Timer(unsafe { ProcessFd::from_raw_fd(fd) }))
    }

    /// Sets the timer for a single tick, so that no thread has to stop a timer while another thread starts it.
    ///
    /// # Errors
    /// The descriptor is no longer the timer's, as the program has closed it.
    fn set(&self, time: Duration) -> Result<(), Error> {
        let never = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let seconds =
            libc::time_t::try_from(time.as_secs()).ignored("longer than any wait").unwrap_or(libc::time_t::MAX);
        let time = libc::timespec { tv_sec: seconds, tv_nsec: time.subsec_nanos() as libc::c_long };
        let value = libc::itimerspec { it_interval: never, it_value: time };
        // SAFETY: the kernel reads `value` during the call, and writes nothing.
        let result = unsafe { libc::timerfd_settime(self.0.as_raw_fd(), 0, &raw const value, std::ptr::null_mut()) };
        Errno::result(result).map(drop).map_err(|errno| Error::os("timerfd_settime", errno))
    }

    /// Waits until the timer has expired. Returns false if the descriptor is no longer the timer's.
    fn wait(&self) -> bool {
        let mut expirations = [0_u8; 8];
        // SAFETY: the kernel writes at most the eight bytes of `expirations`.
        let read = unsafe { libc::read(self.0.as_raw_fd(), expirations.as_mut_ptr().cast(), expirations.len()) };
        !matches!(Errno::result(read), Err(errno) if errno != Errno::EINTR)
    }
}

impl TickLoop {
    fn period(&self) -> Duration {
        Duration::from_nanos(self.period.load(Ordering::Relaxed))
    }

    fn run(&self) {
        while !self.state.next.is_stopped() && self.timer.wait() {
            self.tick();
        }
    }

    fn tick(&self) {
        let expired = self.state.expire(IDLE_TICKS);
        if expired == Expired::Stop || !self.state.next.may_tick(throttle::now(), |time| self.set_on_thread(time)) {
            return;
        }
        // Before the trigger, as the job may set an earlier time.
        self.set_on_thread(None);
        if expired == Expired::Tick && !throttle::suppresses_ticks() {
            postponed_job::trigger();
        }
    }

    /// Sets the timer to this time, or else to the period.
    fn set_on_thread(&self, time: Option<Duration>) {
        let set = time.unwrap_or_else(|| self.period());
        self.timer.set(set).ignored(CLOSED);
        if time.is_none() && self.period() < set {
            // `set_period` has set the timer before the line above.
            self.timer.set(self.period()).ignored(CLOSED);
        }
    }
}

impl TimerfdTicker {
    /// Starts the thread. It does not tick yet.
    ///
    /// # Errors
    /// Descriptors or threads have run out.
    pub fn start(period: Duration, state: &'static TickerState) -> Result<Self, Error> {
        let shared = Arc::new(TickLoop { timer: Timer::new()?, period: AtomicU64::new(in_nanoseconds(period)), state });
        let ticking = Arc::clone(&shared);
        let ready = Arc::new(Barrier::new(2));
        let is_ready = Arc::clone(&ready);
        let run = move || {
            request_short_slices();
            is_ready.wait();
            ticking.run();
        };
        let thread = native_thread::spawn(THREAD_NAME, run).map_err(|error| Error::io("pthread_create", &error))?;
        // The kernel may start a new thread only milliseconds later, after other threads' time slices.
        ready.wait();
        Ok(TimerfdTicker { shared, thread: Some(thread) })
    }

    /// Starts ticking.
    pub fn begin(&self) -> Result<(), Error> {
        if self.shared.state.begin() { self.set_next(self.shared.period()) } else { Ok(()) }
    }

    /// Sets the time to the next tick; further ticks follow at the usual period. Does not start a stopped ticker.
    pub fn set_next(&self, time: Duration) -> Result<(), Error> {
        self.shared.state.next.expedite();
        self.set(time)
    }

    /// Changes the period, from the next tick on. A shorter period holds at once.
    pub fn set_period(&self, period: Duration) -> Result<(), Error> {
        let before = self.shared.period.swap(in_nanoseconds(period), Ordering::Relaxed);
        if before > in_nanoseconds(period) { self.set_next(period) } else { Ok(()) }
    }

    /// Stops ticking.
    pub fn end(&self) {
        self.shared.state.end();
    }

    fn set(&self, time: Duration) -> Result<(), Error> {
        self.shared.timer.set(time)
    }

    /// Releases the ticker in a forked child, where the thread does not exist.
    pub fn abandon(mut self) {
        // Dropping the handle would detach the thread, which does not exist in the child.
        std::mem::forget(self.thread.take());
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
        self.shared.state.next.stop();
        self.shared.state.end();
        // The thread never waits for Ruby, so it ends as soon as the timer wakes it. If it cannot be woken, it cannot
        // tick either, and its state is leaked.
        if self.set(IMMEDIATELY).ignored(CLOSED).is_some() {
            thread.join().ignored("it has panicked");
            self.shared.state.give_back();
        }
    }
}
