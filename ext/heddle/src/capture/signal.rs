//! The signal that makes a thread copy the frames of its Ruby stack.
//!
//! It is a real-time signal that has no handler; neither Ruby nor the C library uses these. The handler stays, as a
//! signal that is still on its way would otherwise end the program. If a library sets a handler of its own for the
//! signal, that handler stays, and the next capture takes another signal.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use heddle_core::machine_code;
use libc::{c_int, c_void, pid_t, sigaction, siginfo_t, ucontext_t};
use nix::errno::Errno;

use super::Capture;
use super::frames::Frame;
use crate::ruby::gvl_holder;
use crate::ruby::signal_frames::{self, SignalFrames};

/// How long the thread may take to answer. It takes longer if it has blocked the signal, or waits in a part of the
/// kernel that signals cannot interrupt.
const PATIENCE: Duration = Duration::from_millis(200);
const INTERVAL: Duration = Duration::from_micros(100);
const FAULTS: [c_int; 5] = [libc::SIGABRT, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGSEGV];

/// No capture is under way, or it is over.
const IDLE: u8 = 0;
/// The signal was sent.
const REQUESTED: u8 = 1;
/// The handler reads.
const READING: u8 = 2;
/// The handler has read all.
const READ: u8 = 3;

/// Whether a native thread captures. One at a time.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);
static PHASE: AtomicU8 = AtomicU8::new(IDLE);
/// The signal in use; zero before the first capture.
static SIGNAL: AtomicI32 = AtomicI32::new(0);
static READING_PLACE: ReadingPlace = ReadingPlace(UnsafeCell::new(Reading {
    thread: 0,
    is_holder: false,
    is_collecting: false,
    instruction: 0,
    frames: SignalFrames::EMPTY,
}));

/// What the handler is told, and what it has read.
struct Reading {
    thread: pid_t,
    is_holder: bool,
    is_collecting: bool,
    instruction: u64,
    frames: SignalFrames,
}

struct ReadingPlace(UnsafeCell<Reading>);

// SAFETY: the handler uses it in the phase `READING`, which it alone enters and leaves, and the native thread that has
// set `IS_TAKEN` in the other phases.
unsafe impl Sync for ReadingPlace {}

/// Ends the captures of other threads in a forked child, where these threads do not exist. Async-signal-safe.
pub fn reset() {
    PHASE.store(IDLE, Ordering::SeqCst);
    IS_TAKEN.store(false, Ordering::SeqCst);
}

/// Interrupts the thread and returns where it is. `None` if it does not hold the GVL any more, or does not answer.
pub fn interrupt(thread: pid_t) -> Option<Capture> {
    while IS_TAKEN.swap(true, Ordering::SeqCst) {
        thread::sleep(INTERVAL);
    }
    let capture = take(thread);
    IS_TAKEN.store(false, Ordering::SeqCst);
    capture
}

fn take(thread: pid_t) -> Option<Capture> {
    let signal = find_signal()?;
    // SAFETY: see `ReadingPlace`; the phase is `IDLE`.
    unsafe { (*READING_PLACE.0.get()).thread = thread };
    PHASE.store(REQUESTED, Ordering::SeqCst);
    // SAFETY: takes numbers. Fails if the thread has ended.
    let sent = unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, signal) } == 0;
    let is_read = sent && await_answer();
    if !is_read {
        PHASE.store(IDLE, Ordering::SeqCst);
        return None;
    }
    // SAFETY: see `ReadingPlace`; the phase is `READ`.
    let reading = unsafe { &*READING_PLACE.0.get() };
    let capture = reading.is_holder.then(|| Capture {
        frames: Frame::all(&reading.frames),
        is_collecting: reading.is_collecting,
        function: machine_code::function_at(reading.instruction),
    });
    PHASE.store(IDLE, Ordering::SeqCst);
    capture
}

/// Waits until the handler has read. False if it has not begun in time, and then it does not begin any more.
fn await_answer() -> bool {
    let until = Instant::now() + PATIENCE;
    while PHASE.load(Ordering::SeqCst) != READ {
        if Instant::now() > until && PHASE.compare_exchange(REQUESTED, IDLE, Ordering::SeqCst, Ordering::SeqCst).is_ok()
        {
            return false;
        }
        thread::sleep(INTERVAL);
    }
    true
}

/// The signal for which Heddle's handler is installed.
fn find_signal() -> Option<c_int> {
    let known = SIGNAL.load(Ordering::SeqCst);
    if known != 0 && action_of(known)?.sa_sigaction == on_signal as *const () as usize {
        return Some(known);
    }
    let free = (libc::SIGRTMIN()..=libc::SIGRTMAX()).rev().find(|signal| {
        action_of(*signal).is_some_and(|action| action.sa_sigaction == libc::SIG_DFL) && install(*signal)
    })?;
    SIGNAL.store(free, Ordering::SeqCst);
    Some(free)
}

fn action_of(signal: c_int) -> Option<sigaction> {
    // SAFETY: all of its fields may be zero.
    let mut action: sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: reads into a variable of this function.
    let result = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut action) };
    (result == 0).then_some(action)
}

fn install(signal: c_int) -> bool {
    // SAFETY: all of its fields may be zero.
    let mut action: sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = on_signal as *const () as usize;
    // On the alternate stack, if there is one, as a fiber's own stack may be nearly full.
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
    // SAFETY: the handler is async-signal-safe, and stays loaded, as Ruby unloads no extension.
    unsafe {
        // Other handlers would share the alternate stack. But Ruby reports its own faults.
        libc::sigfillset(&raw mut action.sa_mask);
        FAULTS.iter().for_each(|fault| _ = libc::sigdelset(&raw mut action.sa_mask, *fault));
        libc::sigaction(signal, &raw const action, std::ptr::null_mut()) == 0
    }
}

extern "C" fn on_signal(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let errno = Errno::last_raw();
    // SAFETY: the kernel passes information on the signal, as the handler was installed with SA_SIGINFO.
    let is_own = unsafe { (*info).si_code == libc::SI_TKILL && (*info).si_pid() == libc::getpid() };
    if !is_own {
        // Another program has sent it, so it does what it does by default: it ends this one.
        // SAFETY: both calls are async-signal-safe. The signal is delivered when this handler returns.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        }
    } else if PHASE.compare_exchange(REQUESTED, READING, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
        // SAFETY: see `ReadingPlace`; the phase is `READING`. The context is that of this handler.
        unsafe { read(&mut *READING_PLACE.0.get(), context.cast()) };
        PHASE.store(READ, Ordering::SeqCst);
    }
    Errno::set_raw(errno);
}

/// # Safety
/// Called in the signal's handler, with its context.
unsafe fn read(reading: &mut Reading, context: *const ucontext_t) {
    reading.frames.clear();
    // The signal may be a late one, to another thread.
    let thread = gvl_holder::current_thread();
    reading.is_holder = thread == reading.thread && gvl_holder::holder() == Some(thread);
    if !reading.is_holder {
        return;
    }
    // SAFETY: by this function's contract.
    reading.instruction = unsafe { instruction_of(context) };
    reading.is_collecting = signal_frames::is_collecting();
    if !reading.is_collecting {
        // SAFETY: the thread holds the GVL and does not collect; see `ReadingPlace`.
        unsafe { reading.frames.read() };
    }
}

/// Where the signal has interrupted the thread.
///
/// # Safety
/// `context` is what a signal handler was given.
unsafe fn instruction_of(context: *const ucontext_t) -> u64 {
    // SAFETY: by this function's contract.
    let machine = unsafe { &(*context).uc_mcontext };
    #[cfg(target_arch = "x86_64")]
    return machine.gregs[libc::REG_RIP as usize] as u64;
    #[cfg(target_arch = "aarch64")]
    return machine.pc;
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        let _ = machine;
        0
    }
}
