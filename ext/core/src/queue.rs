//! Which fiber runs next, and how long.
//!
//! * [`run_queue`]: which fibers are runnable, and in which order they run.
//! * [`timers`]: deadlines that are cheap to cancel.
//! * [`budget`]: when a fiber that never has to wait must yield.
//! * [`tick`]: what a tick does to the fiber that runs.
//! * [`tick_spacing`]: how often a tick looks whether a fiber is to be preempted.
//! * [`cooperative`]: whose code is not preempted.
//! * [`end_request`]: how long a fiber that is asked to end may take for that.
//! * [`raise_phase`]: when an exception that a fiber has swallowed is raised again.
//! * [`prefetch`]: fetching memory into the cache before it is needed.

pub mod budget;
pub mod cooperative;
pub mod end_request;
pub mod prefetch;
pub mod raise_phase;
pub mod run_queue;
pub mod tick;
pub mod tick_spacing;
pub mod timers;
