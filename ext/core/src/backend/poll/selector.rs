//! What the poll backend needs to know of the system's readiness interface.

use std::os::fd::RawFd;
use std::time::Duration;

use nix::errno::Errno;

use crate::backend::Interest;
use crate::error::Result;

/// A descriptor has become ready, as far as it was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// The key of the registration. One that is out of date belongs to a file that had this number before.
    pub key: usize,
    /// What is ready; everything after an error or a hang-up.
    pub ready: Interest,
}

/// The system's readiness interface: a set of descriptors, each reported once per `add` or `modify`.
///
/// `wait` is called on one thread at a time; `notify` on any.
pub trait Selector: Send + Sync {
    /// Registers a descriptor for one event.
    ///
    /// # Errors
    /// EEXIST if it is registered already, EPERM if such a file is always ready, EBADF, ENOMEM, ENOSPC.
    fn add(&self, fd: RawFd, key: usize, interest: Interest) -> std::result::Result<(), Errno>;

    /// Asks for one more event of a registered descriptor, instead of what was asked for before.
    ///
    /// # Errors
    /// ENOENT if this number now belongs to a file that is not registered, EPERM if to one that is always ready, EBADF.
    fn modify(&self, fd: RawFd, key: usize, interest: Interest) -> std::result::Result<(), Errno>;

    /// Waits for events, a notification, a signal or the end of `timeout`, and appends the events. Never returns
    /// before the end of `timeout` because of rounding.
    ///
    /// # Errors
    /// What the system call says, but for EINTR.
    fn wait(&self, timeout: Option<Duration>, events: &mut Vec<Event>) -> Result<()>;

    /// Ends the wait that is under way, or else the next one.
    fn notify(&self);

    /// In a forked child: from now on `notify` does nothing, and dropping leaves the parent's registrations alone.
    fn abandon(&self);
}
