//! Blocking signals on Heddle's native threads, as Ruby's handlers must run on Ruby's threads. A new thread inherits
//! the mask of its creator.
//!
//! The signals by which the kernel reports a fault of the thread itself stay unblocked. Blocked, they would end the
//! process without Ruby's report of the crash.

use nix::sys::signal::{SigSet, SigmaskHow, Signal, pthread_sigmask};

/// Raised by the instruction that the thread executes, or by `abort`.
const SYNCHRONOUS: [Signal; 7] =
    [Signal::SIGABRT, Signal::SIGBUS, Signal::SIGFPE, Signal::SIGILL, Signal::SIGSEGV, Signal::SIGSYS, Signal::SIGTRAP];

/// Blocks all asynchronous signals on the current thread until this is dropped.
pub struct SignalsBlocked {
    before: SigSet,
}

impl SignalsBlocked {
    /// Blocks them.
    pub fn new() -> Self {
        let mut asynchronous = SigSet::all();
        SYNCHRONOUS.into_iter().for_each(|signal| asynchronous.remove(signal));
        let mut before = SigSet::empty();
        // Fails only for an invalid first argument.
        let _ = pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&asynchronous), Some(&mut before));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_of_the_thread_is_not_blocked() {
        let blocked = SignalsBlocked::new();
        let mask = SigSet::thread_get_mask().unwrap();
        drop(blocked);
        assert!(mask.contains(Signal::SIGTERM) && mask.contains(Signal::SIGUSR2));
        assert!(!SYNCHRONOUS.into_iter().any(|signal| mask.contains(signal)));
    }
}
