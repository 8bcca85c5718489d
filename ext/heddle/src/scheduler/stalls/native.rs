//! The native thread that watches a scheduler's thread.

use std::fs::File;
use std::io::Write;
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;
use std::sync::Arc;
use std::time::Duration;

use heddle_core::outbox::Outbox;
use heddle_core::stall_watch::{EndedStall, Event, StallWatch};
use libc::pid_t;

use super::sighting::Sighting;
use crate::capture::{self, Capture, Folders};

/// How long a fiber that runs Ruby code may keep the GVL. Then it is in C code for which Ruby makes no frame, such as
/// the match of a regular expression.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often, and at which interval, it looks again at a thread that collects garbage.
const ATTEMPTS: usize = 10;
const INTERVAL: Duration = Duration::from_millis(5);

/// What the native thread passes to the Ruby thread.
pub enum Report {
    /// The slice with this number has lasted this long.
    Stalled(u64, Duration, Arc<Sighting>),
    /// A long slice has ended.
    Ended(EndedStall),
}

/// What both watching threads have.
pub struct Watched {
    pub watch: Arc<StallWatch>,
    pub reports: Outbox<Report>,
    pub folders: Folders,
    thread: pid_t,
}

impl Watched {
    /// `thread` is the kernel's number of the scheduler's thread.
    pub fn new(watch: Arc<StallWatch>, thread: pid_t, folders: Folders) -> Self {
        Watched { watch, reports: Outbox::default(), folders, thread }
    }

    /// Runs until the scheduler is closed.
    pub fn run(&self) {
        let mut sighting = Arc::<Sighting>::default();
        loop {
            match self.watch.wait() {
                Event::Stalled(slice, length) => {
                    sighting = Arc::default();
                    if let Some(capture) = self.look(slice) {
                        sighting.replace(capture, self.watch.fiber_name(slice));
                    }
                    self.reports.push(Report::Stalled(slice, length, Arc::clone(&sighting)));
                }
                Event::Unanswered(slice, length) => self.look_again(&sighting, slice, length),
                Event::Ended(ended) => self.reports.push(Report::Ended(ended)),
                Event::Stopped => return self.reports.close(),
            }
        }
    }

    /// The Ruby thread still waits for the GVL. If the stalled thread does not hold it, another one does, and the next
    /// look may tell more.
    fn look_again(&self, sighting: &Sighting, slice: u64, length: Duration) {
        let Some(capture) = self.look(slice) else { return };
        // Ruby takes the GVL from Ruby code, but other threads may come first.
        let may_yield = capture.runs_ruby() && length < self.watch.limit() + PATIENCE;
        if !sighting.replace(capture, self.watch.fiber_name(slice)) || may_yield {
            return;
        }
        self.watch.answer(slice);
        if let Some(line) = sighting.line(length, &self.folders) {
            // Not by Rust's `stderr`, whose lock another thread may hold for ever in a forked child.
            // SAFETY: the file is never dropped, so the descriptor stays open.
            let mut errors = ManuallyDrop::new(unsafe { File::from_raw_fd(libc::STDERR_FILENO) });
            // If descriptor 2 is closed, the report is lost.
            let _ = errors.write_all(line.as_bytes());
        }
    }

    /// Where the thread is, in the slice with this number, if it holds the GVL.
    fn look(&self, slice: u64) -> Option<Capture> {
        // What allocates much collects garbage time and again, for some milliseconds each.
        for _ in 0..ATTEMPTS {
            let capture = capture::of(self.thread).filter(|_| self.watch.is_current(slice))?;
            if !capture.is_collecting {
                return Some(capture);
            }
            std::thread::sleep(INTERVAL);
        }
        capture::of(self.thread).filter(|_| self.watch.is_current(slice))
    }
}
