//! All of Heddle that needs no Ruby: what waits for what, and how the kernel is asked.
//!
//! The parts, from the bottom up:
//!
//! * [`backend`]: one file per way of asking the kernel (io_uring, readiness), behind one trait.
//! * [`attempt`]: system calls that finish at once or not at all, tried before anything waits.
//! * [`workers`]: a bounded pool of native threads for what the kernel can only do blocking.
//! * [`names`]: addresses of host names, by the system's resolver.
//! * [`mailbox`]: how those threads hand their results back, and [`waker`], how they end a wait.
//! * [`signals`]: what keeps signals from native threads.
//! * `sync`: threads, locks and atomics, which model tests put others in the place of.
//! * [`descriptor_index`]: which operations name which descriptor number.
//! * [`timers`]: deadlines, with a cancel that costs nothing.
//! * [`run_queue`]: who has a turn to come, and in which order.
//! * [`slow_file_backoff`]: which files may be written to at once.
//! * [`files`]: what is known of a file without asking its file system.
//! * [`prefetch`]: fetching memory into the cache before it is needed.
//! * [`budget`]: when a fiber that never has to wait must let the others have a turn.

pub mod backend;
pub mod budget;
pub mod descriptor_index;
pub mod error;
pub mod files;
pub mod mailbox;
pub mod names;
pub mod prefetch;
pub mod run_queue;
pub mod signals;
pub mod slow_file_backoff;
mod sync;
pub mod timers;
pub mod try_io;
pub mod waker;
pub mod workers;

#[cfg(all(test, heddle_models))]
mod models;

pub use backend::{Backend, Completion, Interest, Operation, Token};
pub use error::Error;
