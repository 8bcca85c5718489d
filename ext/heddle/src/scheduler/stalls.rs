//! Reports fibers that keep the thread for too long (`stall_after:`).
//!
//! [`native`]: a native thread learns of a stall from the core's [`StallWatch`], and looks at once where the stalled
//! thread is. It needs no GVL for that, and so also finds out about C code that keeps the GVL. A Ruby thread of
//! `lib/heddle/stalls/` waits in [`WatchObject::wait`] for what the native thread passes on. Both threads have the
//! [`Watched`], and not the scheduler, which may be collected.

mod native;
mod sighting;

use std::cell::RefCell;
use std::sync::Arc;

use heddle_core::Error as CoreError;
use heddle_core::outbox::Received;
use heddle_core::signals::SignalsBlocked;
use heddle_core::stall_watch::StallWatch;
use magnus::value::ReprValue;
use magnus::{
    Class, DataTypeFunctions, Error, Module, Object, RClass, RModule, Ruby, TypedData, Value, function, method,
};

use self::native::{Report, Watched};
use super::{Scheduler, registry};
use crate::capture::{self, Folders};
use crate::ruby::nogvl::without_gvl;
use crate::ruby::value::{PinnedValue, find_class};
use crate::ruby::{error, frames, gvl_holder, interrupts, signal_frames, thread};

pub use self::sighting::reset;

/// The scheduler's part.
#[derive(Default)]
pub struct Stalls {
    watch: RefCell<Option<Arc<StallWatch>>>,
}

/// What the Ruby thread has: `Heddle::StallWatch`.
#[derive(TypedData)]
#[magnus(class = "Heddle::StallWatch", free_immediately)]
pub struct WatchObject {
    watched: Arc<Watched>,
}

impl DataTypeFunctions for WatchObject {}

impl Scheduler {
    /// Starts the threads that watch this one, if the options say so and there are none.
    pub fn watch_stalls(&self, ruby: &Ruby) -> Result<(), Error> {
        let Some(limit) = self.options.borrow().stall_after else { return Ok(()) };
        if self.stalls.watch.borrow().is_some() {
            return Ok(());
        }
        let heddle: RModule = ruby.class_object().const_get("Heddle")?;
        let stalls: RModule = heddle.const_get("Stalls")?;
        let watch = Arc::new(StallWatch::new(limit));
        let folders = Folders { heddle: Some(stalls.const_get("LIB")?), libraries: stalls.funcall("libraries", ())? };
        let watched = Arc::new(Watched::new(Arc::clone(&watch), gvl_holder::current_thread(), folders));
        capture::prepare(ruby);
        start_native(Arc::clone(&watched)).map_err(|error| error::from_core(ruby, error))?;
        *self.stalls.watch.borrow_mut() = Some(Arc::clone(&watch));
        self.state.borrow_mut().time_slices(Some(watch));
        let object = ruby.obj_wrap(WatchObject { watched });
        object.funcall::<_, _, Value>("learn_layout", ())?;
        stalls.funcall::<_, _, Value>("watch", (object, ruby.thread_current())).map(|_| ())
    }

    /// A fiber has got a name, as reports show it, or lost it.
    pub fn name_fiber(&self, fiber: Value, name: Option<String>) {
        if self.is_inherited() || self.stalls.watch.borrow().is_none() {
            return;
        }
        let mut state = self.state.borrow_mut();
        // Not marked by this, but only looked up.
        if let Some(key) = state.fibers.find(PinnedValue::assume_marked(fiber)) {
            state.name(key, name.map(Arc::from));
        }
    }

    /// Ends the watching threads. `inherited` says that they belong to the parent of this process.
    pub fn unwatch_stalls(&self, inherited: bool) {
        let Some(watch) = self.stalls.watch.borrow_mut().take() else { return };
        // The parent's thread may have held the lock.
        if !inherited {
            watch.stop();
        }
        if let Some(timing) = self.state.borrow_mut().queue.timing_mut() {
            timing.watch(None);
        }
    }
}

fn start_native(watched: Arc<Watched>) -> Result<(), CoreError> {
    const NAME: &str = "heddle watch";
    let _blocked = SignalsBlocked::new();
    let thread = std::thread::Builder::new().name(NAME.to_owned()).spawn(move || watched.run());
    thread.map(|_| ()).map_err(|error| CoreError::io("pthread_create", &error))
}

/// Waits until a stall was noticed or has ended. Returns an Array: `:stalled`, the slice's number, its length in
/// seconds, and what the native thread has seen of it; or `:ended`, the same two, how many fibers the slice has
/// delayed, and by how many seconds at most. Nil when there is nothing more to watch.
fn wait(ruby: &Ruby, object: &WatchObject) -> Result<Option<Value>, Error> {
    let watched = &object.watched;
    loop {
        match without_gvl(|| watched.reports.wait(), &|| watched.reports.interrupt()) {
            Some(Received::Item(Report::Stalled(slice, length, sighting))) => {
                watched.watch.answer(slice);
                let seen = sighting.answer(ruby, &watched.folders)?;
                let report = (ruby.to_symbol("stalled"), slice, length.as_secs_f64(), seen);
                return Ok(Some(ruby.into_value(report)));
            }
            Some(Received::Item(Report::Ended(ended))) => {
                let (length, latest) = (ended.length.as_secs_f64(), ended.latest.as_secs_f64());
                let report = (ruby.to_symbol("ended"), ended.slice, length, ended.late, latest);
                return Ok(Some(ruby.into_value(report)));
            }
            Some(Received::Closed) => return Ok(None),
            Some(Received::Interrupted) | None => interrupts::check()?,
        }
    }
}

/// Whether this slice is still under way.
fn is_current(object: &WatchObject, slice: u64) -> bool {
    object.watched.watch.is_current(slice)
}

/// The method written in C in which the thread is; nil if it is in Ruby code.
fn native_method(_: &Ruby, _: &WatchObject, watched: Value) -> Option<String> {
    frames::innermost_of(thread::of(watched)?).filter(|frame| frame.is_native()).and_then(frames::Frame::method_name)
}

/// The thread's current fiber, as its scheduler knows it.
fn fiber(_: &Ruby, _: &WatchObject, watched: Value) -> Option<Value> {
    let thread = thread::of(watched)?;
    let mut found = None;
    registry::any(|scheduler| {
        if scheduler.is_owned_by(thread) {
            found = scheduler.state.borrow().current().map(|(fiber, _)| fiber.get());
        }
        found.is_some()
    });
    found
}

/// A method of this class that is written in C: see [`signal_frames::learn_layout`].
fn learn_layout(ruby: &Ruby, _: &WatchObject) {
    signal_frames::learn_layout(WatchObject::class(ruby).as_value());
}

/// Defines the methods that `lib/heddle/stalls/` calls.
pub fn define(ruby: &Ruby, heddle: RModule) -> Result<(), Error> {
    let class: RClass = heddle.define_class("StallWatch", ruby.class_object())?;
    class.undef_default_alloc_func();
    find_class::<WatchObject>(ruby);
    class.define_method("wait", method!(wait, 0))?;
    class.define_method("current?", method!(is_current, 1))?;
    class.define_method("native_method", method!(native_method, 1))?;
    class.define_method("fiber", method!(fiber, 1))?;
    class.define_method("learn_layout", method!(learn_layout, 0))?;
    class.define_singleton_method("count", function!(sighting::count, 1))?;
    class.define_singleton_method("write_no_lines", function!(sighting::write_no_lines, 0))?;
    heddle.funcall::<_, _, Value>("private_constant", ("StallWatch",)).map(|_| ())
}
