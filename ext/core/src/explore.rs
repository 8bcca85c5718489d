//! The schedules of tests, and how long a test's clock waits. A scheduler that no test commands calls nothing of it.
//!
//! * [`exploration`]: the decisions of one run: which fiber is next, and where a fiber is preempted.
//! * [`strategy`]: how they are made.
//! * [`outside_wait`]: how long a virtual clock waits for what may come from outside of the thread.

pub mod exploration;
pub mod outside_wait;
pub mod strategy;
