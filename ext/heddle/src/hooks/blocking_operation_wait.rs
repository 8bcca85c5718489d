//! `blocking_operation_wait`: work that Ruby does without the GVL, and that another thread might do meanwhile.
//!
//! Ruby asks before each `stat` and before each compression of a megabyte alike, 288 times in one `require` that fails.
//! Handing a `stat` to a thread costs many times what it takes. So it is done for the methods that are known to work long,
//! and for nothing else.
//!
//! Ruby 3.4 gives the work as a Proc which, called in a fiber, asks again, and there is no way to decline. Asking alone
//! would make a `require` slower, so there the hook does not exist, as Ruby allows. Ruby 3.3 never asks.

use magnus::{Error, RModule, Ruby, Value, prelude::*};

use crate::ruby::call_sites::CallSites;
use crate::scheduler::Scheduler;

/// Does the work in a thread if it is known to take long, else leaves it to Ruby, which does it in place. The threads
/// are Ruby's, not our own: the work wants one of those to run on.
pub fn blocking_operation_wait(ruby: &Ruby, scheduler: &Scheduler, work: Value) -> Result<Value, Error> {
    if !scheduler.io.closes_remote.take() && !CallSites::traits(&scheduler.io.call_sites).takes_long {
        return Ok(ruby.qnil().as_value());
    }
    let helper: RModule = ruby.class_object().const_get::<_, RModule>("Heddle")?.const_get("BlockingWork")?;
    let most = scheduler.options.borrow().workers;
    helper.funcall("in_thread", (work, most))
}
