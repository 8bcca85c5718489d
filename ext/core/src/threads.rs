//! Native threads that work for the scheduler's.
//!
//! * [`workers`]: a bounded pool of native threads for calls that block.
//! * [`host_names`]: addresses of host names, by the system's resolver.
//! * [`mailbox`]: how those threads return their results, and [`waker`], how they end a wait.
//! * [`timer_slack`]: waits that end on time.
//! * [`native_thread`]: starting one. [`signals`]: blocking signals on it.
//! * [`next_tick`]: before which time a ticker does not tick. [`throttle`]: until when ticks are suppressed.
//! * [`locking`]: locks that survive a panic.
//! * `sync`: threads, locks and atomics, which model tests (`models`) replace.

pub mod host_names;
pub mod locking;
pub mod mailbox;
#[cfg(all(test, heddle_models))]
mod models;
pub mod native_thread;
pub mod next_tick;
pub mod signals;
mod sync;
pub mod throttle;
pub mod timer_slack;
pub mod waker;
pub mod workers;
