//! `blocking_operation_wait`: work without the GVL, which another thread can do while other fibers run.
//!
//! Ruby calls the hook before a `stat` as well as before the compression of a megabyte, 288 times in one failing
//! `require`. Passing a `stat` to a thread costs many times as much as the call. So only methods that are known to take
//! long use a thread.
//!
//! Ruby 3.4 passes a Proc that calls the hook again when called in a fiber, so the hook cannot decline. Calling it
//! alone would make `require` slower. So the hook does not exist there, which Ruby allows. Ruby 3.3 never calls it.

use magnus::{Error, RModule, Ruby, Value, prelude::*};

use crate::ruby::call_sites::CallSites;
use crate::ruby::constant::Constant;
use crate::scheduler::Scheduler;

/// Does the work in a thread if it is known to take long. Otherwise returns nil, and Ruby does it in the current
/// thread. The threads are Ruby's and not Heddle's, as the work may need a Ruby thread.
pub fn blocking_operation_wait(ruby: &Ruby, scheduler: &Scheduler, work: Value) -> Result<Value, Error> {
    if !scheduler.io.closes_remote.take() && !CallSites::traits(ruby, &scheduler.io.call_sites).takes_long {
        return Ok(ruby.qnil().as_value());
    }
    static HELPER: Constant = Constant::new(&["Heddle", "BlockingWork"]);
    let max_threads = scheduler.options.borrow().workers;
    HELPER.get::<RModule>(ruby)?.funcall("in_thread", (work, max_threads))
}
