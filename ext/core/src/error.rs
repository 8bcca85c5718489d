//! The errors of this crate.

use std::fmt;

use nix::errno::Errno;

/// Every error of this crate. The extension turns it into a Ruby exception, in one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// A system call failed; `call` names it for the message.
    Os {
        /// What the kernel answered.
        errno: Errno,
        /// The system call, as its manual page is named.
        call: &'static str,
    },
    /// A backend that was requested by name is unavailable on this system.
    BackendUnavailable {
        /// The requested name, as users spell it.
        backend: &'static str,
        /// Why it is unavailable, as a clause that follows a colon.
        reason: String,
        /// What is used up, if that is why.
        exhausted: Option<Exhausted>,
    },
}

/// What the process or the machine has none of left. That may pass: what nothing refers to has not been collected yet,
/// and the kernel frees the memory of a closed ring some time after its descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exhausted {
    /// File descriptors.
    Descriptors,
    /// Memory, or what the user may lock of it.
    Memory,
}

impl Exhausted {
    /// What an errno tells of.
    pub fn by(errno: Errno) -> Option<Self> {
        match errno {
            Errno::EMFILE | Errno::ENFILE => Some(Exhausted::Descriptors),
            Errno::ENOMEM => Some(Exhausted::Memory),
            _ => None,
        }
    }
}

impl Error {
    /// Wraps the errno of the system call `call`.
    pub fn os(call: &'static str, errno: Errno) -> Self {
        Error::Os { errno, call }
    }

    /// What is used up, if that is the reason.
    pub fn exhausted(&self) -> Option<Exhausted> {
        match self {
            Error::Os { errno, .. } => Exhausted::by(*errno),
            Error::BackendUnavailable { exhausted, .. } => *exhausted,
        }
    }

    /// Wraps a `std::io::Error` of the system call `call`; one without an errno counts as EIO.
    pub fn io(call: &'static str, error: &std::io::Error) -> Self {
        Error::os(call, Errno::from_raw(error.raw_os_error().unwrap_or(Errno::EIO as i32)))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Os { errno, call } => write!(f, "{call}: {}", errno.desc()),
            Error::BackendUnavailable { backend, reason, .. } => {
                write!(f, "the {backend} backend cannot be had here: {reason}")
            }
        }
    }
}

impl std::error::Error for Error {}

/// The `Result` of this crate.
pub type Result<T> = std::result::Result<T, Error>;
