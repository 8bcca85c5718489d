//! The poll backend's interface to the system's readiness calls.

use std::os::fd::RawFd;
use std::time::Duration;

use nix::errno::Errno;

use crate::backend::Interest;
use crate::error::Result;

/// A descriptor has become ready for what it was armed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// The key of the registration. An outdated key is that of a file that had this number before.
    pub key: usize,
    /// The readiness; all bits after an error or a hang-up.
    pub ready: Interest,
}

/// The system's readiness interface: a set of descriptors, each reported once per `add` or `modify`.
///
/// `wait` is called on one thread at a time; `notify` on any.
pub trait Selector: Send + Sync {
    /// Registers a descriptor for one event.
    ///
    /// # Errors
    /// EEXIST if the descriptor is registered already, EPERM if such a file is always ready, EBADF, ENOMEM, ENOSPC.
    fn add(&self, fd: RawFd, key: usize, interest: Interest) -> std::result::Result<(), Errno>;

    /// Arms a registered descriptor for one more event, replacing its earlier interest.
    ///
    /// # Errors
    /// ENOENT if the number now names a file that is not registered, EPERM if that file is always ready, EBADF.
    fn modify(&self, fd: RawFd, key: usize, interest: Interest) -> std::result::Result<(), Errno>;

    /// Waits for events, a notification, a signal or the end of `timeout`, and appends the events. Never returns
    /// before the end of `timeout` because of rounding.
    ///
    /// # Errors
    /// Those of the system call, except EINTR.
    fn wait(&self, timeout: Option<Duration>, events: &mut Vec<Event>) -> Result<()>;

    /// Ends the present wait, or else the next one.
    fn notify(&self);

    /// For a forked child: from now on `notify` does nothing, and dropping does not affect the parent's registrations.
    fn abandon(&self);
}
