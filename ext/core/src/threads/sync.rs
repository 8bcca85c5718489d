//! Synchronization primitives: the standard library's or, for the model tests, loom's, which tries every interleaving
//! of the threads.

#[cfg(not(heddle_models))]
mod primitives {
    pub use std::sync::{Condvar, Mutex, MutexGuard, atomic};
    pub use std::thread::{self, park_timeout};
}

#[cfg(heddle_models)]
mod primitives {
    pub use loom::sync::{Condvar, Mutex, MutexGuard, atomic};
    pub use loom::thread;

    /// A model has no clock. A park that only the timeout would end is a deadlock, which loom reports.
    pub fn park_timeout(_timeout: std::time::Duration) {
        thread::park();
    }
}

pub use primitives::*;
