//! The trace that this process records, if it records one, and the schedulers' parts in it.
//!
//! The GVL of the main Ractor guards all of this: only code that runs with it comes here.

use std::cell::{Cell, Ref, RefCell};
use std::collections::{TryReserveError, VecDeque};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Instant;

use heddle_core::trace::{Kind, Record, Ring, Track};
use magnus::gc::Marker;
use magnus::{Error, RHash, Ruby, Value};
use rustc_hash::FxHashMap;

use super::fibers::FiberKey;
use super::state::tracing::Tracing;
use super::{Scheduler, registry};
use crate::ruby::gvl::{Collecting, Guarded, HoldsGvl};
use crate::ruby::outcome::RubyOutcome;
use crate::ruby::value::{PinnedValue, address, same};
use crate::ruby::{fiber, fork, gc, ractor, thread};

/// The most classes of blockers that are told apart.
const MAX_CLASSES: usize = 1000;
/// The most schedulers whose threads' names are kept.
const MAX_TRACKS: usize = 10_000;
/// The track of records that concern the whole process.
const NO_TRACK: u32 = 0;

/// A scheduler's track.
#[derive(Debug, Clone)]
pub struct TrackInfo {
    /// The track's number.
    pub number: u32,
    /// What the scheduler's thread is called.
    pub thread_name: String,
    /// The address of the thread, as it is in records of garbage collections.
    pub thread: u64,
}

/// What the schedulers share that are traced.
pub struct Session {
    ring: Rc<RefCell<Ring>>,
    generation: u64,
    begun_at: Cell<Instant>,
    /// The fibers behind the numbers on each track: their `object_id`s. It has the fibers that have not ended.
    identities: RefCell<FxHashMap<(u32, u64), u64>>,
    classes: RefCell<Vec<PinnedValue>>,
    tracks: RefCell<VecDeque<TrackInfo>>,
    collecting_since: Cell<Option<Instant>>,
}

static SESSION: Guarded<RefCell<Option<Rc<Session>>>> = Guarded::new(RefCell::new(None));
/// The next track's number. No two traces have the same numbers, as a thread may remember one of an earlier trace.
static NEXT_TRACK: AtomicU32 = AtomicU32::new(NO_TRACK + 1);
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

impl Session {
    /// Reserves the process for a trace with at most `capacity` records. `None` if it has one.
    pub fn reserve(gvl: &Ruby, capacity: usize) -> Result<Option<Rc<Self>>, TryReserveError> {
        if session(gvl).is_some() {
            return Ok(None);
        }
        let session = Rc::new(Session {
            ring: Rc::new(RefCell::new(Ring::new(capacity)?)),
            generation: fork::generation(),
            begun_at: Cell::new(Instant::now()),
            identities: RefCell::default(),
            classes: RefCell::default(),
            tracks: RefCell::default(),
            collecting_since: Cell::new(None),
        });
        RECORDS.store(false, Ordering::Relaxed);
        *SESSION.get(gvl).borrow_mut() = Some(Rc::clone(&session));
        Ok(Some(session))
    }

    /// Begins to record. `names` gets the names of all fibers, by their `object_id`s.
    pub fn begin(&self, ruby: &Ruby, names: RHash) -> Result<(), Error> {
        self.ring.borrow_mut().begin();
        self.begun_at.set(Instant::now());
        RECORDS.store(true, Ordering::Relaxed);
        gc::watch(ruby, on_collection)?;
        registry::each(ruby, |scheduler| scheduler.join_trace(ruby, Some(names)))
    }

    /// Ends the recording. False if it has ended already.
    pub fn end(&self, gvl: &impl HoldsGvl) -> bool {
        let is_current = SESSION.get(gvl).borrow().as_ref().is_some_and(|session| std::ptr::eq(&**session, self));
        if !is_current {
            return false;
        }
        let ended = SESSION.get(gvl).borrow_mut().take();
        if self.is_inherited() {
            return false;
        }
        RECORDS.store(false, Ordering::Relaxed);
        let now = self.ring.borrow().now();
        self.ring.borrow_mut().give_time(now);
        registry::any(gvl, |scheduler| {
            scheduler.state.borrow_mut().end_trace();
            false
        });
        let ring = self.ring.borrow();
        let ends = ring.iter().filter(|record| record.kind == Kind::End);
        self.identities.borrow_mut().extend(ends.map(|end| ((end.track, end.fiber), end.detail)));
        drop(ended);
        true
    }

    /// Whether the trace belongs to the parent of this process.
    pub fn is_inherited(&self) -> bool {
        self.generation != fork::generation()
    }

    /// The records.
    pub fn ring(&self) -> Ref<'_, Ring> {
        self.ring.borrow()
    }

    /// How many records fit.
    pub fn capacity(&self) -> usize {
        self.ring.borrow().capacity()
    }

    /// When the recording began.
    pub fn begun_at(&self) -> Instant {
        self.begun_at.get()
    }

    /// The tracks of schedulers.
    pub fn tracks(&self) -> Vec<TrackInfo> {
        self.tracks.borrow().iter().cloned().collect()
    }

    /// The `object_id` of a fiber.
    pub fn identity_of(&self, track: u32, fiber: u64) -> Option<u64> {
        self.identities.borrow().get(&(track, fiber)).copied()
    }

    /// The key names no fiber any more. Returns the fiber's `object_id`.
    pub fn forget_fiber(&self, track: u32, key: FiberKey) -> Option<u64> {
        self.identities.borrow_mut().remove(&(track, key.number()))
    }

    /// A number for the class, which [`Session::class_at`] takes. Zero for no class.
    pub fn number_of_class(&self, class: Option<Value>) -> u64 {
        let Some(class) = class else { return 0 };
        let mut classes = self.classes.borrow_mut();
        let known = classes.iter().position(|known| *known == class);
        let index = known.or_else(|| {
            (classes.len() < MAX_CLASSES).then(|| {
                // SAFETY: `Session::mark` marks it.
                classes.push(unsafe { PinnedValue::assume_marked(class) });
                classes.len() - 1
            })
        });
        index.map_or(0, |index| index as u64 + 1)
    }

    /// The class with this number.
    pub fn class_at(&self, number: usize) -> Option<PinnedValue> {
        self.classes.borrow().get(number.checked_sub(1)?).copied()
    }

    /// Tells the garbage collector which classes are in use.
    pub fn mark(&self, marker: &Marker) {
        self.classes.borrow().iter().for_each(|class| class.mark(marker));
    }

    fn add_track(&self, thread_name: String, thread: Value) -> u32 {
        let number = NEXT_TRACK.fetch_add(1, Ordering::Relaxed);
        let mut tracks = self.tracks.borrow_mut();
        if tracks.len() == MAX_TRACKS {
            tracks.pop_front();
        }
        tracks.push_back(TrackInfo { number, thread_name, thread: address(thread) });
        number
    }

    fn collected(&self, gvl: &Collecting, begins: bool) {
        let now = Instant::now();
        if begins {
            return self.collecting_since.set(Some(now));
        }
        if let Some(since) = self.collecting_since.take() {
            let mut ring = self.ring.borrow_mut();
            let time = ring.time_of(since);
            let (detail, fiber) = (ring.time_of(now) - time, address(thread::current(gvl)));
            ring.push(Record { time, fiber, detail, value: 0, track: NO_TRACK, kind: Kind::Collection, what: 0 });
        }
    }
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
        let number = session.add_track(thread::name(owner)?, owner);
        let known: Vec<FiberKey> = self.state.borrow().fibers.iter().map(|(key, _)| key).collect();
        for key in known {
            let Some(fiber) = self.state.borrow().fibers.fiber(key) else { continue };
            let identity = fiber::id(fiber)?;
            session.identities.borrow_mut().insert((number, key.number()), identity);
            if let Some(names) = names
                && let Some(name) = fiber::name(fiber)
            {
                names.aset(identity, name)?;
            }
        }
        let track = Track::new(Rc::clone(&session.ring), number);
        let here = same(owner, thread::current(ruby));
        self.state.borrow_mut().begin_trace(Tracing::new(track, session), here);
        Ok(())
    }

    /// The scheduler, which is traced, has a new fiber with this key.
    #[cold]
    pub fn trace_fiber(&self, key: FiberKey, fiber: Value) {
        let Some(identity) = fiber::id(fiber).not_an_interrupt("no memory: the trace does not name it") else { return };
        if let Some(trace) = &self.state.borrow().trace {
            trace.session().identities.borrow_mut().insert((trace.number(), key.number()), identity);
        }
    }

    /// Whether there is a trace.
    #[inline]
    pub fn is_traced(&self) -> bool {
        self.state.borrow().trace.is_some()
    }
}
