//! `blocking_operation_wait`: work that Ruby would do without the GVL, and that somebody else might do meanwhile.

use magnus::{Error, Ruby, Value, prelude::*};

use crate::scheduler::Scheduler;

/// Does the work, in place.
pub fn blocking_operation_wait(_: &Ruby, _: &Scheduler, work: Value) -> Result<Value, Error> {
    work.funcall("call", ())
}
