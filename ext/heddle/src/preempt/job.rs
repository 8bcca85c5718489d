//! What Ruby runs at a safe point after a tick.

use magnus::Ruby;
use magnus::typed_data::Obj;
use magnus::{TryConvert, prelude::*};

use super::{guests, pace};
use crate::ruby::{fiber, postponed_job};
use crate::scheduler::Scheduler;

struct Tick;

/// The job is over when this is dropped.
struct Over;

impl Drop for Over {
    fn drop(&mut self) {
        pace::end();
    }
}

impl postponed_job::Job for Tick {
    fn run(ruby: &Ruby) {
        let _over = Over;
        pace::begin();
        let scheduler = fiber::scheduler();
        if scheduler.is_nil() {
            return guests::tick(ruby);
        }
        match Obj::<Scheduler>::try_convert(scheduler) {
            Ok(scheduler) => scheduler.tick(ruby),
            Err(_) => guests::tick(ruby),
        }
    }
}

/// Enters the job into Ruby's table.
pub fn register() {
    postponed_job::register::<Tick>();
}
