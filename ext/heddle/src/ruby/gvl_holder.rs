//! Which thread holds the GVL, for native threads and signal handlers.
//!
//! Ruby tells a hook whenever a thread has got the GVL, and when it is about to release it. The hook costs some ten
//! nanoseconds each time, so it is installed on demand. It then stays until the process ends: removing it takes a lock
//! that another thread may hold for ever in a forked child.

use std::cell::Cell;
use std::os::raw::c_void;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use libc::pid_t;
use magnus::Ruby;
use rb_sys::{rb_event_flag_t, rb_internal_thread_event_data_t};

use super::{fork, ractor};

/// No thread.
const NONE: pid_t = 0;
const RESUMED: rb_event_flag_t = rb_sys::RUBY_INTERNAL_THREAD_EVENT_RESUMED as rb_event_flag_t;
const SUSPENDED: rb_event_flag_t = rb_sys::RUBY_INTERNAL_THREAD_EVENT_SUSPENDED as rb_event_flag_t;

static IS_WATCHED: AtomicBool = AtomicBool::new(false);
/// The kernel's number of the thread that holds the GVL, or [`NONE`].
static HOLDER: AtomicI32 = AtomicI32::new(NONE);
/// Whether there are, or were, other Ractors.
static HAS_RACTORS: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The current thread's number, with the generation of the process that has asked for it.
    static NUMBER: Cell<(u64, pid_t)> = const { Cell::new((0, NONE)) };
}

/// The kernel's number of the current thread.
pub fn current_thread() -> pid_t {
    // SAFETY: takes nothing and cannot fail; async-signal-safe.
    unsafe { libc::gettid() }
}

/// Makes [`holder`] known from now on. Called with the GVL, in the main Ractor.
pub fn watch(ruby: &Ruby) {
    if IS_WATCHED.swap(true, Ordering::AcqRel) {
        return;
    }
    // The hook may never be called for a Ractor that runs already: its thread keeps the Ractor's own GVL.
    if ractor::are_several(ruby) {
        HAS_RACTORS.store(true, Ordering::SeqCst);
    }
    // SAFETY: called with the GVL; `on_event` stays loaded, as Ruby unloads no extension.
    unsafe { rb_sys::rb_internal_thread_add_event_hook(Some(on_event), RESUMED | SUSPENDED, std::ptr::null_mut()) };
    HOLDER.store(current_thread(), Ordering::SeqCst);
}

/// The number of the thread that holds the main Ractor's GVL, if that is known. Then no other thread runs Ruby code or
/// collects garbage. `None` in a process with several Ractors, where the objects of one are not all that matters: they
/// share tables, with locks. Callable on any thread and in signal handlers.
pub fn holder() -> Option<pid_t> {
    let holder = HOLDER.load(Ordering::SeqCst);
    (holder != NONE && !HAS_RACTORS.load(Ordering::SeqCst)).then_some(holder)
}

/// The current thread is the only one of a forked child, and holds the GVL. Async-signal-safe.
pub fn reset() {
    HAS_RACTORS.store(false, Ordering::SeqCst);
    HOLDER.store(if IS_WATCHED.load(Ordering::SeqCst) { current_thread() } else { NONE }, Ordering::SeqCst);
}

/// Ruby calls this on the thread that has got the GVL, or that is about to release it.
unsafe extern "C" fn on_event(event: rb_event_flag_t, _: *const rb_internal_thread_event_data_t, _: *mut c_void) {
    if event == SUSPENDED {
        let _ = HOLDER.compare_exchange(cached_number(), NONE, Ordering::SeqCst, Ordering::SeqCst);
    } else if ractor::is_main() {
        HOLDER.store(cached_number(), Ordering::SeqCst);
    } else {
        HAS_RACTORS.store(true, Ordering::SeqCst);
    }
}

/// As [`current_thread`], without a system call.
fn cached_number() -> pid_t {
    NUMBER.with(|cached| {
        let (generation, number) = cached.get();
        if number != NONE && generation == fork::generation() {
            return number;
        }
        let number = current_thread();
        cached.set((fork::generation(), number));
        number
    })
}
