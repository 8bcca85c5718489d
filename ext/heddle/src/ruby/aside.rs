//! Raising at the very instruction where a fiber was preempted.
//!
//! Ruby swallows what is raised in a postponed job. What another thread has raised at this one, though, it raises as soon
//! as the job is over. So a thread that is made for it does that, while the job waits.

use std::os::raw::c_void;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use magnus::rb_sys::protect;
use magnus::{Error, RArray, Ruby, Value, prelude::*};
use rb_sys::VALUE;

use super::nogvl::without_gvl;
use super::value::Held;
use super::{error, interrupts, pending, thread};

/// What the thread is to do.
struct Errand {
    target: Held,
    /// An Array of exceptions.
    exceptions: Held,
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
/// No thread is to be had. The exception will not be raised then.
pub fn raise_after_job(ruby: &Ruby, exception: Value) -> Result<(), Error> {
    let mut exceptions = ruby.ary_new_from_values(&[exception]);
    while !exceptions.is_empty() {
        exceptions = raise_all_after_job(ruby, exceptions)?;
    }
    Ok(())
}

/// The same for several. Returns what was caught when all had been raised, these perhaps: it has to be raised again.
fn raise_all_after_job(ruby: &Ruby, exceptions: RArray) -> Result<RArray, Error> {
    let caught_late = ruby.ary_new();
    let errand = Arc::new(Errand {
        target: thread::current(),
        exceptions: Held::new(exceptions.as_value()),
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
    let mut killed = false;
    // Ruby does not let go of the GVL while an interrupt is pending, be it the end of the thread's time slice.
    while without_gvl(|| errand.wait(), &|| {}).is_none() && *errand.progress() == Progress::Open {
        if let Err(raised) = interrupts::check() {
            // Somebody else has raised at this thread. In here it would be swallowed, so it goes the same way.
            if pending::is_kill(&raised) {
                killed = true;
                continue;
            }
            // Who waited for the GVL in there may have done the errand meanwhile.
            let list = if *errand.progress() == Progress::Open { exceptions } else { caught_late };
            let other = error::exception_of(&raised);
            let added = match other {
                Some(other) => list.push(other),
                None => {
                    error::end_jump(ruby);
                    error::stop_class(ruby).and_then(|stop| list.push(stop))
                }
            };
            if let Err(error) = added {
                *errand.progress() = Progress::Withdrawn;
                return Err(error);
            }
        }
    }
    if killed {
        pending::kill_again();
    }
    // The array has to be on this stack until now: that is where the collector finds it.
    std::hint::black_box(exceptions);
    Ok(caught_late)
}

unsafe extern "C" fn run(errand: *mut c_void) -> VALUE {
    // SAFETY: `raise_after_job` passed it, for this thread to take.
    let errand = unsafe { Arc::from_raw(errand.cast::<Errand>().cast_const()) };
    if *errand.progress() == Progress::Open {
        if let Some(exceptions) = RArray::from_value(errand.exceptions.get()) {
            // The other thread may add to them in each of these calls.
            while let Ok(Some(exception)) = exceptions.shift::<Option<Value>>() {
                // A thread that has ended meanwhile is beyond raising.
                let _ = thread::raise_into(errand.target, exception);
            }
        }
        *errand.progress() = Progress::Done;
        errand.over.notify_all();
    }
    rb_sys::Qnil as VALUE
}
