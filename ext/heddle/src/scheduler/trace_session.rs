//! A trace: its records, and what they refer to.

use std::cell::{Cell, Ref, RefCell};
use std::collections::{TryReserveError, VecDeque};
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use heddle_core::observe::trace::{Kind, Ring, TraceRecord, Track};
use magnus::Value;
use magnus::gc::Marker;
use rustc_hash::FxHashMap;

use super::record::FiberKey;
use crate::ruby::gvl::Collecting;
use crate::ruby::value::{PinnedValue, address};
use crate::ruby::{fork, thread};

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

/// The next track's number. No two traces have the same numbers, as a thread may remember one of an earlier trace.
static NEXT_TRACK: AtomicU32 = AtomicU32::new(NO_TRACK + 1);

impl Session {
    /// A trace with room for `capacity` records.
    pub(super) fn new(capacity: usize) -> Result<Self, TryReserveError> {
        Ok(Session {
            ring: Rc::new(RefCell::new(Ring::new(capacity)?)),
            generation: fork::generation(),
            begun_at: Cell::new(Instant::now()),
            identities: RefCell::default(),
            classes: RefCell::default(),
            tracks: RefCell::default(),
            collecting_since: Cell::new(None),
        })
    }

    /// The recording begins.
    pub(super) fn begin(&self) {
        self.ring.borrow_mut().begin();
        self.begun_at.set(Instant::now());
    }

    /// The recording ends.
    pub(super) fn end(&self) {
        let now = self.ring.borrow().now();
        self.ring.borrow_mut().give_time(now);
    }

    /// Keeps what the fibers' ends have told: which fibers they were.
    pub(super) fn keep_ended(&self) {
        let ring = self.ring.borrow();
        let ends = ring.iter().filter(|record| record.kind == Kind::End);
        self.identities.borrow_mut().extend(ends.map(|end| ((end.track, end.fiber), end.detail)));
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

    /// The key names this fiber from now on.
    pub(super) fn note_fiber(&self, track: u32, key: FiberKey, identity: u64) {
        self.identities.borrow_mut().insert((track, key.number()), identity);
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

    /// A track for a scheduler, whose thread is this one.
    pub(super) fn add_track(&self, thread_name: String, thread: Value) -> Track {
        let number = NEXT_TRACK.fetch_add(1, Ordering::Relaxed);
        let mut tracks = self.tracks.borrow_mut();
        if tracks.len() == MAX_TRACKS {
            tracks.pop_front();
        }
        tracks.push_back(TrackInfo { number, thread_name, thread: address(thread) });
        Track::new(Rc::clone(&self.ring), number)
    }

    /// A garbage collection, or a step of one, begins or ends.
    pub(super) fn collected(&self, gvl: &Collecting, begins: bool) {
        let now = Instant::now();
        if begins {
            return self.collecting_since.set(Some(now));
        }
        if let Some(since) = self.collecting_since.take() {
            let mut ring = self.ring.borrow_mut();
            let time = ring.time_of(since);
            let (detail, fiber) = (ring.time_of(now) - time, address(thread::current(gvl)));
            ring.push(TraceRecord { time, fiber, detail, value: 0, track: NO_TRACK, kind: Kind::Collection, what: 0 });
        }
    }
}
