//! Where a thread is that holds the GVL and does not release it, as it runs C code.
//!
//! No Ruby code can run meanwhile. So a native thread sends a [`signal`] to that thread, whose handler copies the
//! frames of Ruby's stack; the handler runs on the thread itself, so the stack stands still. The thread then continues
//! where it was. A thread that waits in a system call which the signal would end is left alone: [`system_call`].

mod frames;
mod signal;
mod system_call;

use heddle_core::machine_code;
use libc::pid_t;
use magnus::Ruby;

use crate::ruby::gvl_holder;

pub use self::frames::Frame;
pub use self::signal::reset;

/// Which files belong to what.
#[derive(Debug, Clone, Default)]
pub struct Folders {
    /// The folder of Heddle's own files, if these are to be left out. A file's path begins with it.
    pub heddle: Option<String>,
    /// This folder, and those of Ruby and of gems.
    pub libraries: Vec<String>,
}

/// Where a thread was.
#[derive(Debug, Clone, Default)]
pub struct Capture {
    /// The frames of Ruby's stack from the innermost on; none if they could not be read.
    pub frames: Vec<Frame>,
    /// Whether the thread collected garbage, so that its frames could not be read.
    pub is_collecting: bool,
    /// The C function, such as `read (libc.so.6)`.
    pub function: Option<String>,
}

impl Capture {
    /// The method written in C that the thread was in, as in `File#flock`. `None` if it ran Ruby code.
    pub fn native_method(&self) -> Option<String> {
        if self.is_collecting {
            return Some("garbage collection".to_owned());
        }
        self.frames.first().filter(|frame| frame.is_native).map(Frame::method_name)
    }

    /// Whether the thread ran Ruby code, as far as frames tell.
    pub fn runs_ruby(&self) -> bool {
        self.frames.first().is_some_and(|frame| !frame.is_native)
    }

    /// The lines of a backtrace as Ruby writes it, without the frames of Heddle's own files. Blocks are shown as their
    /// methods.
    pub fn backtrace(&self, folders: &Folders) -> Vec<String> {
        let (mut lines, mut natives) = (Vec::new(), Vec::new());
        for frame in &self.frames {
            if frame.is_native {
                natives.push(frame);
            } else {
                // A method written in C is shown at the place from which it was called.
                let shown = natives.drain(..).chain([frame]).map(|called| frame.line_in_backtrace(called));
                lines.extend(shown.filter(|_| !frame.is_in(folders.heddle.as_slice())));
            }
        }
        lines
    }

    /// The innermost place outside of Heddle's own files.
    pub fn place(&self, folders: &Folders) -> Option<String> {
        self.frame_outside(folders.heddle.as_slice()).map(Frame::place)
    }

    fn frame_outside(&self, folders: &[String]) -> Option<&Frame> {
        self.frames.iter().find(|frame| !frame.is_native && !frame.is_in(folders))
    }

    /// `File#flock called at app/lock.rb:7, in flock (libc.so.6)`. For a place in a library, also from where the
    /// program has called that. `Heddle::Stall` describes a stall in the same way.
    pub fn describe(&self, folders: &Folders) -> String {
        let place = self.place(folders);
        let mut text = match (self.native_method(), &place) {
            (Some(method), Some(place)) => format!("{method} called at {place}"),
            (Some(method), None) => method,
            (None, Some(place)) => format!("at {place}"),
            (None, None) => "in C code".to_owned(),
        };
        if let Some(program) = self.frame_outside(&folders.libraries).map(Frame::place)
            && place.is_some_and(|place| place != program)
        {
            text.extend([", from ", &program]);
        }
        if let Some(function) = &self.function {
            text.extend([", in ", function]);
        }
        text
    }
}

/// Starts to watch which thread holds the GVL, without which [`of`] finds nothing. Called with the GVL.
pub fn prepare(ruby: &Ruby) {
    gvl_holder::watch(ruby);
}

/// Where the thread that holds the GVL is. `None` if no thread holds it, if that is not known, or if the thread has not
/// answered. Called on a native thread.
pub fn of_holder() -> Option<(pid_t, Capture)> {
    let thread = gvl_holder::holder()?;
    of(thread).map(|capture| (thread, capture))
}

/// As [`of_holder`], if this thread is the one that holds the GVL.
pub fn of(thread: pid_t) -> Option<Capture> {
    if gvl_holder::holder() != Some(thread) {
        return None;
    }
    let mut capture = match system_call::of(thread) {
        Some(call) if call.is_ended_by_signals() => {
            Capture { function: machine_code::function_at(call.instruction), ..Capture::default() }
        }
        Some(_) => signal::interrupt(thread)?,
        None => return None,
    };
    if capture.runs_ruby() {
        // It is a part of Ruby's interpreter.
        capture.function = None;
    }
    Some(capture)
}
