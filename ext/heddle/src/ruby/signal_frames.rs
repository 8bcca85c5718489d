//! The frames of Ruby's stack, read in a signal handler: without the allocation and the locks that [`super::frames`]
//! may need.
//!
//! The interrupted thread must hold the GVL, and the collector must not run. Then all that is read here stays as it is:
//! the frames' methods and code are alive, and their paths and names are frozen Strings.

use std::os::raw::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

use magnus::Value;
use magnus::rb_sys::AsRawValue;
use rb_sys::stable_api::{StableApiDefinition, get_default};
use rb_sys::{VALUE, ruby_value_type};

/// The most frames that are read, from the innermost on.
pub const MAX_FRAMES: usize = 200;
const TEXT_SIZE: usize = 1 << 16;
/// The words of a method entry (`rb_callable_method_entry_t`) before its class.
const WORDS_BEFORE_CLASS: usize = 1;
/// The prefix of the paths of Ruby's own methods that are written in Ruby, around C.
const INTERNAL: &[u8] = b"<internal:";

/// Whether method entries have their class where [`WORDS_BEFORE_CLASS`] says.
static KNOWS_CLASSES: AtomicBool = AtomicBool::new(false);

/// A part of [`SignalFrames::text`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Span {
    start: u32,
    length: u32,
}

/// A frame.
#[derive(Debug, Clone, Copy, Default)]
pub struct SignalFrame {
    /// Whether it is a method written in C, or one of Ruby's own.
    pub is_native: bool,
    /// Whether it is a method of a class or module itself.
    pub is_singleton: bool,
    /// Zero for a method written in C.
    pub line: c_int,
    /// Empty for a method written in C.
    pub path: Span,
    /// `block in name` and the like; a C method's name.
    pub label: Span,
    /// The method's name; empty outside of methods.
    pub method: Span,
    /// The name of the class or module that has the method; empty if it has none.
    pub class: Span,
}

/// Memory for what a signal handler reads.
pub struct SignalFrames {
    raw: [VALUE; MAX_FRAMES],
    lines: [c_int; MAX_FRAMES],
    frames: [SignalFrame; MAX_FRAMES],
    count: usize,
    text: [u8; TEXT_SIZE],
    used: usize,
}

impl SignalFrames {
    /// Memory without frames.
    pub const EMPTY: SignalFrames = SignalFrames {
        raw: [0; MAX_FRAMES],
        lines: [0; MAX_FRAMES],
        frames: [SignalFrame {
            is_native: false,
            is_singleton: false,
            line: 0,
            path: Span { start: 0, length: 0 },
            label: Span { start: 0, length: 0 },
            method: Span { start: 0, length: 0 },
            class: Span { start: 0, length: 0 },
        }; MAX_FRAMES],
        count: 0,
        text: [0; TEXT_SIZE],
        used: 0,
    };

    /// The frames that were read, from the innermost on.
    pub fn frames(&self) -> &[SignalFrame] {
        self.frames.get(..self.count).unwrap_or_default()
    }

    /// What a frame's span stands for.
    pub fn text(&self, span: Span) -> &[u8] {
        let start = span.start as usize;
        self.text.get(start..start + span.length as usize).unwrap_or_default()
    }

    /// Forgets the frames.
    pub fn clear(&mut self) {
        (self.count, self.used) = (0, 0);
    }

    /// Reads the current thread's frames.
    ///
    /// # Safety
    /// The thread holds the GVL, [`is_collecting`] is false, and no other code reads or writes this memory.
    pub unsafe fn read(&mut self) {
        self.clear();
        // SAFETY: Ruby made this function for signal handlers. It writes at most so many elements to each array.
        let count = unsafe {
            rb_sys::rb_profile_frames(0, MAX_FRAMES as c_int, self.raw.as_mut_ptr(), self.lines.as_mut_ptr())
        };
        for index in 0..usize::try_from(count).unwrap_or(0).min(MAX_FRAMES) {
            // SAFETY: a frame of the stack, by this function's contract.
            let frame = unsafe { self.copy(self.raw[index], self.lines[index]) };
            self.frames[index] = frame;
            self.count = index + 1;
        }
    }

    /// # Safety
    /// `raw` is a frame of the current thread's stack, and see [`SignalFrames::read`].
    unsafe fn copy(&mut self, raw: VALUE, line: c_int) -> SignalFrame {
        // SAFETY: the functions of Ruby take a frame, read it, and return one of its frozen Strings or nil.
        unsafe {
            let path = self.copy_string(rb_sys::rb_profile_frame_path(raw));
            let method = self.copy_string(rb_sys::rb_profile_frame_method_name(raw));
            let is_in_c = path.length == 0;
            let label = if is_in_c { method } else { self.copy_string(rb_sys::rb_profile_frame_label(raw)) };
            let is_native = is_in_c || self.text(path).starts_with(INTERNAL);
            // Other code, such as a file's, has no method's name.
            let class = if method.length > 0 { class_of(raw) } else { None };
            let is_singleton = class.is_some_and(|(_, is_singleton)| is_singleton);
            // Returns the name as it is stored, or nil.
            let class = class.map_or(Span::default(), |(class, _)| self.copy_string(rb_sys::rb_mod_name(class)));
            SignalFrame { is_native, is_singleton, line, path, label, method, class }
        }
    }

    /// # Safety
    /// A String or nil.
    unsafe fn copy_string(&mut self, string: VALUE) -> Span {
        // SAFETY: by this function's contract; reads the object's flags.
        if !unsafe { rb_sys::RB_TYPE_P(string, ruby_value_type::RUBY_T_STRING) } {
            return Span::default();
        }
        // SAFETY: a String, which no code changes meanwhile.
        let bytes = unsafe {
            let length = usize::try_from(get_default().rstring_len(string)).unwrap_or(0);
            std::slice::from_raw_parts(get_default().rstring_ptr(string).cast::<u8>(), length)
        };
        let Some(free) = self.text.get_mut(self.used..self.used + bytes.len()) else { return Span::default() };
        free.copy_from_slice(bytes);
        let span = Span { start: self.used as u32, length: bytes.len() as u32 };
        self.used += bytes.len();
        span
    }
}

/// The class or module that has the frame's method, and whether it is a method of that object itself.
///
/// # Safety
/// As [`SignalFrames::copy`].
unsafe fn class_of(frame: VALUE) -> Option<(VALUE, bool)> {
    if !KNOWS_CLASSES.load(Ordering::Acquire) {
        return None;
    }
    // SAFETY: the frame is a method entry, or code, whose word at this place is no class. Both are objects with five
    // words. The attached object of a singleton class is read without a check, as Ruby says that it is one.
    unsafe {
        let class = word(frame, WORDS_BEFORE_CLASS);
        if rb_sys::RB_TYPE_P(class, ruby_value_type::RUBY_T_ICLASS) {
            // A module's place among a class's ancestors.
            return Some(((*(class as *const rb_sys::RBasic)).klass, false)).filter(|(module, _)| is_module(*module));
        }
        if !is_module(class) {
            return None;
        }
        if rb_sys::rb_profile_frame_singleton_method_p(frame) != rb_sys::Qtrue as VALUE {
            return Some((class, false));
        }
        Some((rb_sys::rb_class_attached_object(class), true)).filter(|(object, _)| is_module(*object))
    }
}

/// # Safety
/// A valid object.
unsafe fn is_module(object: VALUE) -> bool {
    // SAFETY: reads the object's flags.
    unsafe {
        rb_sys::RB_TYPE_P(object, ruby_value_type::RUBY_T_CLASS)
            || rb_sys::RB_TYPE_P(object, ruby_value_type::RUBY_T_MODULE)
    }
}

/// # Safety
/// `object` has more words than `index`.
unsafe fn word(object: VALUE, index: usize) -> VALUE {
    // SAFETY: by this function's contract.
    unsafe { (object as *const VALUE).add(index).read() }
}

/// Whether the garbage collector runs on the current thread, which holds the GVL. Callable in signal handlers.
pub fn is_collecting() -> bool {
    // SAFETY: only reads a flag.
    unsafe { rb_sys::rb_during_gc() != 0 }
}

/// Checks where method entries have their class. Called within a method of `class` that is written in C.
pub fn learn_layout(class: Value) {
    let mut frame: VALUE = 0;
    let mut line: c_int = 0;
    // SAFETY: called with the GVL; writes one element to each. A frame of such a method is a method entry, an object
    // with five words.
    unsafe {
        let count = rb_sys::rb_profile_frames(0, 1, &raw mut frame, &raw mut line);
        if count == 1 && !rb_sys::SPECIAL_CONST_P(frame) && word(frame, WORDS_BEFORE_CLASS) == class.as_raw() {
            KNOWS_CLASSES.store(true, Ordering::Release);
        }
    }
}

/// Whether [`learn_layout`] has found the classes there.
pub fn knows_classes() -> bool {
    KNOWS_CLASSES.load(Ordering::Acquire)
}
