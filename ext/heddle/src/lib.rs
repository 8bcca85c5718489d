//! Heddle's extension: a list of what Ruby gets to see.

#![allow(missing_docs, reason = "a cdylib has no readers outside; its parts are documented all the same")]

mod capture;
mod dump;
mod hooks;
mod io;
mod preempt;
mod ruby;
mod scheduler;
mod tasks;
mod ticker;
mod trace;

use magnus::{Error, Ruby};

#[magnus::init(name = "heddle")]
fn init(ruby: &Ruby) -> Result<(), Error> {
    let heddle = ruby.define_module("Heddle")?;
    ruby::fork::watch(in_child);
    ruby::ractor::note_main();
    hooks::define(ruby, heddle)
}

/// What a forked child does first.
fn in_child() {
    ticker::throttle::reset();
    ruby::gvl_holder::reset();
    capture::reset();
    scheduler::stalls::reset();
}
