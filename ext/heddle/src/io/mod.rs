//! Reading, writing and waiting for descriptors.
//!
//! * [`descriptors`]: which operations use which descriptor number, and closing.
//! * [`leaving`]: how fibers leave a number that is being closed.
//! * [`transfer`]: the path of a read or a write. [`strategies`]: at once, by the backend, or by a worker thread.
//! * [`buffer_slice`]: its memory. [`operation`]: its life in the backend.
//! * [`readiness`], [`select`]: waiting until descriptors are ready.
//! * [`name_threads`]: jobs for the threads that look up host names.

pub mod buffer_slice;
pub mod descriptors;
mod leaving;
pub mod name_threads;
pub mod operation;
pub mod readiness;
pub mod select;
pub mod strategies;
pub mod transfer;
