//! The frames of Ruby's stack that a signal handler has read, as Ruby shows them in backtraces.

use crate::ruby::signal_frames::{SignalFrame, SignalFrames};

/// A frame.
#[derive(Debug, Clone)]
pub struct Frame {
    /// Whether it is a method written in C, or one of Ruby's own.
    pub is_native: bool,
    /// Empty for a method written in C.
    path: String,
    line: i32,
    label: String,
    /// `JSON.generate`, if it is a method of a class or module with a name.
    qualified: Option<String>,
}

impl Frame {
    /// All frames that were read.
    pub fn all(read: &SignalFrames) -> Vec<Frame> {
        read.frames().iter().map(|frame| Frame::from(read, frame)).collect()
    }

    fn from(read: &SignalFrames, frame: &SignalFrame) -> Frame {
        let text = |span| String::from_utf8_lossy(read.text(span)).into_owned();
        let (class, method) = (text(frame.class), text(frame.method));
        let separator = if frame.is_singleton { '.' } else { '#' };
        Frame {
            is_native: frame.is_native,
            path: text(frame.path),
            line: frame.line,
            label: text(frame.label),
            qualified: (!class.is_empty()).then(|| format!("{class}{separator}{method}")),
        }
    }

    /// `JSON.generate`, or `generate` for a class without a name.
    pub fn method_name(&self) -> String {
        self.qualified.clone().unwrap_or_else(|| self.label.clone())
    }

    /// Whether its file is in one of the folders.
    pub fn is_in(&self, folders: &[String]) -> bool {
        folders.iter().any(|folder| self.path.starts_with(folder))
    }

    /// `app/models/report.rb:31`.
    pub fn place(&self) -> String {
        format!("{}:{}", self.path, self.line)
    }

    /// The line of a backtrace for this frame, or for a method in C that it has `called`.
    pub fn line_in_backtrace(&self, called: &Frame) -> String {
        let place = self.place();
        if cfg!(ruby_gte_3_4) {
            format!("{place}:in '{}'", called.method_name())
        } else {
            format!("{place}:in `{}'", called.label)
        }
    }
}
