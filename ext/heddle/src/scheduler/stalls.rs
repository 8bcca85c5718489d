//! Reports fibers that keep the thread for too long (`stall_after:`).
//!
//! A Ruby thread of `lib/heddle/stalls/` waits in [`WatchObject::wait`], without the GVL, for what the core's
//! [`StallWatch`] notices. It cannot look where the stalled fiber is before it has the GVL, which C code may keep until
//! the stall is over. So it has the postponed job triggered, which Ruby runs at the latest at the end of that C code,
//! in the stalled fiber and within the method's frame: there [`Scheduler::look_at_stall`] stores where the fiber is.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use heddle_core::observe::stall_watch::{Noticed, StallWatch, WatchEvent};
use magnus::gc::Marker;
use magnus::typed_data::Obj;
use magnus::{DataTypeFunctions, Error, Module, RArray, RClass, RModule, Ruby, TypedData, Value, method, prelude::*};

use super::{Scheduler, registry};
use crate::ruby::hidden_variable::HiddenVariable;
use crate::ruby::nogvl::without_gvl;
use crate::ruby::outcome::RubyOutcome;
use crate::ruby::value::{PinnedValue, find_class};
use crate::ruby::{fiber, frames, interrupts, postponed_job, thread};

/// Where the fiber of the announced slice was: the slice's number, the backtrace, the method in C, the fiber and its
/// name. An Array, or nil. It belongs to the [`WatchObject`].
static SIGHTING: HiddenVariable = HiddenVariable::new("sighting");

/// The scheduler's part.
#[derive(Default)]
pub struct Stalls {
    watch: RefCell<Option<Arc<StallWatch>>>,
    /// The [`WatchObject`].
    object: Cell<Option<PinnedValue>>,
    /// The last slice whose sighting was stored.
    seen: Cell<u64>,
}

impl Stalls {
    /// Tells the garbage collector what is held.
    pub fn mark(&self, marker: &Marker) {
        if let Some(object) = self.object.get() {
            object.mark(marker);
        }
    }
}

/// What the Ruby thread has: `Heddle::StallWatch`. It does not have the scheduler, which may be collected.
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
        let object = ruby.obj_wrap(WatchObject { watch: Arc::clone(&watch) });
        // SAFETY: `mark` of this marks it, and the scheduler calls that.
        self.stalls.object.set(Some(unsafe { PinnedValue::assume_marked(object.as_value()) }));
        self.stalls.seen.set(0);
        *self.stalls.watch.borrow_mut() = Some(Arc::clone(&watch));
        self.state.borrow_mut().time_slices(Some(watch));
        let stalls: RModule = ruby.class_object().const_get::<_, RModule>("Heddle")?.const_get("Stalls")?;
        let watched = stalls.funcall::<_, _, Value>("watch", (object, ruby.thread_current()));
        // What is raised there, by a signal for instance, may have kept the thread from starting. The next hook tries
        // again.
        watched.map(|_| ()).inspect_err(|_raised| self.unwatch_stalls(false))
    }

    /// Ends the watching thread. `inherited` says that it belongs to the parent of this process.
    pub fn unwatch_stalls(&self, inherited: bool) {
        let Some(watch) = self.stalls.watch.borrow_mut().take() else { return };
        self.stalls.object.set(None);
        let mut state = self.state.borrow_mut();
        // The parent's thread may have held the lock.
        if !inherited {
            // The slice in which the scheduler is closed may be a stall.
            state.end_slice();
            watch.stop();
        }
        state.time_slices(None);
    }

    /// Stores where the current fiber is if its slice was announced as a stall. Called from the postponed job.
    pub fn look_at_stall(&self, ruby: &Ruby) {
        let announced = self.stalls.watch.borrow().as_ref().and_then(|watch| watch.announced());
        let Some(slice) = announced.filter(|slice| self.stalls.seen.get() != *slice) else { return };
        let Some(object) = self.stalls.object.get() else { return };
        let Some((fiber, _)) = self.state.borrow().fibers.current() else { return };
        self.stalls.seen.set(slice);
        let Some(backtrace) = frames::backtrace(ruby).not_an_interrupt("no memory") else { return };
        let native_method = frames::innermost(ruby).and_then(frames::Frame::native_method);
        let sighting = ruby.into_value((slice, backtrace, native_method, fiber.get(), fiber::name(fiber.get())));
        SIGHTING.set(object.get(), sighting).not_an_interrupt("no memory");
    }
}

/// Waits until a stall was noticed or has ended. Returns two Arrays. The first has the stalls that have ended, each as
/// the slice's number, its length in seconds, how many fibers it has delayed, and by how many seconds at most. The
/// second is the later stall that was noticed, as the slice's number and its length so far; or nil. Returns nil when
/// there is nothing more to watch.
fn wait(ruby: &Ruby, object: Obj<WatchObject>) -> Result<Option<Value>, Error> {
    let watch = &object.watch;
    let next = || {
        let event = watch.wait();
        if matches!(event, WatchEvent::Noticed(Noticed { stalled: Some(_), .. })) {
            postponed_job::trigger_elsewhere();
        }
        event
    };
    // The stall that was seen is reported.
    SIGHTING.set(object.as_value(), ruby.qnil().as_value())?;
    loop {
        match without_gvl(ruby, next, &|| watch.interrupt()) {
            Some(WatchEvent::Noticed(Noticed { ended, stalled })) => {
                let ended =
                    ruby.ary_from_iter(ended.iter().map(|ended| {
                        (ended.slice, ended.length.as_secs_f64(), ended.late, ended.latest.as_secs_f64())
                    }));
                let stalled = stalled.map(|(slice, length)| (slice, length.as_secs_f64()));
                return Ok(Some(ruby.into_value((ended, stalled))));
            }
            Some(WatchEvent::Stopped) => return Ok(None),
            Some(WatchEvent::Interrupted) | None => interrupts::check(ruby)?,
        }
    }
}

/// Where the fiber of the slice was: the backtrace, the method in C, the fiber and its name. Nil if it was not seen.
fn seen(_: &Ruby, object: Obj<WatchObject>, slice: u64) -> Option<RArray> {
    let sighting = RArray::from_value(SIGHTING.get(object.as_value()))?;
    let number: u64 = sighting.shift().not_an_interrupt("never: it is an Integer")?;
    (number == slice).then_some(sighting)
}

/// Whether this slice is still under way.
fn is_current(_: &Ruby, object: Obj<WatchObject>, slice: u64) -> bool {
    object.watch.is_current(slice)
}

/// The method written in C in which the thread is; nil if it is in Ruby code.
fn native_method(_: &Ruby, _: Obj<WatchObject>, watched: Value) -> Option<String> {
    frames::innermost_of(thread::of(watched)?).and_then(frames::Frame::native_method)
}

/// The thread's current fiber, as its scheduler knows it.
fn fiber_of(ruby: &Ruby, _: Obj<WatchObject>, watched: Value) -> Option<Value> {
    let thread = thread::of(watched)?;
    let mut found = None;
    registry::any(ruby, |scheduler| {
        if scheduler.is_owned_by(thread) {
            found = scheduler.state.borrow().fibers.current().map(|(fiber, _)| fiber.get());
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
    class.define_method("seen", method!(seen, 1))?;
    class.define_method("current?", method!(is_current, 1))?;
    class.define_method("native_method", method!(native_method, 1))?;
    class.define_method("fiber", method!(fiber_of, 1))?;
    heddle.funcall::<_, _, Value>("private_constant", ("StallWatch",)).map(|_| ())
}
