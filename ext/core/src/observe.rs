//! What fibers do, counted and recorded.
//!
//! * [`accounting`]: what fibers spend their time on, for each fiber and each name.
//! * [`timing`]: how long fibers wait in the run queue and run, counted in a [`histogram`].
//! * [`stall_watch`]: detects time slices that are too long.
//! * [`trace`]: records all of this for a while.
//! * [`map_limit`]: a warning before a process has no memory map left for a fiber's stack.

pub mod accounting;
pub mod histogram;
pub mod map_limit;
pub mod stall_watch;
pub mod timing;
pub mod trace;
