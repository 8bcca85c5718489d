//! What the native thread has seen of a stall, and the line that it writes if the program has no receiver.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use heddle_core::stall_causes::StallCauses;
use magnus::{Error, RArray, Ruby};

use crate::capture::{Capture, Folders};

/// Whether the program's receivers get all reports, so that no lines are to be written.
static HAS_RECEIVERS: AtomicBool = AtomicBool::new(false);
/// The causes of this process's stalls; null before the first one.
static CAUSES: AtomicPtr<Mutex<StallCauses>> = AtomicPtr::new(ptr::null_mut());

/// See the module.
#[derive(Default)]
pub struct Sighting {
    shared: Mutex<Shared>,
}

#[derive(Default)]
struct Shared {
    capture: Option<Capture>,
    /// What the fiber is called.
    fiber_name: Option<Arc<str>>,
    /// Whether the Ruby thread has it.
    is_answered: bool,
    /// The count, and whether it was due, if the native thread has reported the stall.
    reported: Option<(u64, bool)>,
}

impl Sighting {
    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores a later capture, unless the earlier one tells more. False if the Ruby thread has taken over.
    pub fn replace(&self, capture: Capture, fiber_name: Option<Arc<str>>) -> bool {
        let mut shared = self.lock();
        shared.fiber_name = fiber_name.or_else(|| shared.fiber_name.take());
        if !shared.is_answered && (!capture.frames.is_empty() || shared.capture.is_none()) {
            shared.capture = Some(capture);
        }
        !shared.is_answered
    }

    /// The line to be written, if any. The Ruby thread then writes none.
    pub fn line(&self, length: Duration, folders: &Folders) -> Option<String> {
        if HAS_RECEIVERS.load(Ordering::SeqCst) {
            return None;
        }
        let mut shared = self.lock();
        if shared.is_answered || shared.reported.is_some() {
            return None;
        }
        let capture = shared.capture.as_ref()?;
        let place = capture.place(folders);
        let (count, is_due) = count(place);
        let line = is_due.then(|| line(capture, shared.fiber_name.as_deref(), folders, length, count));
        shared.reported = Some((count, is_due));
        line
    }

    /// Takes over from the native thread: the fiber's name; the capture's method in C, its C function, its backtrace;
    /// and the count and whether it was due, if the native thread has reported the stall. Nil if nothing was seen.
    pub fn answer(&self, ruby: &Ruby, folders: &Folders) -> Result<Option<RArray>, Error> {
        let (capture, fiber_name, reported) = {
            let mut shared = self.lock();
            shared.is_answered = true;
            (shared.capture.take(), shared.fiber_name.take(), shared.reported)
        };
        let Some(capture) = capture else { return Ok(None) };
        let seen = ruby.ary_new();
        seen.push(fiber_name.as_deref())?;
        seen.push(capture.native_method())?;
        seen.push(capture.function.as_deref())?;
        seen.push(ruby.ary_from_vec(capture.backtrace(folders)))?;
        seen.push(reported.map(|(count, _)| count))?;
        seen.push(reported.map(|(_, is_due)| is_due))?;
        Ok(Some(seen))
    }
}

/// As `Heddle::Stall#to_s`.
fn line(capture: &Capture, fiber_name: Option<&str>, folders: &Folders, length: Duration, count: u64) -> String {
    let fiber = fiber_name.map_or_else(|| "a fiber".to_owned(), |name| format!("fiber {name}"));
    let times = if count > 1 { format!(", stall number {count} there") } else { String::new() };
    let (seconds, place) = (length.as_secs_f64(), capture.describe(folders));
    format!("heddle: {fiber} has kept its thread for {seconds:.3} s so far: {place}{times}\n")
}

/// Counts a stall at this place. Returns how many there have been, and whether this one is to be reported.
pub fn count(place: Option<String>) -> (u64, bool) {
    let mut causes = CAUSES.load(Ordering::Acquire);
    if causes.is_null() {
        let new = Box::into_raw(Box::default());
        let stored = CAUSES.compare_exchange(ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire);
        causes = stored.map_or_else(|other| other, |_| new);
    }
    // SAFETY: never freed.
    let causes = unsafe { &*causes };
    causes.lock().unwrap_or_else(PoisonError::into_inner).count(&place.unwrap_or_default(), Instant::now())
}

/// The program has a receiver, so the native threads write no lines.
pub fn write_no_lines() {
    HAS_RECEIVERS.store(true, Ordering::SeqCst);
}

/// Begins to count anew in a forked child, as a thread of the parent may have held the lock. Async-signal-safe.
pub fn reset() {
    CAUSES.store(ptr::null_mut(), Ordering::Release);
}
