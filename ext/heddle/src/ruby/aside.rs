//! Raising at the very instruction where a fiber was preempted.
//!
//! Ruby swallows what is raised in a postponed job. What another thread has raised at this one, though, it raises as soon
//! as the job is over. So a thread that is made for it does that, while the job waits.

use std::os::raw::c_void;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use magnus::rb_sys::protect;
use magnus::{Error, Ruby, Value};
use rb_sys::VALUE;

use super::nogvl::without_gvl;
use super::thread;
use super::value::Held;

/// What the thread is to do.
struct Errand {
    target: Held,
    exception: Held,
    progress: Mutex<Progress>,
    over: Condvar,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Open,
    /// Nobody waits for it any more: it must not be done.
    Withdrawn,
    Done,
}

impl Errand {
    fn progress(&self) -> std::sync::MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self) {
        let mut progress = self.progress();
        while *progress == Progress::Open {
            progress = self.over.wait(progress).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Has `exception` raised at the current thread as soon as the postponed job that runs is over.
///
/// # Errors
/// No thread is to be had, or something else is about to be raised at this one. The exception will not be raised then.
pub fn raise_after_job(ruby: &Ruby, exception: Value) -> Result<(), Error> {
    let errand = Arc::new(Errand {
        target: thread::current(),
        exception: Held::new(exception),
        progress: Mutex::new(Progress::Open),
        over: Condvar::new(),
    });
    let passed = Arc::into_raw(Arc::clone(&errand)).cast_mut().cast::<c_void>();
    // SAFETY: called with the GVL; `run` takes what it is passed. What is raised stops at `protect`.
    let created = protect(|| unsafe { rb_sys::rb_thread_create(Some(run), passed) });
    if let Err(error) = created {
        // SAFETY: no thread was made, so nobody else has taken it.
        drop(unsafe { Arc::from_raw(passed.cast::<Errand>()) });
        return Err(error);
    }
    // `exception` stays on this stack, and thereby alive, until the errand is over.
    let waited = without_gvl(|| errand.wait(), &|| {});
    let mut progress = errand.progress();
    if waited.is_none() && *progress == Progress::Open {
        *progress = Progress::Withdrawn;
        return Err(super::error::fiber_error(ruby, "the thread is interrupted already"));
    }
    Ok(())
}

unsafe extern "C" fn run(errand: *mut c_void) -> VALUE {
    // SAFETY: `raise_after_job` passed it, for this thread to take.
    let errand = unsafe { Arc::from_raw(errand.cast::<Errand>().cast_const()) };
    if *errand.progress() == Progress::Open {
        // A thread that has ended meanwhile is beyond raising.
        let _ = thread::raise_into(errand.target, errand.exception.get());
        *errand.progress() = Progress::Done;
        errand.over.notify_all();
    }
    rb_sys::Qnil as VALUE
}
