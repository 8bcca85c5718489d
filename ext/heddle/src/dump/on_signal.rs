//! The signal of `Heddle.dump_on`.
//!
//! Ruby's handler runs the dump at the main thread's next safe point. While a thread is in C code that does not release
//! the GVL, there is none. So this handler, which calls Ruby's, also wakes a native thread. If no dump has begun after
//! [`PATIENCE`], the native thread writes what the kernel says about the threads of this process.

use std::io::{PipeReader, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use heddle_core::io::process_fd::{ProcessFd, Registration};
use heddle_core::threads::locking::lock;
use heddle_core::threads::native_thread;
use libc::{c_int, c_void, sigaction, siginfo_t};
use magnus::{Error, Ruby};
use nix::errno::Errno;

use super::threads;
use crate::ruby::outcome::Ignore;
use crate::ruby::{error, fork};

/// How long a dump may take to begin.
const PATIENCE: Duration = Duration::from_millis(500);
const THREAD_NAME: &str = "heddle dump";

/// How often the signal has arrived.
static ARRIVED: AtomicU64 = AtomicU64::new(0);
/// The value of `ARRIVED` when the last dump began.
static BEGUN: AtomicU64 = AtomicU64::new(0);
/// The end of the native thread's pipe to which the handler writes.
static PIPE: AtomicI32 = AtomicI32::new(-1);
/// Ruby's handler, and the flags that it was installed with.
static RUBY_HANDLER: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);
static RUBY_FLAGS: AtomicI32 = AtomicI32::new(0);
/// The generation of the process that has started the native thread, and the end of the pipe that the handler writes
/// to.
static STARTED: Mutex<Option<(u64, ProcessFd)>> = Mutex::new(None);

/// Handles a signal for which Ruby has a handler, besides Ruby. Starts the native thread, unless this process has it.
///
/// # Errors
/// SystemCallError if there are no descriptors or threads left.
pub fn watch(ruby: &Ruby, signal: c_int) -> Result<(), Error> {
    start_thread().map_err(|failure| {
        error::system_call(ruby, Errno::from_raw(failure.raw_os_error().unwrap_or(libc::EAGAIN)), "Heddle.dump_on")
    })?;
    // SAFETY: all of its fields may be zero; then the present action is read into it.
    let mut action: sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: reads into a variable of this function.
    unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut action) };
    let handler = on_signal as *const () as usize;
    if action.sa_sigaction != handler {
        RUBY_FLAGS.store(action.sa_flags, Ordering::Release);
        RUBY_HANDLER.store(action.sa_sigaction, Ordering::Release);
        action.sa_sigaction = handler;
        action.sa_flags |= libc::SA_SIGINFO;
        // SAFETY: the handler is async-signal-safe, as Ruby's is, and stays loaded, as Ruby unloads no extension.
        unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) };
    }
    Ok(())
}

/// A dump begins.
pub fn begin() {
    BEGUN.store(ARRIVED.load(Ordering::Acquire), Ordering::Release);
}

/// The pipe is the parent's, and closed in this forked child. Called inside fork(2), so it uses atomics alone.
pub fn reset() {
    PIPE.store(-1, Ordering::Relaxed);
}

fn start_thread() -> std::io::Result<()> {
    let mut started = lock(&STARTED);
    if started.as_ref().is_some_and(|(generation, _)| *generation == fork::generation()) {
        return Ok(());
    }
    let (reader, writer) = std::io::pipe()?;
    let registration = Registration::new(reader.as_raw_fd());
    // SAFETY: sets a flag of a descriptor of this function: the handler must not wait in a full pipe.
    unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
    native_thread::spawn(THREAD_NAME, move || watch_dumps(reader, registration))?;
    let writer = ProcessFd::from(OwnedFd::from(writer));
    PIPE.store(writer.as_raw_fd(), Ordering::Release);
    *started = Some((fork::generation(), writer));
    Ok(())
}

extern "C" fn on_signal(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let errno = Errno::last_raw();
    ARRIVED.fetch_add(1, Ordering::AcqRel);
    let byte = [1_u8];
    // SAFETY: `write` is async-signal-safe; it reads one byte of this function's.
    unsafe { libc::write(PIPE.load(Ordering::Acquire), byte.as_ptr().cast(), byte.len()) };
    let handler = RUBY_HANDLER.load(Ordering::Acquire);
    if RUBY_FLAGS.load(Ordering::Acquire) & libc::SA_SIGINFO != 0 {
        // SAFETY: Ruby has installed it, as such a function: `watch` is called when Ruby handles the signal.
        let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = unsafe { std::mem::transmute(handler) };
        handler(signal, info, context);
    } else if ![libc::SIG_DFL, libc::SIG_IGN].contains(&handler) {
        // SAFETY: Ruby has installed it, as such a function.
        let handler: extern "C" fn(c_int) = unsafe { std::mem::transmute(handler) };
        handler(signal);
    }
    Errno::set_raw(errno);
}

/// What the native thread does.
fn watch_dumps(mut reader: PipeReader, _registration: Registration) {
    let mut byte = [0_u8];
    while reader.read_exact(&mut byte).ignored("the process ends").is_some() {
        let arrived = ARRIVED.load(Ordering::Acquire);
        let before = threads::all();
        std::thread::sleep(PATIENCE);
        if BEGUN.load(Ordering::Acquire) < arrived {
            let report = threads::report(PATIENCE, &before, &threads::all());
            std::io::stderr().write_all(report.as_bytes()).ignored("descriptor 2 is closed");
        }
    }
}
