//! The internals of Ruby on which Heddle depends although Ruby may change them: the wording of errors, names, and
//! structures.
//!
//! `docs/internals/ruby-insides.md` lists all of them, with the consequences on a Ruby that differs.
//! `spec/project/ruby_insides_spec.rb` fails on such a Ruby, as it compares the result of `Heddle::Native.insides` with
//! Ruby.

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
