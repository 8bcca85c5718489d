//! Frames of Ruby's stack.

use std::marker::PhantomData;

use magnus::gc::Marker;
use magnus::rb_sys::{AsRawValue, FromRawValue, protect};
use magnus::{Error, RString, Ruby, Value};
use rb_sys::VALUE;

use super::gvl::assert_stays_with_gvl;
use super::insides;
use super::outcome::RubyOutcome;

/// What a frame of Ruby's stack runs: a method's entry, or the code of a block or file. Equal for all frames that run
/// the same. It is an object inside Ruby, which lives as long as the frame, or as it is marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Frame(VALUE, PhantomData<*mut ()>);

assert_stays_with_gvl!(Frame);

/// The method that called the current hook, or the function at whose end a postponed job runs.
pub fn caller(ruby: &Ruby) -> Option<Frame> {
    callers::<2>(ruby).next()
}

/// The methods of the `WANTED` innermost frames but the first: the callers of the current hook, from the inside.
pub fn callers<const WANTED: usize>(_: &Ruby) -> impl Iterator<Item = Frame> {
    let (mut frames, mut lines) = ([0 as VALUE; WANTED], [0; WANTED]);
    // SAFETY: called with the GVL; writes at most so many elements to each array; neither allocates nor raises.
    let count = unsafe { rb_sys::rb_profile_frames(0, WANTED as i32, frames.as_mut_ptr(), lines.as_mut_ptr()) };
    // Ruby 3.3 has no way to skip the first frame.
    let callers = frames.into_iter().take(count.max(0) as usize).skip(1);
    callers.map(|frame| Frame(frame, PhantomData))
}

/// The innermost frame.
pub fn innermost(_: &Ruby) -> Option<Frame> {
    let (mut frame, mut line) = (0 as VALUE, 0);
    // SAFETY: as in `caller`; one element is written to each.
    let count = unsafe { rb_sys::rb_profile_frames(0, 1, &raw mut frame, &raw mut line) };
    (count == 1).then_some(Frame(frame, PhantomData))
}

/// What `judge` says of the first frame, from the inside, of which it says anything. It is asked for the file's path: the
/// absolute one, or what Ruby has in its place.
pub fn find_by_path<T>(_: &Ruby, mut judge: impl FnMut(&str) -> Option<T>) -> Option<T> {
    /// Deeper frames are not looked at.
    const MOST: usize = 256;
    let (mut frames, mut lines) = ([0 as VALUE; MOST], [0; MOST]);
    // SAFETY: as in `callers`.
    let count = unsafe { rb_sys::rb_profile_frames(0, MOST as i32, frames.as_mut_ptr(), lines.as_mut_ptr()) };
    let frames = frames.into_iter().take(count.max(0) as usize).map(|frame| Frame(frame, PhantomData));
    frames.filter_map(Frame::path).find_map(|path| judge(&path))
}

/// The lines of the current thread's backtrace, an Array of Strings.
///
/// # Errors
/// NoMemoryError.
pub fn backtrace(_: &Ruby) -> Result<Value, Error> {
    // SAFETY: called with the GVL; an exception stops at `protect`.
    let lines = protect(|| unsafe { rb_sys::rb_make_backtrace() })?;
    // SAFETY: what Ruby has just returned is a valid object.
    Ok(unsafe { Value::from_raw(lines) })
}

/// The innermost frame of another thread, which waits for the GVL or has released it.
pub fn innermost_of(thread: Value) -> Option<Frame> {
    let (mut frame, mut line) = (0 as VALUE, 0);
    // SAFETY: called with the GVL on a thread object, whose stack therefore stays as it is; as in `innermost`.
    let count = unsafe { rb_sys::rb_profile_thread_frames(thread.as_raw(), 0, 1, &raw mut frame, &raw mut line) };
    (count == 1).then_some(Frame(frame, PhantomData))
}

impl Frame {
    /// The method's name, if it is written in C: see [`Frame::method_name`].
    pub fn native_method(self) -> Option<String> {
        if self.is_native() { self.method_name() } else { None }
    }

    /// Whether it is a method written in C.
    pub fn is_native(self) -> bool {
        self.path().is_some_and(|path| path == insides::NATIVE_PATH)
    }

    /// The absolute path of its file; of what has none, what backtraces say in its place.
    fn path(self) -> Option<String> {
        let functions = [rb_sys::rb_profile_frame_absolute_path, rb_sys::rb_profile_frame_path];
        functions.into_iter().find_map(|function| {
            // SAFETY: the frame is still on Ruby's stack, as Ruby has not been called since; an exception stops at
            // `protect`.
            let path = protect(|| unsafe { function(self.0) }).not_an_interrupt("no memory")?;
            // SAFETY: a String or nil.
            RString::from_value(unsafe { Value::from_raw(path) })?.to_string().not_an_interrupt("no UTF-8")
        })
    }

    /// Whether it runs code of the program or of a library written in Ruby, and not of Ruby itself.
    pub fn is_of_program(self) -> bool {
        self.path().is_some_and(|path| path != insides::NATIVE_PATH && !path.starts_with(insides::OWN_PATHS))
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
        let name = protect(|| unsafe { rb_sys::rb_profile_frame_qualified_method_name(self.0) });
        let name = name.not_an_interrupt("no memory")?;
        // SAFETY: a String or nil.
        RString::from_value(unsafe { Value::from_raw(name) })?.to_string().not_an_interrupt("no UTF-8")
    }
}
