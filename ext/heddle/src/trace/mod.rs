//! What `lib/heddle/traces/` needs of Rust: the object that holds a trace. All methods are private to Heddle.

use std::rc::Rc;
use std::time::Instant;

use magnus::gc::Marker;
use magnus::typed_data::Obj;
use magnus::{
    Class, DataTypeFunctions, Error, Module, Object, RArray, RHash, RModule, RString, Ruby, TypedData, Value, function,
    method, prelude::*,
};

use crate::ruby::error;
use crate::ruby::gvl::Collecting;
use crate::ruby::outcome::Ignore;
use crate::ruby::value::{PinnedValue, find_class};
use crate::ruby::{gc, ractor};
use crate::scheduler::Scheduler;
use crate::scheduler::trace_session::Session;
use crate::scheduler::tracing::{self, is_recording};
use crate::scheduler::wait::{COUNTED_WAITS, WAIT_KINDS};

/// `Heddle::TraceRecorder`.
#[derive(TypedData)]
#[magnus(class = "Heddle::TraceRecorder", mark, free_immediately)]
struct Recorder {
    session: Rc<Session>,
}

// SAFETY: magnus asks for this because the garbage collector may free the object on any thread. All access, including
// that, happens with the GVL, which guards the session.
unsafe impl Send for Recorder {}

impl DataTypeFunctions for Recorder {
    fn mark(&self, marker: &Marker) {
        self.session.mark(marker);
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // SAFETY: the collector drops this, with the GVL.
        tracing::end(&unsafe { Collecting::assume() }, &self.session);
    }
}

/// Defines the class and its methods.
pub fn define(ruby: &Ruby, heddle: RModule, native: RModule) -> Result<(), Error> {
    let class = heddle.define_class("TraceRecorder", ruby.class_object())?;
    class.undef_default_alloc_func();
    find_class::<Recorder>(ruby);
    class.define_method("start", method!(start, 1))?;
    class.define_method("finish", method!(finish, 0))?;
    class.define_method("inherited?", method!(|recorder: &Recorder| recorder.session.is_inherited(), 0))?;
    class.define_method("name", method!(name, 2))?;
    class.define_method("records", method!(records, 2))?;
    class.define_method("tracks", method!(tracks, 0))?;
    class.define_method("fiber_id", method!(fiber_id, 2))?;
    class.define_method("class_at", method!(class_at, 1))?;
    class.define_method("kinds", method!(kinds, 0))?;
    ractor::safe(ruby, || {
        native.define_singleton_method("tracing?", function!(is_recording, 0))?;
        native.define_singleton_method("reserve_trace", function!(reserve, 1))
    })?;
    heddle.funcall::<_, _, Value>("private_constant", ("TraceRecorder",)).map(|_| ())
}

/// A recorder for at most `capacity` records; nil if this process has one that has not ended.
fn reserve(ruby: &Ruby, capacity: usize) -> Result<Option<Obj<Recorder>>, Error> {
    ractor::expect_main(ruby, "Heddle.trace")?;
    let session = tracing::reserve(ruby, capacity).ignored("no memory").ok_or_else(|| {
        error::of(ruby.exception_no_mem_error(), format!("no memory for a trace of {capacity} events: take fewer"))
    })?;
    Ok(session.map(|session| ruby.obj_wrap(Recorder { session })))
}

/// Begins to record. `names` gets the names of all fibers, by their `object_id`s.
fn start(ruby: &Ruby, recorder: &Recorder, names: RHash) -> Result<(), Error> {
    tracing::begin(ruby, &recorder.session, names)
}

/// Ends the recording. Returns the numbers of records that are there and that were dropped, and the length in seconds;
/// nil if it has ended already, or belongs to the parent of this process.
fn finish(ruby: &Ruby, recorder: &Recorder) -> Option<(usize, u64, f64, u64)> {
    let now = Instant::now();
    if !tracing::end(ruby, &recorder.session) {
        return None;
    }
    gc::unwatch(ruby);
    let ring = recorder.session.ring();
    let seconds = now.saturating_duration_since(recorder.session.begun_at()).as_secs_f64();
    Some((ring.len(), ring.dropped(), seconds, ring.time_of(now)))
}

/// The fiber gets the name with this number.
fn name(ruby: &Ruby, recorder: &Recorder, fiber: Value, number: u64) {
    let Some(scheduler) = Scheduler::of_thread(ruby) else { return };
    let state = scheduler.state.borrow();
    if let Some(trace) = state.trace()
        && Rc::ptr_eq(trace.session(), &recorder.session)
        && let Some(key) = state.fibers.find(fiber)
    {
        trace.name(key, number);
    }
}

/// Records as bytes, after the recording has ended: see [`heddle_core::observe::trace::TraceRecord::write_to`].
fn records(ruby: &Ruby, recorder: &Recorder, from: usize, count: usize) -> RString {
    let bytes = recorder.session.ring().bytes(from, count);
    ruby.str_from_slice(&bytes)
}

/// Of each scheduler: the number of its track, the name of its thread, and the address of its thread.
fn tracks(ruby: &Ruby, recorder: &Recorder) -> RArray {
    let tracks = recorder.session.tracks();
    ruby.ary_from_iter(tracks.into_iter().map(|track| (track.number, track.thread_name, track.thread)))
}

/// The `object_id` of the fiber with this number on the track.
fn fiber_id(recorder: &Recorder, track: u32, fiber: u64) -> Option<u64> {
    recorder.session.identity_of(track, fiber)
}

/// The class with this number.
fn class_at(recorder: &Recorder, number: usize) -> Option<Value> {
    recorder.session.class_at(number).map(PinnedValue::get)
}

/// Of each kind of wait, by the number in a record: its name, and the name under which its time is counted.
fn kinds(ruby: &Ruby, _: &Recorder) -> RArray {
    ruby.ary_from_iter(WAIT_KINDS.map(|(name, counted)| (ruby.to_symbol(name), ruby.to_symbol(COUNTED_WAITS[counted]))))
}
