//! The internals of Ruby on which Heddle depends although Ruby may change them: the wording of errors, names, and
//! structures.
//!
//! `docs/internals/ruby-insides.md` lists all of them, with the consequences on a Ruby that differs.
//! `spec/project/ruby_insides_spec.rb` fails on such a Ruby, as it compares the result of [`describe`] with Ruby.

use magnus::{Error, RArray, RHash, Ruby, Value};

use super::{frames, masks::Masks, pending_interrupts, thread};

/// In the FiberError for a switch to a fiber that has resumed another one, or has yielded.
pub const REFUSED_TRANSFER: &str = "attempt to transfer to a ";

/// In the FiberError for `Fiber.yield` in a fiber that no other fiber has resumed.
pub const REFUSED_YIELD: &str = "yield";

/// In the FiberErrors for a fiber's stack that cannot be allocated. The last is Ruby 4.1's.
pub const NO_STACK: [&str; 3] = ["can't alloc machine stack", "can't set a guard page", "can't allocate fiber stack"];

/// The message of the FiberError for a fiber that was allocated and not initialized.
pub const UNINITIALIZED: &str = "uninitialized fiber";

/// The message of the IOError in a thread that waits on an IO which another thread closes.
pub const CLOSED: &str = "stream closed in another thread";

/// The message of `IO::TimeoutError`.
pub const TIMED_OUT: &str = "Blocking operation timed out!";

/// What `rb_profile_frame_absolute_path` and `rb_profile_frame_path` return for a method written in C.
pub const NATIVE_PATH: &str = "<cfunc>";

/// How the path begins of a method that is part of Ruby and written in Ruby.
pub const OWN_PATHS: &str = "<internal:";

/// Those internals that a program can check. Only a spec calls this, as `Heddle::Scheduler.insides`.
pub fn describe(ruby: &Ruby) -> Result<RHash, Error> {
    let innermost = frames::innermost(ruby);
    let is_native = innermost.is_some_and(frames::Frame::is_native);
    let name = frames::innermost(ruby).and_then(frames::Frame::method_name);
    pending_interrupts::find(ruby)?;
    let current = thread::current(ruby);
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
    hash.aset(ruby.to_symbol("mask_stack"), Masks::of_thread(ruby).is_some())?;
    Ok(hash)
}

/// Whether Heddle assumes that the buffer, which Ruby has passed to a hook, stays in place until the hook ends.
pub fn is_pinned(buffer: Value) -> Result<bool, Error> {
    super::io_buffer::contents(buffer, false).map(|contents| contents.looks_pinned)
}
