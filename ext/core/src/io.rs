//! What the kernel does for fibers.
//!
//! * [`backend`]: one file per kernel interface (io_uring, readiness), behind one trait.
//! * [`try_io`]: non-blocking system calls, tried before a fiber waits.
//! * [`raw_slice`]: memory for system calls, which other code may use at the same time.
//! * [`operations`]: what backends and workers do for fibers, and the state that each such operation is in.
//! * [`descriptor_index`]: which operations name which descriptor number.
//! * [`files`]: what the kernel tells of a file without asking its file system.
//! * [`slow_file_backoff`]: which files the scheduler's thread writes to itself.
//! * [`busy_poll`]: whether to poll repeatedly before sleeping in the kernel.
//! * [`process_fd`]: descriptors that a forked child closes inside fork(2).

pub mod backend;
pub mod busy_poll;
pub mod descriptor_index;
pub mod files;
pub mod operations;
pub mod process_fd;
pub mod raw_slice;
pub mod slow_file_backoff;
pub mod try_io;
