//! What Heddle knows of Ruby's insides, which Ruby does not promise to keep: the wording of its errors, names, and where
//! things are.
//!
//! `docs/internals/ruby-insides.md` lists all of it, with what happens where a Ruby differs. `spec/unit/ruby_insides_spec.rb`
//! goes red then: it compares with Ruby what [`describe`] tells.

use magnus::{Error, RArray, RHash, Ruby, Value};

use super::value::PinnedValue;
use super::{frames, masks::Masks, pending_interrupts, thread};

/// Of the FiberError for a fiber that cannot be switched to now: it has resumed another, or has yielded.
pub const REFUSED_TRANSFER: &str = "attempt to transfer to a ";

/// Of the FiberError for `Fiber.yield` in a fiber that no other has resumed.
pub const REFUSED_YIELD: &str = "yield";

/// Of the FiberErrors for a fiber's stack that cannot be had. The last is Ruby 4.1's.
pub const NO_STACK: [&str; 3] = ["can't alloc machine stack", "can't set a guard page", "can't allocate fiber stack"];

/// The FiberError for a fiber that was allocated and not initialized.
pub const UNINITIALIZED: &str = "uninitialized fiber";

/// The IOError in a thread that waits on an IO which another one closes.
pub const CLOSED: &str = "stream closed in another thread";

/// The `IO::TimeoutError`.
pub const TIMED_OUT: &str = "Blocking operation timed out!";

/// What `rb_profile_frame_absolute_path` says of a method that is written in C.
pub const NATIVE_PATH: &str = "<cfunc>";

/// All that can be asked for in a program. Called by a spec alone, as `Heddle::Scheduler.insides`.
pub fn describe(ruby: &Ruby) -> Result<RHash, Error> {
    let innermost = frames::innermost();
    let is_native = innermost.is_some_and(frames::Frame::is_native);
    let name = frames::innermost().and_then(frames::Frame::method_name);
    pending_interrupts::find(ruby)?;
    let current: PinnedValue = thread::current();
    let texts: [(&str, RArray); 6] = [
        ("refused_transfer", ruby.ary_from_iter([REFUSED_TRANSFER])),
        ("refused_yield", ruby.ary_from_iter([REFUSED_YIELD])),
        ("no_stack", ruby.ary_from_iter(NO_STACK)),
        ("uninitialized", ruby.ary_from_iter([UNINITIALIZED])),
        ("closed", ruby.ary_from_iter([CLOSED])),
        ("timed_out", ruby.ary_from_iter([TIMED_OUT])),
    ];
    let hash = ruby.hash_new();
    for (name, texts) in texts {
        hash.aset(ruby.to_symbol(name), texts)?;
    }
    hash.aset(ruby.to_symbol("native_frame"), is_native)?;
    hash.aset(ruby.to_symbol("frame_name"), name)?;
    hash.aset(ruby.to_symbol("pending_list"), pending_interrupts::is_known(current))?;
    hash.aset(ruby.to_symbol("mask_stack"), Masks::of_thread().is_some())?;
    Ok(hash)
}

/// Whether Heddle would take the buffer, which Ruby has passed to a hook, for one that stays in place until the hook ends.
pub fn is_pinned(buffer: Value) -> Result<bool, Error> {
    super::io_buffer::for_reading(buffer).map(|contents| contents.looks_pinned)
}
