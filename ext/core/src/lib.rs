//! The parts of Heddle that need no Ruby: the run queue, timers, and the backends that perform I/O.
//!
//! The parts, from the bottom up:
//!
//! * [`backend`]: one file per kernel interface (io_uring, readiness), behind one trait.
//! * [`try_io`]: non-blocking system calls, tried before a fiber waits.
//! * [`raw_slice`]: memory for system calls, which other code may use at the same time.
//! * [`workers`]: a bounded pool of native threads for calls that block.
//! * [`locking`]: locks that survive a panic.
//! * [`names`]: addresses of host names, by the system's resolver.
//! * [`mailbox`]: how those threads return their results, and [`waker`], how they end a wait.
//! * [`signals`]: blocking signals on native threads. [`native_thread`]: starting one.
//! * `sync`: threads, locks and atomics, which model tests replace.
//! * [`descriptor_index`]: which operations name which descriptor number.
//! * [`operations`]: what backends and workers do for fibers, and the state that each such operation is in.
//! * [`timers`]: deadlines that are cheap to cancel.
//! * [`run_queue`]: which fibers are runnable, and in which order they run.
//! * [`exploration`]: chooses the schedule of a test.
//! * [`timing`]: how long fibers wait in the run queue and run, counted in a [`histogram`].
//! * [`accounting`]: what fibers spend their time on, for each fiber and each name.
//! * [`stall_watch`]: detects time slices that are too long.
//! * [`trace`]: records all of this for a while.
//! * [`slow_file_backoff`]: which files the scheduler's thread writes to itself.
//! * [`files`]: what the kernel tells of a file without asking its file system.
//! * [`process_fd`]: descriptors that a forked child closes inside fork(2).
//! * [`map_limit`]: a warning before a process has no memory map left for a fiber's stack.
//! * [`prefetch`]: fetching memory into the cache before it is needed.
//! * [`end_request`]: how long a fiber that is asked to end may take for that.
//! * [`budget`]: when a fiber that never has to wait must yield.
//! * [`cooperative`]: whose code is not preempted.
//! * [`busy_poll`]: whether to poll repeatedly before sleeping in the kernel.
//! * `disturbed`: a machine that is busy with other work, for tests.

pub mod accounting;
pub mod backend;
pub mod budget;
pub mod busy_poll;
pub mod cooperative;
pub mod descriptor_index;
#[cfg(heddle_disturbed)]
pub mod disturbed;
pub mod end_request;
pub mod error;
pub mod exploration;
pub mod files;
pub mod histogram;
pub mod locking;
pub mod mailbox;
pub mod map_limit;
pub mod names;
pub mod native_thread;
pub mod operations;
pub mod prefetch;
pub mod process_fd;
pub mod raw_slice;
pub mod run_queue;
pub mod signals;
pub mod slow_file_backoff;
pub mod stall_watch;
mod sync;
pub mod tick_spacing;
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
