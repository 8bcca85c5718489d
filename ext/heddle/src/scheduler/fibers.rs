//! The fibers that the scheduler knows.

use std::collections::hash_map::Entry;
use std::time::Instant;

use magnus::Value;
use rustc_hash::FxHashMap;
use slab::Slab;

use super::ended_stacks::Begun;
use super::pending_raises::PendingRaises;
use super::record::{FiberKey, FiberState, Parked, Record};
use super::task_data::TaskData;
use super::wait::Wait;
use crate::ruby::value::{Identity, PinnedValue};

/// All fibers that the scheduler knows.
#[derive(Default)]
pub struct Fibers {
    records: Slab<Record>,
    by_fiber: FxHashMap<Identity, FiberKey>,
    last_serial: u32,
    parked: Parked,
}

/// A fiber that was taken off the run queue.
#[derive(Debug, Clone, Copy)]
pub struct Claimed {
    /// The fiber.
    pub fiber: PinnedValue,
    /// Its key.
    pub key: FiberKey,
    /// It has started, and its record goes when it ends. Then `is_alive` need not be called, which would bring the
    /// fiber into the cache.
    pub is_started: bool,
}

// Not a method of [`Fibers`], so that a caller can borrow `parked` at the same time.
#[inline(always)]
fn record_mut(records: &mut Slab<Record>, key: FiberKey) -> Option<&mut Record> {
    records.get_mut(key.index()).filter(|record| record.key == key)
}

impl Fibers {
    /// Adds a fiber, as `Running`.
    pub fn insert(&mut self, fiber: Value, managed: bool, blocking: bool, block: Option<Value>) -> &mut Record {
        self.last_serial = self.last_serial.wrapping_add(1).max(1);
        let place = self.records.vacant_entry();
        let index = u32::try_from(place.key()).expect("more than u32::MAX fibers");
        let key = FiberKey::new(index, self.last_serial);
        self.by_fiber.insert(fiber.into(), key);
        // SAFETY: `Record::mark` marks it, as the next one.
        let pinned = unsafe { PinnedValue::assume_marked(fiber) };
        // SAFETY: see above.
        let block = block.map(|block| unsafe { PinnedValue::assume_marked(block) });
        place.insert(Record {
            key,
            fiber: pinned,
            state: FiberState::Running,
            since: self.parked.polled_at,
            runnable_since: None,
            wait: Wait::Nothing,
            managed,
            preemptible: false,
            resumed_by: None,
            account: key,
            blocking,
            block,
            unblocks: 0,
            unblocks_seen: 0,
            sleep_was_ended: true,
            // The record of another fiber is new in each hook.
            may_lock_again: !managed,
            waits: 0,
            would_block: None,
            answer_on: None,
            killed: false,
            stopped_by_kill: false,
            end_requested: false,
            end_request: None,
            pending_raises: PendingRaises::default(),
            yield_after_unlock: false,
            task: TaskData::default(),
            begun: Begun::default(),
            left_at: 0,
            epoch: 0,
            hook_depth: 0,
            user_block_depth: 0,
        })
    }

    /// Removes a fiber's record. Returns the fiber.
    pub fn remove(&mut self, key: FiberKey) -> Option<PinnedValue> {
        let (record, parked) = self.get_with_parked(key)?;
        record.move_to(FiberState::Running, parked);
        let fiber = record.fiber;
        drop(self.records.remove(key.index()));
        if let Entry::Occupied(entry) = self.by_fiber.entry(fiber.into())
            && *entry.get() == key
        {
            entry.remove();
        }
        Some(fiber)
    }

    /// The record with this key, if it still exists.
    pub fn get(&self, key: FiberKey) -> Option<&Record> {
        self.records.get(key.index()).filter(|record| record.key == key)
    }

    /// The record with this key, if it still exists.
    pub fn get_mut(&mut self, key: FiberKey) -> Option<&mut Record> {
        record_mut(&mut self.records, key)
    }

    /// Like [`Fibers::get_mut`], with the counts that a change of the fiber's state needs.
    #[inline(always)]
    pub fn get_with_parked(&mut self, key: FiberKey) -> Option<(&mut Record, &mut Parked)> {
        record_mut(&mut self.records, key).map(|record| (record, &mut self.parked))
    }

    /// The address of the record with this key, which is not read.
    pub fn address(&self, key: FiberKey) -> Option<usize> {
        self.records.get(key.index()).map(|record| std::ptr::from_ref(record).addr())
    }

    /// The fiber with this key, if its record still exists.
    pub fn fiber(&self, key: FiberKey) -> Option<Value> {
        self.get(key).map(|record| record.fiber.get())
    }

    /// The key of a fiber, if it has a record.
    pub fn find(&self, fiber: impl Into<Identity>) -> Option<FiberKey> {
        self.by_fiber.get(&fiber.into()).copied()
    }

    /// Timers and I/O are being polled, by the fiber `parking` if that has just parked. If it has not parked before the
    /// last poll, its state begins now, and not at the time of that poll: it may have computed for long.
    pub fn polled(&mut self, now: Instant, parking: Option<FiberKey>) {
        let last = std::mem::replace(&mut self.parked.polled_at, now);
        if let Some(record) = parking.and_then(|key| self.get_mut(key)).filter(|record| record.since == last) {
            record.since = now;
        }
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// All records, which can be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Record> {
        self.records.iter_mut().map(|(_, record)| record)
    }

    /// All records.
    pub fn iter(&self) -> impl Iterator<Item = (FiberKey, &Record)> {
        self.records.iter().map(|(_, record)| (record.key, record))
    }

    /// Moves a fiber to another state. Returns the epoch for its entry in the run queue; entries with earlier epochs
    /// are void.
    pub fn set_state(&mut self, key: FiberKey, state: FiberState) -> u32 {
        let record = record_mut(&mut self.records, key);
        record.map_or(0, |record| record.move_to(state, &mut self.parked))
    }

    /// The scheduler switches to the fiber, unless it is lost. Returns the fiber if it has a record.
    pub fn set_running(&mut self, key: FiberKey) -> Option<PinnedValue> {
        let record = record_mut(&mut self.records, key)?;
        record.set_running(&mut self.parked);
        Some(record.fiber)
    }

    /// Makes the fiber `Running`, if its entry with this epoch is still valid.
    #[inline(always)]
    pub fn claim(&mut self, key: FiberKey, epoch: u32) -> Option<Claimed> {
        let record = record_mut(&mut self.records, key)?;
        if !record.is_claimable(epoch) {
            return None;
        }
        let is_started = record.managed && !matches!(record.wait, Wait::NotStarted);
        record.set_running(&mut self.parked);
        Some(Claimed { fiber: record.fiber, key, is_started })
    }

    /// Whether the fiber's entry in the run queue with this epoch is void.
    pub fn is_void(&self, key: FiberKey, epoch: u32) -> bool {
        !self.get(key).is_some_and(|record| record.is_claimable(epoch))
    }

    /// How many fibers must end before this one, which waits for that, may continue. A blocking fiber, as the root is,
    /// also waits for the fibers that wait for all others.
    pub fn awaited_count(&self, key: FiberKey) -> usize {
        let blocking = self.get(key).is_none_or(|record| record.blocking);
        if blocking { self.parked.awaited + self.parked.draining } else { self.parked.awaited }
    }

    /// Whether a non-blocking fiber waits for the end of all others.
    pub fn is_draining(&self) -> bool {
        self.parked.draining > 0
    }

    /// The fibers that wait for the end of all others, and need not wait any more.
    pub fn finished_drainers(&self) -> Vec<FiberKey> {
        if self.parked.awaited > 0 {
            return Vec::new();
        }
        self.iter()
            .filter(|(key, record)| record.is_draining() && self.awaited_count(*key) == 0)
            .map(|(key, _)| key)
            .collect()
    }

    /// Whether a blocking fiber is parked: then it handles interrupts, or a fiber that it has resumed does.
    pub fn has_parked_blocking(&self) -> bool {
        self.parked.blocking > 0
    }

    /// Whether an unmanaged fiber is parked that no managed fiber has resumed: then the root has resumed it.
    pub fn has_parked_unmanaged(&self) -> bool {
        self.iter().any(|(_, record)| record.is_parked() && !record.managed && record.resumed_by.is_none())
    }
}
