//! What every backend promises, one behaviour a test, each run over every backend that there is.
//!
//! A backend that cannot be had where the tests run is skipped, and says so.

mod rig;

mod cancelling;
mod closing;
mod forking;
mod readiness;
mod transfers;
mod waiting;
