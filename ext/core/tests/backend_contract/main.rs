//! The contract of all backends, one behaviour per test, each run over every backend.
//!
//! The tests of a backend that is unavailable are skipped, with a message.

mod rig;

mod cancelling;
mod closing;
mod forking;
mod readiness;
mod transfers;
mod waiting;
