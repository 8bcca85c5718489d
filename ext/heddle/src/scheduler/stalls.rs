//! Reports fibers that keep the thread for too long (`stall_after:`).
//!
//! A Ruby thread of `lib/heddle/stalls/` waits in [`WatchObject::wait`], without the GVL, for what a
//! [`StallWatch`] of the core finds. The thread has the watch, and not the scheduler, which may be collected.

use std::cell::RefCell;
use std::sync::Arc;

use heddle_core::stall_watch::{Event, StallWatch};
use magnus::value::ReprValue;
use magnus::{Class, DataTypeFunctions, Error, Module, RClass, RModule, Ruby, Symbol, TypedData, Value, method};

use super::{Scheduler, registry};
use crate::ruby::nogvl::without_gvl;
use crate::ruby::value::find_class;
use crate::ruby::{frames, interrupts, thread};

/// The scheduler's part.
#[derive(Default)]
pub struct Stalls {
    watch: RefCell<Option<Arc<StallWatch>>>,
}

/// What the watching thread has: `Heddle::StallWatch`.
#[derive(TypedData)]
#[magnus(class = "Heddle::StallWatch", free_immediately)]
pub struct WatchObject {
    watch: Arc<StallWatch>,
}

impl DataTypeFunctions for WatchObject {}

impl Scheduler {
    /// Starts the thread that watches this one, if the options say so and there is none.
    pub fn watch_stalls(&self, ruby: &Ruby) -> Result<(), Error> {
        let Some(limit) = self.options.borrow().stall_after else { return Ok(()) };
        if self.stalls.watch.borrow().is_some() {
            return Ok(());
        }
        let watch = Arc::new(StallWatch::new(limit));
        *self.stalls.watch.borrow_mut() = Some(Arc::clone(&watch));
        self.state.borrow_mut().time_slices(Some(Arc::clone(&watch)));
        let heddle: RModule = ruby.class_object().const_get("Heddle")?;
        let stalls: RModule = heddle.const_get("Stalls")?;
        stalls
            .funcall::<_, _, Value>("watch", (ruby.obj_wrap(WatchObject { watch }), ruby.thread_current()))
            .map(|_| ())
    }

    /// Ends the watching thread. `inherited` says that it belongs to the parent of this process.
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

/// What [`wait`] returns: `:stalled` or `:ended`, the slice's number, its length in seconds, how many fibers it has
/// delayed, and by how many seconds at most.
type Found = (Symbol, u64, f64, usize, f64);

/// Waits until a stall is noticed or has ended. Nil when there is nothing more to watch.
fn wait(ruby: &Ruby, object: &WatchObject) -> Result<Option<Found>, Error> {
    loop {
        let watch = &object.watch;
        match without_gvl(|| watch.wait(), &|| watch.interrupt()) {
            Some(Event::Stalled(slice, length)) => {
                return Ok(Some((ruby.to_symbol("stalled"), slice, length.as_secs_f64(), 0, 0.0)));
            }
            Some(Event::Ended(ended)) => {
                let (length, latest) = (ended.length.as_secs_f64(), ended.latest.as_secs_f64());
                return Ok(Some((ruby.to_symbol("ended"), ended.slice, length, ended.late, latest)));
            }
            Some(Event::Stopped) => return Ok(None),
            Some(Event::Interrupted) | None => interrupts::check()?,
        }
    }
}

/// Whether this slice is still under way.
fn is_current(object: &WatchObject, slice: u64) -> bool {
    object.watch.is_current(slice)
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

/// Defines the methods that `lib/heddle/stalls/` calls.
pub fn define(ruby: &Ruby, heddle: RModule) -> Result<(), Error> {
    let class: RClass = heddle.define_class("StallWatch", ruby.class_object())?;
    class.undef_default_alloc_func();
    find_class::<WatchObject>(ruby);
    class.define_method("wait", method!(wait, 0))?;
    class.define_method("current?", method!(is_current, 1))?;
    class.define_method("native_method", method!(native_method, 1))?;
    class.define_method("fiber", method!(fiber, 1))?;
    heddle.funcall::<_, _, Value>("private_constant", ("StallWatch",)).map(|_| ())
}
