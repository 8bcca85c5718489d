//! Waiting without the GVL, so that other Ruby threads can run.

use std::os::raw::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

use magnus::Ruby;

use super::outcome::Ignore;

/// Runs `wait` without the GVL. `interrupt` is called, on another thread, when Ruby wants this thread back (a signal,
/// `Thread#raise`, `Thread#kill`) and must end `wait` soon.
///
/// `wait` is `Send`, so it captures neither `&Ruby` nor an object (see [`super::gvl`]).
///
/// Raises nothing: an interrupt stays pending until the next check (see [`super::interrupts`]). `None` if an interrupt
/// was pending already, so that `wait` did not run, or if `wait` panicked.
pub fn without_gvl<T, W, I>(_: &Ruby, wait: W, interrupt: &I) -> Option<T>
where
    W: FnOnce() -> T + Send,
    I: Fn() + Sync,
{
    struct Call<T, W> {
        wait: Option<W>,
        result: Option<T>,
    }

    unsafe extern "C" fn run<T, W: FnOnce() -> T>(call: *mut c_void) -> *mut c_void {
        // SAFETY: points to the `Call` below, which nothing else uses while this runs.
        let call = unsafe { &mut *call.cast::<Call<T, W>>() };
        if let Some(wait) = call.wait.take() {
            call.result = catch_unwind(AssertUnwindSafe(wait)).ignored("the panic hook has reported it");
        }
        std::ptr::null_mut()
    }

    unsafe extern "C" fn unblock<I: Fn()>(interrupt: *mut c_void) {
        // SAFETY: points to the `interrupt` of the present call, and `I` is `Sync`.
        let interrupt = unsafe { &*interrupt.cast::<I>() };
        // A panic must not unwind into C.
        catch_unwind(AssertUnwindSafe(interrupt)).ignored("the wait lasts until its own end");
    }

    let mut call = Call { wait: Some(wait), result: None };
    // SAFETY: called with the GVL. Both callbacks get pointers of their own types, and what they point to outlives the
    // call. The function does not raise, as it checks no interrupts ("2").
    unsafe {
        rb_sys::rb_thread_call_without_gvl2(
            Some(run::<T, W>),
            (&raw mut call).cast(),
            Some(unblock::<I>),
            std::ptr::from_ref(interrupt).cast_mut().cast(),
        );
    }
    call.result
}
