//! Frames of Ruby's stack.

use magnus::gc::Marker;
use magnus::rb_sys::{FromRawValue, protect};
use magnus::{RString, Value};
use rb_sys::VALUE;

use super::insides;
use super::value::PinnedValue;

/// What a frame of Ruby's stack runs: a method's entry, or the code of a block or file. Equal for all frames that run
/// the same. It is an object inside Ruby, which lives as long as the frame, or as it is marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Frame(VALUE);

/// The method that called the current hook, or the function at whose end a postponed job runs.
pub fn caller() -> Option<Frame> {
    /// The innermost frame and its caller's. Ruby 3.3 has no way to skip the first.
    const WANTED: usize = 2;
    let (mut frames, mut lines) = ([0 as VALUE; WANTED], [0; WANTED]);
    // SAFETY: called with the GVL; writes at most so many elements to each array; neither allocates nor raises.
    let count = unsafe { rb_sys::rb_profile_frames(0, WANTED as i32, frames.as_mut_ptr(), lines.as_mut_ptr()) };
    (count == WANTED as i32).then_some(Frame(frames[1]))
}

/// The innermost frame.
pub fn innermost() -> Option<Frame> {
    let (mut frame, mut line) = (0 as VALUE, 0);
    // SAFETY: as in `caller`; one element is written to each.
    let count = unsafe { rb_sys::rb_profile_frames(0, 1, &raw mut frame, &raw mut line) };
    (count == 1).then_some(Frame(frame))
}

/// The innermost frame of another thread, which waits for the GVL or has released it.
pub fn innermost_of(thread: PinnedValue) -> Option<Frame> {
    let (mut frame, mut line) = (0 as VALUE, 0);
    // SAFETY: called with the GVL on a thread object, whose stack therefore stays as it is; as in `innermost`.
    let count = unsafe { rb_sys::rb_profile_thread_frames(thread.raw(), 0, 1, &raw mut frame, &raw mut line) };
    (count == 1).then_some(Frame(frame))
}

impl Frame {
    /// Whether it is a method written in C.
    pub fn is_native(self) -> bool {
        // SAFETY: the frame is still on Ruby's stack, as Ruby has not been called since; an exception stops at
        // `protect`.
        let path = protect(|| unsafe { rb_sys::rb_profile_frame_absolute_path(self.0) }).ok();
        // SAFETY: a String or nil.
        let path = path.and_then(|path| RString::from_value(unsafe { Value::from_raw(path) }));
        path.is_some_and(|path| path.to_string().is_ok_and(|path| path == insides::NATIVE_PATH))
    }

    /// Tells the garbage collector that the object is in use and must stay in place. Profilers do the same with what
    /// `rb_profile_frames` has given them.
    pub fn mark(self, marker: &Marker) {
        // SAFETY: what `rb_profile_frames` returns are objects, and this one has been marked ever since.
        marker.mark(unsafe { Value::from_raw(self.0) });
    }

    /// As Ruby writes it in backtraces: `Zlib::Deflate#deflate`, `Zlib.inflate`.
    pub fn method_name(self) -> Option<String> {
        // SAFETY: the frame is still on Ruby's stack, as Ruby has not been called since; an exception stops at
        // `protect`.
        let name = protect(|| unsafe { rb_sys::rb_profile_frame_qualified_method_name(self.0) }).ok()?;
        // SAFETY: a String or nil.
        RString::from_value(unsafe { Value::from_raw(name) })?.to_string().ok()
    }
}
