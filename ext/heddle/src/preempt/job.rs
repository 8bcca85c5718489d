//! The postponed job that Ruby runs at a safe point after a tick.

use magnus::Ruby;
use nix::errno::Errno;

use super::foreign_fibers;
use crate::ruby::postponed_job;
use crate::scheduler::Scheduler;
use crate::ticker::throttle;

struct Tick;

/// Finishes the job when dropped. Restores errno, since the job may have interrupted a C function.
struct FinishJob {
    errno: i32,
}

impl Drop for FinishJob {
    fn drop(&mut self) {
        throttle::end();
        Errno::set_raw(self.errno);
    }
}

impl postponed_job::Job for Tick {
    fn run(ruby: &Ruby) {
        let _finish = FinishJob { errno: Errno::last_raw() };
        throttle::begin();
        match Scheduler::of_thread() {
            Some(scheduler) => scheduler.tick(ruby),
            None => foreign_fibers::tick(ruby),
        }
    }
}

/// Registers the job with Ruby.
pub fn register() {
    postponed_job::register::<Tick>();
}
