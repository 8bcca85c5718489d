//! The fibers that the scheduler knows: the state that each is in, the run queue, and which fiber runs.
//!
//! All three are changed here alone. What observes the fibers must be told of most changes, so only the files of the
//! state call the methods that make them.

use std::collections::hash_map::Entry;
use std::time::Instant;

use heddle_core::queue::run_queue::{Policy, RunQueue};
use magnus::Value;
use magnus::gc::Marker;
use rustc_hash::FxHashMap;
use slab::Slab;

use crate::ruby::value::{Identity, PinnedValue};
use crate::scheduler::ended_stacks::Begun;
use crate::scheduler::pending_raises::PendingRaises;
use crate::scheduler::record::{FiberKey, FiberState, Parked, Record};
use crate::scheduler::task_data::TaskData;
use crate::scheduler::wait::Wait;

/// All fibers that the scheduler knows.
#[derive(Default)]
pub struct Fibers {
    records: Slab<Record>,
    by_fiber: FxHashMap<Identity, FiberKey>,
    last_serial: u32,
    parked: Parked,
    /// Entries are valid as long as the fiber's epoch is the same.
    queue: RunQueue<(FiberKey, u32)>,
    /// The fiber that the scheduler switched to last. Ruby switches fibers on its own, too, so another fiber may be
    /// running.
    current: Option<(PinnedValue, FiberKey)>,
}

/// Where a fiber that yields is put in the run queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requeue {
    /// Behind all woken fibers.
    Last,
    /// Before all others: a fiber that yields only so that the root can check its interrupts.
    First,
    /// Among the preempted fibers.
    Preempted(Instant),
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

// Not methods of [`Fibers`], so that a caller can borrow another field at the same time.
fn record(records: &Slab<Record>, key: FiberKey) -> Option<&Record> {
    records.get(key.index()).filter(|record| record.key == key)
}

#[inline(always)]
fn record_mut(records: &mut Slab<Record>, key: FiberKey) -> Option<&mut Record> {
    records.get_mut(key.index()).filter(|record| record.key == key)
}

/// Whether an entry of the run queue is void.
fn is_void_in(records: &Slab<Record>) -> impl Fn(&(FiberKey, u32)) -> bool {
    |(key, epoch)| !record(records, *key).is_some_and(|record| record.is_claimable(*epoch))
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
            generator: None,
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
            may_unwind: false,
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
    pub(super) fn remove(&mut self, key: FiberKey) -> Option<PinnedValue> {
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
        record(&self.records, key)
    }

    /// The record with this key, if it still exists.
    pub fn get_mut(&mut self, key: FiberKey) -> Option<&mut Record> {
        record_mut(&mut self.records, key)
    }

    /// The record, with the counts that a change of the fiber's state needs.
    #[inline(always)]
    fn get_with_parked(&mut self, key: FiberKey) -> Option<(&mut Record, &mut Parked)> {
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
    pub(super) fn polled(&mut self, now: Instant, parking: Option<FiberKey>) {
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
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Record> {
        self.records.iter_mut().map(|(_, record)| record)
    }

    /// All records.
    pub fn iter(&self) -> impl Iterator<Item = (FiberKey, &Record)> {
        self.records.iter().map(|(_, record)| (record.key, record))
    }

    /// The fiber never runs again.
    pub(super) fn lose(&mut self, key: FiberKey) {
        if let Some((record, parked)) = self.get_with_parked(key) {
            record.move_to(FiberState::Lost, parked);
        }
    }

    /// The fiber that the scheduler switched to last, unless it is known to have stopped running.
    pub fn current(&self) -> Option<(PinnedValue, FiberKey)> {
        self.current
    }

    /// Whether the scheduler switched to this fiber last.
    #[inline]
    pub(super) fn is_chosen(&self, key: FiberKey) -> bool {
        self.current.is_some_and(|(_, running)| running == key)
    }

    /// Whether this fiber is the current one.
    pub fn is_current(&self, key: FiberKey) -> bool {
        self.is_chosen(key) && self.get(key).is_some_and(|record| record.state() == FiberState::Running)
    }

    /// The fiber that the scheduler switched to last, if it is the current one: it has resumed a fiber that runs without
    /// a record.
    pub fn resumer(&self) -> Option<FiberKey> {
        self.current.map(|(_, key)| key).filter(|key| self.is_current(*key))
    }

    /// The key of the fiber that runs, or, if it has no record, of the fiber that the scheduler switched to last.
    pub fn find_running(&self, running: impl Into<Identity>) -> Option<FiberKey> {
        self.find(running).or_else(|| self.current.map(|(_, key)| key))
    }

    /// Makes the fiber the current one, whether or not it was picked.
    pub(super) fn set_current(&mut self, key: FiberKey) {
        self.current = self.get_with_parked(key).map(|(record, parked)| {
            record.set_running(parked);
            (record.fiber, key)
        });
    }

    /// It is not known which fiber runs.
    pub fn clear_current(&mut self) {
        self.current = None;
    }

    /// The fiber, which is not managed, leaves its outermost hook. The fiber that resumed it becomes the current one
    /// again.
    pub(super) fn return_to_resumer(&mut self, key: FiberKey) {
        if self.is_current(key) {
            let resumer = self.get(key).and_then(|record| record.resumed_by);
            self.current = resumer.and_then(|resumer| {
                let record = self.get(resumer).filter(|record| record.state() == FiberState::Running)?;
                Some((record.fiber, resumer))
            });
        }
    }

    /// `current` enters a hook. `None` if it is not the fiber that the scheduler switched to.
    #[inline(always)]
    pub fn enter_hook(&mut self, current: Value) -> Option<&mut Record> {
        let (_, key) = self.current.filter(|(fiber, _)| *fiber == current)?;
        let record = self.get_mut(key)?;
        record.hook_depth += 1;
        Some(record)
    }

    /// `current` enters a hook that only yields. Returns its key, and what it waited for until then. `None` as for
    /// [`Fibers::enter_hook`].
    #[inline(always)]
    pub fn enter_and_requeue(&mut self, current: Value) -> Option<(FiberKey, Wait)> {
        let (_, key) = self.current.filter(|(fiber, _)| *fiber == current)?;
        let (record, parked) = self.get_with_parked(key)?;
        record.hook_depth += 1;
        let (outer, epoch) = record.requeue(Wait::Yielded, parked);
        self.queue.push_yielded((key, epoch));
        Some((key, outer))
    }

    /// Makes a fiber runnable, at the end of the run queue. False if it has no record.
    #[inline]
    pub(super) fn enqueue(&mut self, key: FiberKey) -> bool {
        let Some((record, parked)) = self.get_with_parked(key) else { return false };
        let has_slept = record.wait == Wait::Sleep;
        let entry = (key, record.move_to(FiberState::Runnable, parked));
        if has_slept {
            self.queue.push_slept(entry, is_void_in(&self.records));
        } else {
            self.queue.push_woken(entry);
        }
        true
    }

    /// Moves a fiber to the front of the woken ones, unless it was preempted. False if it is not in the queue.
    pub fn move_to_front(&mut self, key: FiberKey) -> bool {
        let entry = self.renew_entry(key, |wait| wait != Wait::Preempted);
        entry.into_iter().for_each(|entry| self.queue.push_next(entry));
        entry.is_some()
    }

    /// Has a fiber run next, ahead of starters, preempted fibers and an exploration's choice, if it was woken from a
    /// wait that `unblock` ends. False if it is not in the queue, or waits there since it has yielded: two fibers that hand
    /// off to each other would keep all others from running.
    pub fn hand_off(&mut self, key: FiberKey) -> bool {
        let entry = self.renew_entry(key, Wait::is_unblockable);
        entry.into_iter().for_each(|entry| self.queue.push_first(entry));
        entry.is_some()
    }

    /// A new entry for a fiber that is in the run queue, after a wait that `applies`. The old one is void.
    fn renew_entry(&mut self, key: FiberKey, applies: impl FnOnce(Wait) -> bool) -> Option<(FiberKey, u32)> {
        let (record, parked) = self.get_with_parked(key)?;
        (record.state() == FiberState::Runnable && applies(record.wait))
            .then(|| (key, record.move_to(FiberState::Runnable, parked)))
    }

    /// Running → runnable: the fiber yields. Returns what it waited for until then. If a test chooses the schedule,
    /// `is_explored`, there is no class of preempted fibers.
    #[inline(always)]
    pub(super) fn requeue(&mut self, key: FiberKey, position: Requeue, is_explored: bool) -> Option<Wait> {
        let wait = if position == Requeue::Last { Wait::Yielded } else { Wait::Preempted };
        let (record, parked) = self.get_with_parked(key)?;
        let (outer, epoch) = record.requeue(wait, parked);
        match position {
            Requeue::First => self.queue.push_next((key, epoch)),
            Requeue::Preempted(now) if !is_explored => self.queue.push_preempted((key, epoch), now),
            Requeue::Last | Requeue::Preempted(_) => self.queue.push_yielded((key, epoch)),
        }
        Some(outer)
    }

    /// Running → runnable: the fiber starts another one. A test that chooses the schedule says whether it runs next.
    pub(super) fn requeue_starter(&mut self, key: FiberKey, runs_next: Option<bool>, clock: fn() -> Instant) {
        let Some((record, parked)) = self.get_with_parked(key) else { return };
        let entry = (key, record.move_to(FiberState::Runnable, parked));
        match runs_next {
            None => self.queue.push_starter(entry, clock),
            Some(true) => self.queue.push_next(entry),
            Some(false) => self.queue.push_woken(entry),
        }
    }

    /// Running → waiting. False, with nothing done, for a fiber that is being killed.
    #[inline(always)]
    pub(super) fn set_waiting(&mut self, key: FiberKey) -> bool {
        let Some((record, parked)) = self.get_with_parked(key) else { return true };
        if record.is_being_killed() {
            return false;
        }
        if record.state() != FiberState::Lost {
            record.move_to(FiberState::Waiting, parked);
        }
        true
    }

    /// Takes the first fiber off the run queue, and makes it `Running`. Entries that are void are dropped.
    #[inline(always)]
    pub(super) fn claim_next(&mut self) -> Option<Claimed> {
        let (records, parked) = (&mut self.records, &mut self.parked);
        self.queue.pop(
            #[inline(always)]
            |(key, epoch)| {
                let record = record_mut(records, *key).filter(|record| record.is_claimable(*epoch))?;
                let is_started = record.managed && !matches!(record.wait, Wait::NotStarted);
                record.set_running(parked);
                Some(Claimed { fiber: record.fiber, key: *key, is_started })
            },
        )
    }

    /// The fiber that was claimed is the current one.
    #[inline(always)]
    pub(super) fn set_claimed(&mut self, next: &Claimed) {
        self.current = Some((next.fiber, next.key));
    }

    /// The run queue, to be read. Its entries include those that are not valid any more.
    pub fn queue(&self) -> &RunQueue<(FiberKey, u32)> {
        &self.queue
    }

    /// How the run queue divides time among fibers from now on.
    pub fn set_policy(&mut self, policy: Policy) {
        self.queue.set_policy(policy);
    }

    /// See [`RunQueue::should_preempt`].
    pub(super) fn should_preempt(&mut self, now: Instant) -> bool {
        self.queue.should_preempt(now)
    }

    /// See [`RunQueue::forget_slice`].
    pub(super) fn forget_slice(&mut self) {
        self.queue.forget_slice();
    }

    /// Woken fibers whose sleep has ended run next.
    pub(super) fn prefer_sleepers(&mut self) {
        self.queue.prefer_sleepers(is_void_in(&self.records));
    }

    /// Removes the entries of the run queue that are void.
    pub(super) fn drop_void(&mut self) {
        self.queue.drop_void(is_void_in(&self.records));
    }

    /// See [`RunQueue::move_to_head`].
    pub(super) fn move_to_head(&mut self, index: usize) {
        self.queue.move_to_head(index);
    }

    /// Tells the garbage collector what is held.
    pub(super) fn mark(&self, marker: &Marker) {
        self.iter().for_each(|(_, record)| record.mark(marker));
        self.current.inspect(|(fiber, _)| fiber.mark(marker));
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
