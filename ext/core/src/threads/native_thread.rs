//! Threads of the extension that Ruby does not know. Clippy refuses `std::thread` there, so this is the only way to
//! start one.

use std::io;
use std::thread::{Builder, JoinHandle};

use crate::threads::signals::SignalsBlocked;

/// Starts a native thread, in which asynchronous signals are blocked.
///
/// `run` never holds Ruby's lock (the GVL). So it may use the memory that it owns, and this crate, but no Ruby object,
/// and of the extension's module `ruby` only what is documented to need no lock, such as `postponed_job::trigger`. The
/// bound `Send` keeps out handles of Ruby's, which are not.
///
/// # Errors
/// There is no memory for a thread, or the process has as many as it may.
pub fn spawn<F>(name: &str, run: F) -> io::Result<JoinHandle<()>>
where
    F: FnOnce() + Send + 'static,
{
    // A thread inherits the mask of its creator, so signals are blocked in it from its very start.
    let _blocked = SignalsBlocked::new();
    Builder::new().name(name.to_owned()).spawn(run)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use nix::sys::signal::{SigSet, Signal};

    use super::spawn;

    #[test]
    fn a_native_thread_has_its_name_and_blocks_signals() {
        let (sender, receiver) = mpsc::channel();
        let run = move || {
            let name = std::thread::current().name().map(str::to_owned);
            let mask = SigSet::thread_get_mask().unwrap();
            sender.send((name, mask.contains(Signal::SIGTERM))).unwrap();
        };
        spawn("heddle test", run).unwrap().join().unwrap();
        assert_eq!(receiver.recv().unwrap(), (Some("heddle test".to_owned()), true));
    }
}
