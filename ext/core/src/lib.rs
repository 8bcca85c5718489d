//! The parts of Heddle that need no Ruby: the run queue, timers, and the backends that perform I/O.
//!
//! The rooms, from the bottom up. A room imports none of its own floor (`rake imports`).
//!
//! * [`threads`], [`observe`], [`explore`].
//! * [`queue`], [`io`].
//!
//! Outside of them are [`Error`], and `disturbed`: a machine that is busy with other work, for tests.

#[cfg(heddle_disturbed)]
pub mod disturbed;
pub mod error;
pub mod explore;
pub mod io;
pub mod observe;
pub mod queue;
pub mod threads;

pub use error::Error;
pub use io::backend::{Backend, Completion, Interest, Operation, Token};
pub use io::raw_slice::{RawSlice, RawSliceMut};
