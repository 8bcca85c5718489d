//! Blocking signals on Heddle's native threads, as Ruby's handlers must run on Ruby's threads. A new thread inherits
//! the mask of its creator.

use nix::sys::signal::{SigSet, SigmaskHow, pthread_sigmask};

/// Blocks all signals on the current thread until this is dropped.
pub struct SignalsBlocked {
    before: SigSet,
}

impl SignalsBlocked {
    /// Blocks them.
    pub fn new() -> Self {
        let mut before = SigSet::empty();
        // Fails only for an invalid first argument.
        let _ = pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), Some(&mut before));
        SignalsBlocked { before }
    }
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        let _ = pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&self.before), None);
    }
}

impl Default for SignalsBlocked {
    fn default() -> Self {
        SignalsBlocked::new()
    }
}
