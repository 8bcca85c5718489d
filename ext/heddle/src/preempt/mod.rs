//! Preempts fibers that compute for too long.
//!
//! * A ticker asks Ruby to run the [`job`] at its next safe point. [`tick`] checks whether another fiber is due, and
//!   if so switches to it, from within the job. `run_queue.rs` of the core decides which fiber runs.
//! * [`safe_points`] are the places where a fiber can be preempted, and where an exception may be raised.
//! * [`yield_to_root`] lets the root check the thread's interrupts.
//! * [`foreign_fibers`] are yielding fibers on threads that have another scheduler, or none.
//! * [`trap`] releases a ticker's signal when the program traps it. [`methods`] are the methods that Ruby code calls.
//!
//! Compared with timers whose trap handler calls `Fiber.yield`, this works on any thread and takes no signal away from
//! the program. It also raises the exceptions that other fibers send to a fiber that computes.

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

/// Registers the job, and defines the private methods that `lib/heddle` calls.
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
