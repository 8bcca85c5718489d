//! The postponed job, which Ruby runs at its next safe point: at the end of a loop's iteration or of a method, or while
//! it matches a regular expression, but not inside other C code.

use std::panic::catch_unwind;
use std::sync::atomic::{AtomicU32, Ordering};

use heddle_core::threads::native_thread;

use super::outcome::Ignore;
use magnus::Ruby;
use rb_sys::rb_postponed_job_handle_t;

/// The handle that Ruby returns if its table of jobs is full.
const NO_HANDLE: rb_postponed_job_handle_t = u32::MAX;

static HANDLE: AtomicU32 = AtomicU32::new(NO_HANDLE);

/// The job's code. Ruby swallows exceptions that it raises, and delays other libraries' jobs until its end.
pub trait Job {
    /// Runs on the thread that held the GVL when the job was triggered, or that holds it next.
    fn run(ruby: &Ruby);
}

/// Preregisters the job with Ruby. There is one job, so a later call replaces it.
pub fn preregister<J: Job>(_: &Ruby) {
    unsafe extern "C" fn run<J: Job>(_: *mut std::os::raw::c_void) {
        // A panic must not unwind into C, and no caller could handle it.
        let ran = catch_unwind(|| {
            // SAFETY: Ruby calls this on one of its threads, with the GVL.
            J::run(&unsafe { Ruby::get_unchecked() });
        });
        ran.ignored("the panic hook has reported it");
    }
    // SAFETY: called with the GVL while the extension is loaded; `run` stays loaded, as Ruby unloads no extension.
    let handle = unsafe { rb_sys::rb_postponed_job_preregister(0, Some(run::<J>), std::ptr::null_mut()) };
    HANDLE.store(handle, Ordering::Release);
}

/// Asks Ruby to run the job. Callable from any thread and from signal handlers.
pub fn trigger() {
    let handle = HANDLE.load(Ordering::Acquire);
    if handle != NO_HANDLE {
        // SAFETY: Ruby has returned the handle; the function may be called in signal handlers and on native threads.
        // The tickers, which call this, are stopped before Ruby destroys its virtual machine.
        unsafe { rb_sys::rb_postponed_job_trigger(handle) };
    }
}

/// As [`trigger`], for a thread of Ruby's that is without the GVL: it would run the job itself, as soon as it has the
/// GVL again. So a native thread triggers the job, which the thread that holds the GVL then runs.
pub fn trigger_elsewhere() {
    let native = native_thread::spawn("heddle trigger", trigger);
    if let Some(native) = native.ignored("no thread can be started") {
        native.join().ignored("the panic hook has reported it");
    }
}
