//! Heddle's extension: a list of what Ruby gets to see.

#![allow(missing_docs, reason = "a cdylib has no readers outside; its parts are documented all the same")]
#![deny(
    clippy::disallowed_methods,
    clippy::let_underscore_must_use,
    clippy::map_err_ignore,
    clippy::match_wildcard_for_single_variants,
    clippy::unused_result_ok,
    reason = "an error that is dropped without a word may be an interrupt: see ruby/outcome.rs"
)]

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
    ruby::ractor::note_main(ruby);
    hooks::define(ruby, heddle)
}

/// What a forked child does first.
fn in_child() {
    heddle_core::io::process_fd::close_inherited();
    ticker::throttle::reset();
    dump::on_signal::reset();
}
