//! What threads share and wait by: the standard library's, or, for the model tests, loom's, which tries every order in
//! which threads can come to see each other's steps.

#[cfg(not(heddle_models))]
mod primitives {
    pub use std::sync::{Condvar, Mutex, MutexGuard, atomic};
    pub use std::thread::{self, park_timeout};
}

#[cfg(heddle_models)]
mod primitives {
    pub use loom::sync::{Condvar, Mutex, MutexGuard, atomic};
    pub use loom::thread;

    /// A model has no time: what needs the timeout to end is stuck, and loom says so.
    pub fn park_timeout(_timeout: std::time::Duration) {
        thread::park();
    }
}

pub use primitives::*;
