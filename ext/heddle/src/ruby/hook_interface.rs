//! The version of the interface between Ruby and schedulers.
//!
//! It changes in steps, and Ruby's pre-releases carry the steps one by one. So what depends on it is decided by the number
//! that the headers tell, and never by Ruby's version.

/// `RUBY_FIBER_SCHEDULER_VERSION` of `ruby/fiber/scheduler.h`. 2 is that of Ruby 3.3 and 3.4, 3 that of 4.0.
const VERSION: u32 = rb_sys::RUBY_FIBER_SCHEDULER_VERSION;

/// `io_read` and `io_write` are given `(offset, length)` and make a single transfer, of `length` bytes at most. Before, they
/// are given `(length, offset)`, and `length` is the least to transfer.
pub const TRANSFERS_ARE_SINGLE: bool = VERSION >= 4;
