//! The parts of Heddle that need no Ruby: the run queue, timers, and the backends that perform I/O.
//!
//! The parts, from the bottom up:
//!
//! * [`backend`]: one file per kernel interface (io_uring, readiness), behind one trait.
//! * [`try_io`]: non-blocking system calls, tried before a fiber waits.
//! * [`raw_slice`]: memory for system calls, which other code may use at the same time.
//! * [`workers`]: a bounded pool of native threads for calls that block.
//! * [`names`]: addresses of host names, by the system's resolver.
//! * [`mailbox`]: how those threads return their results, and [`waker`], how they end a wait.
//! * [`signals`]: blocking signals on native threads.
//! * `sync`: threads, locks and atomics, which model tests replace.
//! * [`descriptor_index`]: which operations name which descriptor number.
//! * [`timers`]: deadlines that are cheap to cancel.
//! * [`run_queue`]: which fibers are runnable, and in which order they run.
//! * [`timing`]: how long fibers wait in the run queue and run, counted in a [`histogram`].
//! * [`stall_watch`]: detects time slices that are too long. [`stall_causes`]: counts and limits their reports.
//! * [`outbox`]: what a native thread passes to a Ruby thread. [`machine_code`]: which function code belongs to.
//! * [`trace`]: records all of this for a while.
//! * [`slow_file_backoff`]: which files the scheduler's thread writes to itself.
//! * [`files`]: what the kernel tells of a file without asking its file system.
//! * [`prefetch`]: fetching memory into the cache before it is needed.
//! * [`budget`]: when a fiber that never has to wait must yield.

pub mod backend;
pub mod budget;
pub mod descriptor_index;
pub mod error;
pub mod files;
pub mod histogram;
pub mod machine_code;
pub mod mailbox;
pub mod names;
pub mod outbox;
pub mod prefetch;
pub mod raw_slice;
pub mod run_queue;
pub mod signals;
pub mod slow_file_backoff;
pub mod stall_causes;
pub mod stall_watch;
mod sync;
pub mod timers;
pub mod timing;
pub mod trace;
pub mod try_io;
pub mod waker;
pub mod workers;

#[cfg(all(test, heddle_models))]
mod models;

pub use backend::{Backend, Completion, Interest, Operation, Token};
pub use error::Error;
pub use raw_slice::{RawSlice, RawSliceMut};
