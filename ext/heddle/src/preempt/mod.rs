//! Preempts fibers that compute for too long.
//!
//! * A ticker asks Ruby to run the [`job`] at its next safe point. [`tick`] looks whether another fiber is due, and if so
//!   switches to it, from within the job; `run_queue.rs` of the core decides which one runs.
//! * [`safe_points`] are the places where a fiber can be left, and where an exception may be raised.
//! * [`yield_to_root`] lets the root check the thread's interrupts.
//! * [`foreign_fibers`] are yielding fibers on threads that have another scheduler, or none.
//! * [`trap`] gives a ticker's signal back to a program that wants it. [`methods`] are what Ruby code calls.
//!
//! The technique goes beyond timers whose trap handler calls `Fiber.yield`: it works on any thread, takes no signal away
//! from the program, and reaches fibers that compute with exceptions that other fibers send to them.

mod foreign_fibers;
mod job;
mod methods;
pub mod safe_points;
mod tick;
mod trap;
mod yield_to_root;

use magnus::{Error, Object, RClass, RModule, Ruby, Value, function, prelude::*};

use crate::ruby::ractor;
use crate::ticker::signal_disposition;

/// Registers the job, and defines the private methods that `lib/heddle` is written with.
pub fn define(ruby: &Ruby, heddle: RModule, class: RClass) -> Result<(), Error> {
    job::register();
    foreign_fibers::define(ruby, heddle)?;
    methods::define(class)?;
    ractor::safe(|| heddle.define_singleton_method("trapping", function!(trap::trapping, 1)))?;
    heddle.define_singleton_method("handles_signal?", function!(signal_disposition::is_handled, 1))?;
    for name in ["trapping", "handles_signal?"] {
        heddle.funcall::<_, _, Value>("private_class_method", (name,))?;
    }
    Ok(())
}
