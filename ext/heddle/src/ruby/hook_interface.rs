//! The version of the interface between Ruby and schedulers.
//!
//! Ruby's pre-releases contain the changes of a new version one by one. So code that depends on them checks the number
//! in Ruby's headers, and never Ruby's version.

use magnus::{Error, RClass, Ruby, prelude::*};

/// `RUBY_FIBER_SCHEDULER_VERSION` of `ruby/fiber/scheduler.h`: 2 in Ruby 3.3 and 3.4, 3 in Ruby 4.0.
const VERSION: u32 = rb_sys::RUBY_FIBER_SCHEDULER_VERSION;

/// Whether Ruby passes `(offset, length)` to `io_read` and `io_write`, which make a single transfer of at most `length`
/// bytes. Older versions pass `(length, offset)`, and the hooks transfer at least `length` bytes.
pub const TRANSFERS_ARE_SINGLE: bool = VERSION >= 4;

/// Whether Ruby itself ends the time slice of a fiber that computes, as ruby/ruby#16886 proposes. It calls `yield`
/// then. The proposal adds `Fiber#quantum`.
pub fn has_time_slices(ruby: &Ruby) -> Result<bool, Error> {
    let class: RClass = ruby.class_object().const_get("Fiber")?;
    class.funcall("method_defined?", ("quantum",))
}
