//! The fibers that the scheduler knows, and the state each is in.

use std::os::fd::RawFd;

use heddle_core::prefetch::{LINE, prefetch};
use magnus::Error;
use magnus::gc::Marker;
use rustc_hash::FxHashMap;
use slab::Slab;

use super::pending_raises::PendingRaises;
use super::prefetch_hints::PrefetchHints;
use super::state::ending::EndRequest;
use super::task_data::TaskData;
use super::wait::Wait;
use crate::ruby::error::make_exception;
use crate::ruby::fiber;
use crate::ruby::value::PinnedValue;

/// Names a record: its index, and a serial number. A key whose record is gone never names a later record.
// One integer, so that it is compared and copied as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FiberKey(u64);

impl FiberKey {
    fn new(index: u32, serial: u32) -> Self {
        FiberKey(u64::from(serial) << u32::BITS | u64::from(index))
    }

    fn index(self) -> usize {
        self.0 as u32 as usize
    }
}

/// The state of a fiber.
///
/// ```text
///              spawn                      switch to it
///   (unknown) ───────▶ Runnable ─────────────────────────▶ Running ───▶ (ended: no record)
///                          ▲                                │    │
///                          │ what it waits for has come     │    │ yields
///                          │ (or it is raised into)         │    │
///                          │                        waits   │    │
///                       Waiting ◀───────────────────────────┘    │
///                          ▲                                     │
///                          └────── Runnable ◀────────────────────┘
/// ```
///
/// `Running` says that the scheduler switched to the fiber. The fiber may have `resume`d another fiber, which runs or
/// waits instead. Then it is still `Running` here, and must not be switched to.
///
/// Ruby itself may give control to a fiber that is `Waiting` or `Runnable`, when another fiber ends or raises into it.
/// The fiber stays in its state, and parks again; see [`park`](super::park).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FiberState {
    /// On the run queue.
    Runnable,
    /// The scheduler has switched to it.
    Running,
    /// Waits for the event in [`Record::wait`].
    Waiting,
    /// The process forked and this fiber stayed in the parent, or the scheduler was closed.
    Lost,
}

/// An exception that is to be raised in a fiber.
#[derive(Debug, Clone, Copy)]
pub struct PendingRaise {
    /// The arguments of `raise`: a class or an exception, and perhaps a message.
    pub exception: PinnedValue,
    /// The message, if `exception` is to be called with one.
    pub message: Option<PinnedValue>,
    /// Until when it is valid.
    pub scope: RaiseScope,
}

impl PendingRaise {
    /// Tells the garbage collector what is held.
    pub fn mark(&self, marker: &Marker) {
        self.exception.mark(marker);
        if let Some(message) = self.message {
            message.mark(marker);
        }
    }

    /// The error to raise in the fiber, which is the running one.
    pub fn to_error(self) -> Error {
        if self.scope == RaiseScope::Kill {
            return fiber::kill_current().unwrap_or_else(|| make_exception(self.exception, None));
        }
        make_exception(self.exception, self.message)
    }
}

/// When an exception that has not been raised yet is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RaiseScope {
    /// When the wait ends that was under way when the exception was sent.
    Wait,
    /// When the block of `timeout_after` with this number has ended.
    Deadline(u64),
    /// As for `Deadline`. The exception is raised again if the block swallows it.
    Limit(u64),
    /// When its sender retracts it, by this number.
    Message(u64),
    /// Never.
    Fiber,
    /// Never. It ends the fiber, and is raised again if the fiber swallows it.
    End,
    /// Never. The fiber is killed in its next wait.
    Kill,
}

impl RaiseScope {
    /// Whether it is raised again if it is swallowed.
    pub fn is_repeated(self) -> bool {
        matches!(self, RaiseScope::Limit(_) | RaiseScope::End)
    }

    /// The number of the block that it limits.
    pub fn deadline(self) -> Option<u64> {
        match self {
            RaiseScope::Deadline(number) | RaiseScope::Limit(number) => Some(number),
            RaiseScope::Wait | RaiseScope::Message(_) | RaiseScope::Fiber | RaiseScope::End | RaiseScope::Kill => None,
        }
    }
}

/// What is raised in a block that takes too long.
#[derive(Debug, Clone, Copy)]
pub enum Limit {
    /// The exception that `raise` makes of these, once.
    Once {
        /// A class or an exception.
        exception: PinnedValue,
        /// The message, if `exception` is to be called with one.
        message: Option<PinnedValue>,
    },
    /// This exception, again and again until the block ends.
    Repeated(PinnedValue),
}

/// What the scheduler knows about a fiber.
pub struct Record {
    key: FiberKey,
    /// The Ruby fiber. Marked and pinned as long as the record exists.
    pub fiber: PinnedValue,
    /// See [`FiberState`]. Only [`Fibers::set_state`] and its like change it, since they keep the counts of parked
    /// fibers.
    state: FiberState,
    /// What it waits for, if it waits.
    pub wait: Wait,
    /// The scheduler has made this fiber, so its record lasts until the fiber ends. Other fibers have one only while
    /// they are in a hook.
    pub managed: bool,
    /// Whether it may be preempted.
    pub preemptible: bool,
    /// For an unmanaged fiber: the fiber that was current when this one was registered, and so has resumed it.
    pub resumed_by: Option<FiberKey>,
    /// A blocking fiber, as a thread's root is: it waits for the others at the end, and no fiber waits for it.
    pub blocking: bool,
    /// The block that it runs, for messages.
    pub block: Option<PinnedValue>,
    /// How often `unblock` was called for it. A fiber that blocks compares this with `unblocks_seen`.
    pub unblocks: u32,
    /// The value of `unblocks` when its last hook ended. A preemption does not count as a hook.
    pub unblocks_seen: u32,
    /// Whether `unblock` ended its last `Mutex#sleep`, and not the timeout.
    pub sleep_was_ended: bool,
    /// How many times it has begun to wait.
    pub waits: u32,
    /// The descriptor on which its last read or write returned EAGAIN: Ruby will wait for it next.
    pub would_block: Option<RawFd>,
    /// The socket on which it has sent, and not received since: the peer's answer is expected there.
    pub answer_on: Option<RawFd>,
    /// `Fiber#kill` has been called on it: Ruby kills it again each time that it gets control, in its `ensure` clauses, too.
    pub killed: bool,
    /// It has been asked to end, or must not be asked any more.
    pub end_requested: bool,
    /// The grace period of that request.
    pub end_request: Option<Box<EndRequest>>,
    /// Exceptions to raise, in order.
    pub pending_raises: PendingRaises,
    /// The fiber yields when it releases a lock: it has written, waited for an IO, or been preempted, and has not
    /// waited for anything else since. See [`super::lock_handoff`].
    pub yield_after_unlock: bool,
    /// What structured concurrency stores.
    pub task: TaskData,
    /// What to prefetch before it runs.
    pub prefetch_hints: PrefetchHints,
    /// Its entry in the run queue is valid if it has this epoch; entries with other epochs are ignored.
    epoch: u32,
    /// How many hooks (nested by traps and timeouts) are under way in it.
    pub hook_depth: u32,
    /// How many of those hooks run a block of the program's, which may be preempted (`timeout_after`).
    pub user_block_depth: u32,
}

impl Record {
    /// Tells the garbage collector what is held.
    pub fn mark(&self, marker: &Marker) {
        self.fiber.mark(marker);
        if let Some(block) = self.block {
            block.mark(marker);
        }
        if let Wait::Block(blocker) = self.wait {
            blocker.mark(marker);
        }
        self.pending_raises.iter().for_each(|pending_raise| pending_raise.mark(marker));
        self.task.mark(marker);
    }

    /// See [`FiberState`].
    pub fn state(&self) -> FiberState {
        self.state
    }

    /// Whether it must not be preempted now: it is in a hook, in a critical section, or has not started.
    pub fn is_shielded(&self) -> bool {
        self.hook_depth > self.user_block_depth || self.wait == Wait::NotStarted
    }

    /// Whether it has been killed, and has not ended yet.
    #[inline]
    pub fn is_being_killed(&self) -> bool {
        self.end_request.as_ref().is_some_and(|request| request.is_killed())
    }

    /// Whether it waits for an IO in a hook, or runs, perhaps in a native call. A fiber that has left its wait is about to
    /// leave the IO, too.
    pub fn uses_io(&self) -> bool {
        !self.is_parked() || self.wait.is_for_io()
    }

    /// Whether it is in a hook that waits.
    pub fn is_waiting(&self) -> bool {
        !matches!(self.wait, Wait::Nothing | Wait::NotStarted | Wait::Preempted)
    }

    /// Whether it is asked to end when all fibers are.
    pub fn is_stoppable(&self) -> bool {
        let is_exempt = self.end_requested || self.task.shield.holds_back(RaiseScope::End);
        !(is_exempt || self.blocking || self.wait == Wait::Drain)
    }

    /// Whether its record must outlive its hooks. What must not get lost is a wake-up that the fiber has not seen, a
    /// request to end, and what was sent to a root, which comes back.
    pub fn must_outlive_hooks(&self) -> bool {
        let wake_up = self.unblocks != self.unblocks_seen;
        wake_up
            || self.end_request.is_some()
            || self.blocking && !(self.pending_raises.is_empty() && self.task.inbox.is_empty())
    }

    /// Returns the epoch of the new state.
    #[inline]
    fn move_to(&mut self, state: FiberState, parked: &mut Parked) -> u32 {
        let was_parked = self.is_parked();
        self.state = state;
        self.epoch = self.epoch.wrapping_add(1);
        if was_parked != self.is_parked() {
            // `wait` changes only while the fiber is not parked, so the same count is decremented that was
            // incremented.
            let count = parked.kind(self.blocking, self.wait);
            *count = if was_parked { *count - 1 } else { *count + 1 };
        }
        self.epoch
    }

    /// It is about to wait. Returns what it waited for until then: a trap handler may wait within a wait.
    #[inline]
    pub fn begin_wait(&mut self, wait: Wait) -> Wait {
        self.waits = self.waits.wrapping_add(1);
        self.yield_after_unlock = wait.keeps_yield_after_unlock(self.yield_after_unlock);
        std::mem::replace(&mut self.wait, wait)
    }

    /// It yields. Returns what it waited for until then, and the epoch for its entry in the run queue.
    #[inline(always)]
    fn requeue(&mut self, wait: Wait, parked: &mut Parked) -> (Wait, u32) {
        let outer = self.begin_wait(wait);
        (outer, self.move_to(FiberState::Runnable, parked))
    }

    /// See [`super::state::State::finish_yield`].
    #[inline(always)]
    pub fn finish_yield(&mut self, outer: Wait) -> bool {
        let is_plain = self.state == FiberState::Running && self.managed && self.pending_raises.is_empty();
        if is_plain {
            self.wait = outer;
            self.leave_hook(false);
        }
        is_plain
    }

    /// A hook has ended. Unless `keeps_wake_ups`, the wake-ups that have come until now do not count for the next
    /// hook.
    #[inline(always)]
    pub fn leave_hook(&mut self, keeps_wake_ups: bool) {
        self.hook_depth -= 1;
        if !keeps_wake_ups {
            self.unblocks_seen = self.unblocks;
        }
    }

    /// The scheduler switches to it, unless it is lost.
    #[inline]
    fn set_running(&mut self, parked: &mut Parked) {
        if self.state != FiberState::Lost {
            self.move_to(FiberState::Running, parked);
        }
        if self.wait == Wait::Raiser {
            self.wait = Wait::Nothing;
        }
    }

    /// Whether it has parked: the scheduler has switched from it to another fiber.
    pub fn is_parked(&self) -> bool {
        matches!(self.state, FiberState::Waiting | FiberState::Runnable)
    }
}

/// The number of cache lines that a record can overlap.
const LINES_OF_RECORD: usize = size_of::<Record>() / LINE + 1;

/// All fibers that the scheduler knows.
#[derive(Default)]
pub struct Fibers {
    records: Slab<Record>,
    by_fiber: FxHashMap<PinnedValue, FiberKey>,
    next_serial: u32,
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

/// How many fibers are parked.
#[derive(Default)]
struct Parked {
    /// Fibers that must end before the scheduler may close.
    awaited: usize,
    /// Fibers that wait for the end of all others. The root waits for them.
    draining: usize,
    blocking: usize,
}

impl Parked {
    fn kind(&mut self, blocking: bool, wait: Wait) -> &mut usize {
        match wait {
            _ if blocking => &mut self.blocking,
            Wait::Drain => &mut self.draining,
            _ => &mut self.awaited,
        }
    }
}

// Not a method of [`Fibers`], so that a caller can borrow `parked` at the same time.
#[inline(always)]
fn record_mut(records: &mut Slab<Record>, key: FiberKey) -> Option<&mut Record> {
    records.get_mut(key.index()).filter(|record| record.key == key)
}

impl Fibers {
    /// Adds a fiber, as `Running`.
    pub fn insert(
        &mut self,
        fiber: PinnedValue,
        managed: bool,
        blocking: bool,
        block: Option<PinnedValue>,
    ) -> FiberKey {
        self.next_serial = self.next_serial.wrapping_add(1);
        let place = self.records.vacant_entry();
        let index = u32::try_from(place.key()).expect("more than u32::MAX fibers");
        let key = FiberKey::new(index, self.next_serial);
        place.insert(Record {
            key,
            fiber,
            state: FiberState::Running,
            wait: Wait::Nothing,
            managed,
            preemptible: false,
            resumed_by: None,
            blocking,
            block,
            unblocks: 0,
            unblocks_seen: 0,
            sleep_was_ended: true,
            waits: 0,
            would_block: None,
            answer_on: None,
            killed: false,
            end_requested: false,
            end_request: None,
            pending_raises: PendingRaises::default(),
            yield_after_unlock: false,
            task: TaskData::default(),
            prefetch_hints: PrefetchHints::of(fiber),
            epoch: 0,
            hook_depth: 0,
            user_block_depth: 0,
        });
        self.by_fiber.insert(fiber, key);
        key
    }

    /// Removes a fiber's record.
    pub fn remove(&mut self, key: FiberKey) {
        if self.get(key).is_none() {
            return;
        }
        self.set_state(key, FiberState::Running);
        let record = self.records.remove(key.index());
        if self.by_fiber.get(&record.fiber) == Some(&key) {
            self.by_fiber.remove(&record.fiber);
        }
    }

    /// The record with this key, if it still exists.
    pub fn get(&self, key: FiberKey) -> Option<&Record> {
        self.records.get(key.index()).filter(|record| record.key == key)
    }

    /// The record with this key, if it still exists.
    pub fn get_mut(&mut self, key: FiberKey) -> Option<&mut Record> {
        record_mut(&mut self.records, key)
    }

    /// The key of a fiber, if it has a record.
    pub fn find(&self, fiber: PinnedValue) -> Option<FiberKey> {
        self.by_fiber.get(&fiber).copied()
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Prefetches the record itself.
    pub fn prefetch(&self, key: FiberKey) {
        if let Some(record) = self.records.get(key.index()) {
            prefetch(std::ptr::from_ref(record).addr(), LINES_OF_RECORD);
        }
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

    /// The fiber yields. Returns what it waited for until then, and the epoch for its entry in the run queue.
    pub fn requeue(&mut self, key: FiberKey, wait: Wait) -> Option<(Wait, u32)> {
        record_mut(&mut self.records, key).map(|record| record.requeue(wait, &mut self.parked))
    }

    /// The scheduler switches to the fiber, unless it is lost. Returns the fiber if it has a record.
    pub fn set_running(&mut self, key: FiberKey) -> Option<PinnedValue> {
        let record = record_mut(&mut self.records, key)?;
        record.set_running(&mut self.parked);
        Some(record.fiber)
    }

    /// Makes the fiber `Running`, if its entry with this epoch is still valid.
    pub fn claim(&mut self, key: FiberKey, epoch: u32) -> Option<Claimed> {
        let record = record_mut(&mut self.records, key)?;
        if record.epoch != epoch || record.state != FiberState::Runnable {
            return None;
        }
        let is_started = record.managed && record.wait != Wait::NotStarted;
        record.set_running(&mut self.parked);
        Some(Claimed { fiber: record.fiber, key, is_started })
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
        let drains = |record: &Record| record.wait == Wait::Drain && record.state == FiberState::Waiting;
        self.iter()
            .filter(|(key, record)| drains(record) && self.awaited_count(*key) == 0)
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
