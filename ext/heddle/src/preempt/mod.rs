//! Preempts fibers that compute for too long.
//!
//! * [`tick`]: a ticker asks Ruby to run a postponed job at its next safe point. The job checks whether the root has to
//!   handle interrupts or another fiber is to run, and if so switches to it. `run_queue.rs` of the core decides which
//!   fiber runs.
//! * [`safe_points`] are the places where a fiber can be preempted, and where an exception may be raised.
//! * [`points`] take the place of ticks while a test chooses the schedule.
//! * [`foreign_fibers`] are yielding fibers on threads that have another scheduler, or none.
//! * [`methods`] are the methods that Ruby code calls.
//!
//! Compared with timers whose trap handler calls `Fiber.yield`, this works on any thread and takes no signal away from
//! the program. It also raises the exceptions that other fibers send to a fiber that computes.

mod cooperative_code;
mod foreign_fibers;
mod methods;
mod points;
pub mod safe_points;
mod tick;

use magnus::{Error, RClass, RModule, Ruby};

/// Preregisters the job, and defines the private methods that `lib/heddle` calls.
pub fn define(ruby: &Ruby, heddle: RModule, native: RModule, class: RClass) -> Result<(), Error> {
    tick::preregister_job(ruby);
    foreign_fibers::define(ruby, heddle)?;
    methods::define(ruby, native, class)?;
    points::define(native)
}
