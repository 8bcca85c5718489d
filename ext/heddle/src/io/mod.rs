//! Reading, writing and waiting for descriptors.
//!
//! * [`descriptors`]: which operations use which descriptor number, and closing.
//! * [`transfer`]: a read or a write. [`read_write`]: the path of each. [`strategies`]: by a system call, the backend,
//!   or a worker thread.
//! * [`buffer_slice`]: the memory of a transfer. [`operation`]: the states of a transfer in the backend.
//! * [`readiness`], [`select`]: waiting until descriptors are ready.
//! * [`name_threads`]: jobs for the threads that look up host names.

pub mod buffer_slice;
pub mod descriptors;
pub mod name_threads;
pub mod operation;
pub mod read_write;
pub mod readiness;
pub mod select;
pub mod strategies;
pub mod transfer;
