//! The trace that this process records, if it records one, and the schedulers' parts in it.
//!
//! The GVL of the main Ractor guards all of this: only code that runs with it comes here.

use std::cell::RefCell;
use std::collections::TryReserveError;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

use magnus::{Error, RHash, Ruby, Value};

use super::record::FiberKey;
use super::state::tracing::Tracing;
use super::trace_session::Session;
use super::{Scheduler, registry};
use crate::ruby::gvl::{Collecting, Guarded, HoldsGvl};
use crate::ruby::outcome::RubyOutcome;
use crate::ruby::value::{PinnedValue, same};
use crate::ruby::{fiber, gc, ractor, thread};

static SESSION: Guarded<RefCell<Option<Rc<Session>>>> = Guarded::new(RefCell::new(None));
/// Whether [`SESSION`] has one that records. Unlike that, any Ractor may read this.
static RECORDS: AtomicBool = AtomicBool::new(false);

/// The trace of this process.
fn session(gvl: &impl HoldsGvl) -> Option<Rc<Session>> {
    SESSION.get(gvl).borrow().as_ref().filter(|session| !session.is_inherited()).cloned()
}

/// Whether this process records a trace. Callable in every Ractor; only the main one has a trace.
pub fn is_recording(ruby: &Ruby) -> bool {
    RECORDS.load(Ordering::Relaxed) && ractor::is_main(ruby) && session(ruby).is_some()
}

/// Reserves the process for a trace with at most `capacity` records. `None` if it has one.
pub fn reserve(gvl: &Ruby, capacity: usize) -> Result<Option<Rc<Session>>, TryReserveError> {
    if session(gvl).is_some() {
        return Ok(None);
    }
    let session = Rc::new(Session::new(capacity)?);
    RECORDS.store(false, Ordering::Relaxed);
    *SESSION.get(gvl).borrow_mut() = Some(Rc::clone(&session));
    Ok(Some(session))
}

/// Begins to record. `names` gets the names of all fibers, by their `object_id`s.
pub fn begin(ruby: &Ruby, session: &Session, names: RHash) -> Result<(), Error> {
    session.begin();
    RECORDS.store(true, Ordering::Relaxed);
    gc::watch(ruby, on_collection)?;
    registry::each(ruby, |scheduler| scheduler.join_trace(ruby, Some(names)))
}

/// Ends the recording. False if it has ended already.
pub fn end(gvl: &impl HoldsGvl, session: &Session) -> bool {
    let is_current = SESSION.get(gvl).borrow().as_ref().is_some_and(|current| std::ptr::eq(&**current, session));
    if !is_current {
        return false;
    }
    let ended = SESSION.get(gvl).borrow_mut().take();
    if session.is_inherited() {
        return false;
    }
    RECORDS.store(false, Ordering::Relaxed);
    session.end();
    registry::any(gvl, |scheduler| {
        scheduler.state.borrow_mut().end_trace();
        false
    });
    session.keep_ended();
    drop(ended);
    true
}

/// A garbage collection, or a step of one, begins or ends. No Ruby object may be made here. Ruby 4.0 calls this in the
/// Ractor that collects, and any other than the main one may not use the trace, nor know that there is one.
fn on_collection(gvl: &Collecting, begins: bool) {
    if RECORDS.load(Ordering::Relaxed)
        && ractor::is_main(gvl)
        && let Some(session) = session(gvl)
    {
        session.collected(gvl, begins);
    }
}

impl Scheduler {
    /// Records what this scheduler does from now on, if this process records a trace. `names` gets the names of its
    /// fibers.
    pub fn join_trace(&self, ruby: &Ruby, names: Option<RHash>) -> Result<(), Error> {
        if !is_recording(ruby) {
            return Ok(());
        }
        let Some(session) = session(ruby).filter(|_| !self.is_inherited()) else { return Ok(()) };
        let owner = self.owner.thread.get().or(self.io.opened_by.get());
        let owner = owner.map_or_else(|| thread::current(ruby), PinnedValue::get);
        let track = session.add_track(thread::name(owner)?, owner);
        let known: Vec<FiberKey> = self.state.borrow().fibers.iter().map(|(key, _)| key).collect();
        for key in known {
            let Some(fiber) = self.state.borrow().fibers.fiber(key) else { continue };
            let identity = fiber::id(fiber)?;
            session.note_fiber(track.number(), key, identity);
            if let Some(names) = names
                && let Some(name) = fiber::name(fiber)
            {
                names.aset(identity, name)?;
            }
        }
        let here = same(owner, thread::current(ruby));
        self.state.borrow_mut().begin_trace(Tracing::new(track, session), here);
        Ok(())
    }

    /// The scheduler, which is traced, has a new fiber with this key.
    #[cold]
    pub fn trace_fiber(&self, key: FiberKey, fiber: Value) {
        let Some(identity) = fiber::id(fiber).not_an_interrupt("no memory: the trace does not name it") else { return };
        if let Some(trace) = self.state.borrow().trace() {
            trace.session().note_fiber(trace.number(), key, identity);
        }
    }

    /// Whether there is a trace.
    #[inline]
    pub fn is_traced(&self) -> bool {
        self.state.borrow().trace().is_some()
    }
}
