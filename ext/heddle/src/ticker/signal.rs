//! The signal ticker: a timer of the kernel whose signal is directed at the scheduler's thread, as a signal to the
//! process could interrupt any thread.

use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::Duration;

use heddle_core::Error;
use heddle_core::threads::locking::lock;
use libc::{c_int, c_void, sigaction, siginfo_t};
use nix::errno::Errno;

use super::state::{Expired, TickerState};
use super::{IMMEDIATELY, throttle};
use crate::ruby::outcome::Ignore;
use crate::ruby::{fork, postponed_job, thread};

const SIGNALS: usize = 65;
/// No idle ticks: the signal would end the wait in the kernel.
const IDLE_TICKS: u8 = 0;

/// The previous action of each signal. Never freed, as the handler may be reading it.
static PREVIOUS: [AtomicPtr<sigaction>; SIGNALS] = [const { AtomicPtr::new(std::ptr::null_mut()) }; SIGNALS];
/// The signals in use, each with the number of its tickers and the generation of the process.
static TAKEN: Mutex<Vec<Taken>> = Mutex::new(Vec::new());

struct Taken {
    signal: c_int,
    users: usize,
    generation: u64,
}

/// See the module. Interrupts the thread that started it.
pub struct SignalTicker {
    signal: c_int,
    period: Cell<Duration>,
    state: &'static TickerState,
    /// The kernel's number of the thread to which the timer sends its signal.
    thread: libc::pid_t,
}

impl SignalTicker {
    /// Installs the signal's handler and makes a timer for the current thread. It does not tick yet.
    ///
    /// # Errors
    /// The system has no timer left.
    pub fn start(signal: c_int, period: Duration, state: &'static TickerState) -> Result<Self, Error> {
        take(signal)?;
        match create_timer(signal, state) {
            Ok(thread) => Ok(SignalTicker { signal, period: Cell::new(period), state, thread }),
            Err(error) => {
                give_back(signal, true);
                Err(error)
            }
        }
    }

    /// The signal's number.
    pub fn signal(&self) -> c_int {
        self.signal
    }

    /// Starts ticking.
    pub fn begin(&self) -> Result<(), Error> {
        if self.state.begin() { self.set_next(self.period.get()) } else { Ok(()) }
    }

    /// Sets the time to the next tick; further ticks follow at the usual period. Does not start a stopped ticker.
    pub fn set_next(&self, time: Duration) -> Result<(), Error> {
        self.state.next.expedite();
        set_timer(self.state, time.max(IMMEDIATELY), self.period.get())
    }

    /// Changes the period.
    pub fn set_period(&self, period: Duration) -> Result<(), Error> {
        self.period.set(period);
        self.set_next(period)
    }

    /// Stops ticking.
    pub fn end(&self) {
        self.state.end();
        stop_timer(self.state).ignored("only for a timer that does not exist");
    }

    /// Releases the ticker in a forked child, which inherits the handler, but no timer. The handler then passes each
    /// signal on to the previous one.
    pub fn abandon(self) {
        std::mem::forget(self);
    }
}

impl Drop for SignalTicker {
    fn drop(&mut self) {
        // SAFETY: the timer was created by `start` and is deleted here alone.
        unsafe { libc::timer_delete(self.state.timer.load(Ordering::Acquire)) };
        self.state.give_back();
        give_back(self.signal, !may_be_pending(self.signal, self.thread));
    }
}

/// Whether a signal of a deleted timer may still be on its way to the thread. The previous action, which may be to end
/// the process, must not handle it.
fn may_be_pending(signal: c_int, thread: libc::pid_t) -> bool {
    if thread::native_id() != thread {
        // SAFETY: sends no signal, but checks whether the thread exists.
        return unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, 0) } == 0;
    }
    // The kernel delivers a signal that is not blocked before the call that deletes the timer returns.
    // SAFETY: both functions write to and read from a variable of this function.
    unsafe {
        let mut pending: libc::sigset_t = std::mem::zeroed();
        libc::sigpending(&raw mut pending) != 0 || libc::sigismember(&raw const pending, signal) != 0
    }
}

/// Returns the number of the current thread, to which the timer sends its signal.
fn create_timer(signal: c_int, state: &'static TickerState) -> Result<libc::pid_t, Error> {
    // SAFETY: all of its fields may be zero.
    let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
    event.sigev_notify = libc::SIGEV_THREAD_ID;
    event.sigev_signo = signal;
    event.sigev_value.sival_ptr = std::ptr::from_ref(state).cast_mut().cast();
    event.sigev_notify_thread_id = thread::native_id();
    let mut id: libc::timer_t = std::ptr::null_mut();
    // SAFETY: both pointers are to variables of this function.
    Errno::result(unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut id) })
        .map_err(|errno| Error::os("timer_create", errno))?;
    state.timer.store(id, Ordering::Release);
    Ok(event.sigev_notify_thread_id)
}

/// Disarms the timer. Callable from the signal handler.
fn stop_timer(state: &TickerState) -> Result<(), Error> {
    set_timer(state, Duration::ZERO, Duration::ZERO)
}

/// Arms the timer to expire after `first`, and every `period` from then on. A `first` of zero disarms it.
fn set_timer(state: &TickerState, first: Duration, period: Duration) -> Result<(), Error> {
    let timespec = |time: Duration| libc::timespec {
        tv_sec: time.as_secs().try_into().ignored("far in the future").unwrap_or(libc::time_t::MAX),
        tv_nsec: time.subsec_nanos().into(),
    };
    let setting = libc::itimerspec { it_interval: timespec(period), it_value: timespec(first) };
    // SAFETY: the timer exists as long as its ticker does; `timer_settime` is safe in signal handlers.
    let result = unsafe {
        libc::timer_settime(state.timer.load(Ordering::Acquire), 0, &raw const setting, std::ptr::null_mut())
    };
    Errno::result(result).map(|_| ()).map_err(|errno| Error::os("timer_settime", errno))
}

fn taken() -> std::sync::MutexGuard<'static, Vec<Taken>> {
    lock(&TAKEN)
}

/// Adds a ticker to the signal's users, and installs the handler for the first one.
fn take(signal: c_int) -> Result<(), Error> {
    let mut all = taken();
    if let Some(entry) = all.iter_mut().find(|entry| entry.signal == signal) {
        if entry.generation != fork::generation() {
            // The tickers that were counted are the parent's.
            (entry.users, entry.generation) = (0, fork::generation());
        }
        entry.users += 1;
        return Ok(());
    }
    // SAFETY: all of its fields may be zero.
    let (mut action, mut previous): (sigaction, sigaction) = unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
    action.sa_sigaction = on_signal as *const () as usize;
    // On the alternate stack, if there is one, as a fiber's own stack may be nearly full.
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
    // SAFETY: reads the present action into a variable of this function.
    Errno::result(unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut previous) })
        .map_err(|errno| Error::os("sigaction", errno))?;
    remember(signal, previous);
    // SAFETY: the handler is async-signal-safe, and stays loaded, as Ruby unloads no extension.
    Errno::result(unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) })
        .map_err(|errno| Error::os("sigaction", errno))?;
    all.push(Taken { signal, users: 1, generation: fork::generation() });
    Ok(())
}

/// Stores the signal's previous action, for the handler that is installed next.
fn remember(signal: c_int, action: sigaction) {
    let slot = &PREVIOUS[signal as usize];
    // SAFETY: null, or a leaked box of an earlier call.
    let known = unsafe { slot.load(Ordering::Acquire).as_ref() };
    if known.is_none_or(|known| (known.sa_sigaction, known.sa_flags) != (action.sa_sigaction, action.sa_flags)) {
        slot.store(Box::leak(Box::new(action)), Ordering::Release);
    }
}

/// Removes a ticker from the signal's users, and restores the previous action after the last one if `restores` says so.
/// Otherwise the handler stays, which passes on what no ticker has sent, until the next ticker of the signal ends.
fn give_back(signal: c_int, restores: bool) {
    let mut all = taken();
    let Some(index) = all.iter().position(|entry| entry.signal == signal) else { return };
    all[index].users = all[index].users.saturating_sub(1);
    if all[index].users == 0 && restores {
        all.swap_remove(index);
        let previous = PREVIOUS[signal as usize].load(Ordering::Acquire);
        // SAFETY: `take` has stored it, and it is never freed, as the handler may be reading it.
        unsafe { libc::sigaction(signal, previous, std::ptr::null_mut()) };
    }
}

/// The action of a signal at some time.
pub struct Disposition(c_int, sigaction);

impl Disposition {
    /// The present action.
    pub fn of(signal: c_int) -> Self {
        // SAFETY: all of its fields may be zero, which is the default disposition.
        let mut action: sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: reads into a variable of this function. For an invalid number it fails and leaves the default there.
        unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut action) };
        Disposition(signal, action)
    }

    /// The function that handles the signal, if there is one.
    pub fn handler(&self) -> Option<usize> {
        Some(self.1.sa_sigaction).filter(|handler| ![libc::SIG_DFL, libc::SIG_IGN].contains(handler))
    }

    /// Restores this action.
    pub fn restore(&self) {
        // SAFETY: the action was installed before.
        unsafe { libc::sigaction(self.0, &raw const self.1, std::ptr::null_mut()) };
    }
}

/// Whether Heddle's handler is installed: a ticker uses the signal, or did so in the parent of this process.
pub fn is_taken(signal: c_int) -> bool {
    taken().iter().any(|entry| entry.signal == signal)
}

/// Restores the signal's previous action, if only tickers of the parent of this process have used it.
pub fn give_back_inherited(signal: c_int) {
    let inherited = taken().iter().any(|entry| entry.signal == signal && entry.generation != fork::generation());
    if inherited {
        // The parent's tickers do not exist in this process.
        taken().iter_mut().filter(|entry| entry.signal == signal).for_each(|entry| entry.users = 0);
        give_back(signal, true);
    }
}

extern "C" fn on_signal(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let errno = Errno::last_raw();
    // SAFETY: the kernel passes information on the signal, as the handler was installed with SA_SIGINFO.
    match unsafe { ticker_state_of(info) } {
        Some(state) if state.expire(IDLE_TICKS) == Expired::Tick => {
            // A postponed tick has come. From now on the timer expires at the usual period.
            state.next.expedite();
            if !throttle::suppresses_ticks() {
                postponed_job::trigger();
            }
        }
        Some(state) => {
            stop_timer(state).ignored("only for a timer that does not exist");
        }
        None => call_previous(signal, info, context),
    }
    Errno::set_raw(errno);
}

/// The state of the ticker whose timer has sent the signal; `None` if another source has sent it, such as a timer of
/// another library.
///
/// # Safety
/// `info` is what a signal handler was given.
unsafe fn ticker_state_of(info: *mut siginfo_t) -> Option<&'static TickerState> {
    /// The start of `siginfo_t` for a timer's signal, as sigaction(2) has it. libc does not name these fields.
    #[repr(C)]
    struct TimerInfo {
        signal: c_int,
        errno: c_int,
        code: c_int,
        #[cfg(target_pointer_width = "64")]
        padding: c_int,
        timer: c_int,
        overrun: c_int,
        value: libc::sigval,
    }
    // SAFETY: by this function's contract.
    if unsafe { (*info).si_code } != libc::SI_TIMER {
        return None;
    }
    // SAFETY: a timer's signal has these fields.
    TickerState::at(unsafe { (*info.cast::<TimerInfo>()).value.sival_ptr })
}

/// Performs the signal's previous action.
fn call_previous(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: `take` stored it before it installed the handler, and it is never freed.
    let Some(previous) = (unsafe { PREVIOUS[signal as usize].load(Ordering::Acquire).as_ref() }) else { return };
    match previous.sa_sigaction {
        libc::SIG_IGN => {}
        // The default is to ignore these. Restoring the default would end the ticker's signals.
        libc::SIG_DFL if [libc::SIGURG, libc::SIGWINCH, libc::SIGCHLD, libc::SIGCONT].contains(&signal) => {}
        libc::SIG_DFL => {
            // SAFETY: both calls are async-signal-safe. The signal is delivered when this handler returns.
            unsafe {
                libc::sigaction(signal, previous, std::ptr::null_mut());
                libc::raise(signal);
            }
        }
        handler if previous.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: it was installed as such a function.
            let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = unsafe { std::mem::transmute(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: it was installed as such a function.
            let handler: extern "C" fn(c_int) = unsafe { std::mem::transmute(handler) };
            handler(signal);
        }
    }
}
