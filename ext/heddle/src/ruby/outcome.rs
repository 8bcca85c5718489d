//! What becomes of an error that does not propagate.
//!
//! Ruby checks interrupts at the end of each method that Rust calls. So the error of such a call may be the SIGTERM of
//! the process, or a `Thread#raise` or `Thread#kill` that has nothing to do with the call. Dropping it would lose that.
//! Ruby even ignores each later kill of a thread. The same holds for a C function that raises an error: to make it,
//! Ruby runs methods.
//!
//! So Clippy refuses what drops an error silently: see `clippy.toml`, and `rake clippy` for patterns such as `if let
//! Ok`. Code says instead which of these holds: [`Deferred::deferred`](super::pending_interrupts::Deferred),
//! [`RubyOutcome::not_an_interrupt`], [`RubyOutcome::and_ensure`], or, for errors that Ruby has no part in,
//! [`Ignore::ignored`].

use std::any::Any;
use std::os::raw::c_int;

use magnus::Error;
use magnus::error::ErrorType;
use magnus::rb_sys::{protect, resume_error};
use rb_sys::VALUE;

/// For the results of Ruby calls.
pub trait RubyOutcome<T> {
    /// The value. An error is dropped: the call runs no method and checks no interrupts, so it is the call's own.
    /// `meaning` says what it means.
    fn not_an_interrupt(self, meaning: &'static str) -> Option<T>;

    /// Runs `cleanup` in any case, as an `ensure` clause does: its error takes the place of this one.
    fn and_ensure(self, cleanup: impl FnOnce() -> Result<(), Error>) -> Self;
}

#[expect(clippy::manual_ok_err, reason = "`ok` drops an error without a word")]
impl<T> RubyOutcome<T> for Result<T, Error> {
    fn not_an_interrupt(self, _meaning: &'static str) -> Option<T> {
        match self {
            Ok(value) => Some(value),
            Err(_error) => None,
        }
    }

    fn and_ensure(self, cleanup: impl FnOnce() -> Result<(), Error>) -> Self {
        let jump = match &self {
            Err(error) => match error.error_type() {
                ErrorType::Jump(tag) => Some(*tag as c_int),
                _ => None,
            },
            Ok(_) => None,
        };
        match jump {
            Some(tag) => match continue_jump(tag, cleanup) {
                Err(error) => Err(error),
                Ok(()) => self,
            },
            None => match cleanup() {
                Err(later) => Err(later),
                Ok(()) => self,
            },
        }
    }
}

/// Continues the jump that was caught last, by a kill or a `throw`, and catches it again behind `cleanup`, or the error
/// of that. Ruby keeps the jump's target where the methods that `cleanup` calls put their exceptions, but saves it for
/// an `ensure` clause.
fn continue_jump<F: FnOnce() -> Result<(), Error>>(tag: c_int, cleanup: F) -> Result<(), Error> {
    unsafe extern "C" fn jump(tag: VALUE) -> VALUE {
        // SAFETY: the number of the jump that was caught last. This frame owns nothing.
        unsafe { rb_sys::rb_jump_tag(tag as c_int) }
    }

    unsafe extern "C" fn clean_up<F: FnOnce() -> Result<(), Error>>(cleanup: VALUE) -> VALUE {
        // SAFETY: points to the variable below, which nothing else uses during the call.
        let cleanup = unsafe { &mut *(cleanup as *mut Option<F>) }.take();
        match cleanup.map_or(Ok(()), |cleanup| cleanup()) {
            Ok(()) => rb_sys::Qnil as VALUE,
            // SAFETY: called by `rb_ensure`; nothing is left to be dropped here.
            Err(error) => unsafe { resume_error(error) },
        }
    }

    let mut cleanup = Some(cleanup);
    let data = (&raw mut cleanup) as VALUE;
    // SAFETY: called with the GVL. Both functions get what they expect, which outlives the call. What they raise stops
    // at `protect`, and the closure owns nothing.
    protect(|| unsafe { rb_sys::rb_ensure(Some(jump), tag as VALUE, Some(clean_up::<F>), data) }).map(|_| ())
}

/// An error that Ruby has no part in.
pub trait NotRubys {}

impl NotRubys for heddle_core::Error {}
impl NotRubys for nix::errno::Errno {}
impl NotRubys for std::cell::BorrowError {}
impl NotRubys for std::cell::BorrowMutError {}
impl NotRubys for std::collections::TryReserveError {}
impl NotRubys for std::ffi::NulError {}
impl NotRubys for std::io::Error {}
impl NotRubys for std::num::ParseIntError {}
impl NotRubys for std::num::TryFromIntError {}
impl NotRubys for std::time::TryFromFloatSecsError {}
/// A panic, which the panic hook has reported.
impl NotRubys for Box<dyn Any + Send> {}

/// The value of an atomic that was not exchanged.
impl NotRubys for i32 {}
impl NotRubys for u8 {}
impl NotRubys for u32 {}

/// For other results.
pub trait Ignore<T> {
    /// The value. An error is dropped: `reason` says why that is right.
    fn ignored(self, reason: &'static str) -> Option<T>;
}

#[expect(clippy::manual_ok_err, reason = "`ok` drops an error without a word")]
impl<T, E: NotRubys> Ignore<T> for Result<T, E> {
    fn ignored(self, _reason: &'static str) -> Option<T> {
        match self {
            Ok(value) => Some(value),
            Err(_error) => None,
        }
    }
}
