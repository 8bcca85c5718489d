//! Who called.

use magnus::rb_sys::{FromRawValue, protect};
use magnus::{RString, Value};
use rb_sys::VALUE;

/// A frame of Ruby's stack. Valid until the next call into Ruby.
#[derive(Debug, Clone, Copy)]
pub struct Frame(VALUE);

/// The method that called the hook that is running.
pub fn caller() -> Option<Frame> {
    const SKIP_OWN: i32 = 1;
    const ONE: i32 = 1;
    let (mut frame, mut line) = (0 as VALUE, 0);
    // SAFETY: called with the GVL; writes at most one element to each pointer; neither allocates nor raises.
    let count = unsafe { rb_sys::rb_profile_frames(SKIP_OWN, ONE, &mut frame, &mut line) };
    (count == ONE).then_some(Frame(frame))
}

impl Frame {
    /// A number for the method. After a garbage collection it may mean another one.
    pub fn id(self) -> u64 {
        self.0
    }

    /// As Ruby writes it in backtraces: `Zlib::Deflate#deflate`, `Zlib.inflate`.
    pub fn method_name(self) -> Option<String> {
        // SAFETY: the frame is still on Ruby's stack, as Ruby has not been called since; an exception stops at `protect`.
        let name = protect(|| unsafe { rb_sys::rb_profile_frame_qualified_method_name(self.0) }).ok()?;
        // SAFETY: a String or nil.
        RString::from_value(unsafe { Value::from_raw(name) })?.to_string().ok()
    }
}
