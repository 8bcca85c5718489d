//! Taking the turn back from a fiber that computes.
//!
//! * [`ticker`] ticks while somebody computes who may be preempted, by a [`signal`] or a native thread ([`timerfd`]).
//!   [`pulse`] is whether it does, [`dispositions`] which signals it may take.
//! * A tick asks Ruby to run the [`job`] at its next safe point. That looks whether somebody else is due, and if so hands
//!   on the turn, right from there: see `scheduler/preempting.rs`, and `run_queue.rs` of the core for who goes next.
//!   Not everywhere, though (see [`safe_points`]), not all the time ([`pace`]), and not while something is about to be
//!   raised ([`unraised`]). While nobody can be due the ticks are put off.
//! * [`guests`] are yielding fibers on threads that have another scheduler, or none.
//!
//! It goes beyond timers whose trap handler calls `Fiber.yield`: it works on any thread, takes
//! no signal away from anybody, and reaches fibers that compute with what is raised into them.

pub mod dispositions;
pub mod guests;
mod job;
pub mod pace;
mod pulse;
pub mod safe_points;
mod signal;
pub mod ticker;
mod timerfd;
pub mod unraised;

use magnus::{Error, Object, RModule, Ruby, Value, function, prelude::*};

use crate::ruby::ractor;

pub use dispositions::parse as parse_signal;
pub use pulse::Pulse;

/// Enters the job, and defines what `lib/heddle/yielding_fiber.rb` is written with.
pub fn define(ruby: &Ruby, heddle: RModule) -> Result<(), Error> {
    job::register();
    guests::define(ruby, heddle)?;
    ractor::safe(|| heddle.define_singleton_method("trapping", function!(dispositions::trapping, 1)))?;
    heddle.define_singleton_method("handles_signal?", function!(dispositions::is_handled, 1))?;
    for name in ["trapping", "handles_signal?"] {
        heddle.funcall::<_, _, Value>("private_class_method", (name,))?;
    }
    Ok(())
}
