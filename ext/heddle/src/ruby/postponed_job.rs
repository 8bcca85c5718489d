//! The job that Ruby runs at its next safe point: at the end of a loop's round or a method, or while it matches a regular
//! expression, but not inside of other C code.

use std::panic::catch_unwind;
use std::sync::atomic::{AtomicU32, Ordering};

use magnus::Ruby;
use rb_sys::rb_postponed_job_handle_t;

/// What Ruby's table of jobs answers if it is full.
const NO_HANDLE: rb_postponed_job_handle_t = u32::MAX;

static HANDLE: AtomicU32 = AtomicU32::new(NO_HANDLE);

/// What the job does. Whatever is raised in there Ruby swallows, and jobs of others that were due at the same time wait
/// for its end.
pub trait Job {
    /// Runs on the thread that was running when it was triggered, or on the one that runs next.
    fn run(ruby: &Ruby);
}

/// Enters the job into Ruby's table. There is one job, so the later of two calls counts.
pub fn register<J: Job>() {
    unsafe extern "C" fn run<J: Job>(_: *mut std::os::raw::c_void) {
        // A panic must not leave a C callback. There is nobody who could be told.
        let _ = catch_unwind(|| {
            // SAFETY: Ruby calls this on one of its threads, with the GVL.
            J::run(&unsafe { Ruby::get_unchecked() });
        });
    }
    // SAFETY: called with the GVL while the extension is loaded; `run` stays where it is, as Ruby unloads no extension.
    let handle = unsafe { rb_sys::rb_postponed_job_preregister(0, Some(run::<J>), std::ptr::null_mut()) };
    HANDLE.store(handle, Ordering::Release);
}

/// Asks Ruby to run the job. Callable from any thread and from signal handlers.
pub fn trigger() {
    let handle = HANDLE.load(Ordering::Acquire);
    if handle != NO_HANDLE {
        // SAFETY: the handle is one that Ruby gave; the function is made for signal handlers and foreign threads. The
        // tickers, which call this, are stopped before Ruby takes its virtual machine apart.
        unsafe { rb_sys::rb_postponed_job_trigger(handle) };
    }
}
