//! Native threads of ours get no signals: those are for Ruby's threads. A new thread inherits what its parent blocks.

use nix::sys::signal::{SigSet, SigmaskHow, pthread_sigmask};

/// Blocks all signals on this thread until it is dropped.
pub struct SignalsBlocked {
    before: SigSet,
}

impl SignalsBlocked {
    /// Blocks them.
    pub fn new() -> Self {
        let mut before = SigSet::empty();
        // Fails only if the first argument is none of the three there are.
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
