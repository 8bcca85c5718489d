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

/// Names a record: its place, and a serial number. A key whose record is gone never means a later one.
// One number, so that it is compared and copied as one.
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

/// Where a fiber is in its life.
///
/// ```text
///              spawn                      switch to it
///   (unknown) ───────▶ Runnable ─────────────────────────▶ Running ───▶ (ended: no record)
///                          ▲                                │    │
///                          │ what it waits for has come     │    │ yields its turn
///                          │ (or it is raised into)         │    │
///                          │                        waits   │    │
///                       Waiting ◀───────────────────────────┘    │
///                          ▲                                     │
///                          └────── Runnable ◀────────────────────┘
/// ```
///
/// `Running` says that it has the turn. It may have `resume`d another fiber that runs, or waits, in its stead; then it
/// is still `Running` here, and must not be switched to.
///
/// Ruby itself may give the control to a fiber that is `Waiting` or `Runnable`, when another one ends or raises into
/// it. It stays in its state then, and hands the control on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FiberState {
    /// On the run queue.
    Runnable,
    /// Has the turn.
    Running,
    /// Waits for what its record says.
    Waiting,
    /// The process forked, and this fiber did not come along.
    Lost,
}

/// An exception on its way to a fiber.
#[derive(Debug, Clone, Copy)]
pub struct PendingRaise {
    /// The arguments of `raise`: a class or an exception, and perhaps a message.
    pub exception: PinnedValue,
    /// The message, if `exception` is to be called with one.
    pub message: Option<PinnedValue>,
    /// How long it is meant.
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

    /// What is to be raised in the fiber that is running.
    pub fn to_error(self) -> Error {
        if self.scope == RaiseScope::Kill {
            return fiber::kill_current().unwrap_or_else(|| make_exception(self.exception, None));
        }
        make_exception(self.exception, self.message)
    }
}

/// When a delivery that has not been raised yet is void.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RaiseScope {
    /// When the wait is over that was under way when it came.
    Wait,
    /// When the block of `timeout_after` with this number has ended.
    Deadline(u64),
    /// The same, and it is raised again if the block swallows it.
    Limit(u64),
    /// When whoever sent it takes it back, by this number.
    Message(u64),
    /// Never.
    Fiber,
    /// Never. It is the fiber's end, and is raised again if the fiber swallows it.
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

/// What happens to a block that takes too long.
#[derive(Debug, Clone, Copy)]
pub enum Limit {
    /// What `raise` makes of these is raised in it.
    Once {
        /// A class or an exception.
        exception: PinnedValue,
        /// The message, if `exception` is to be called with one.
        message: Option<PinnedValue>,
    },
    /// This exception is raised in it, until it ends.
    Repeated(PinnedValue),
}

/// What the scheduler knows of a fiber.
pub struct Record {
    key: FiberKey,
    /// The fiber. Marked and pinned as long as the record exists.
    pub fiber: PinnedValue,
    /// See [`FiberState`]. Changed by [`Fibers::set_state`] alone, which keeps the counts.
    state: FiberState,
    /// What it waits for, if it does.
    pub wait: Wait,
    /// Made by the `fiber` hook, so its record lasts until its end. Other fibers have one only while they are in a hook.
    pub managed: bool,
    /// May be preempted.
    pub preemptible: bool,
    /// Of one that has no record of its own otherwise: the fiber that has the turn, which has resumed it.
    pub resumed_by: Option<FiberKey>,
    /// A blocking fiber, as a thread's root is: it waits for the others, nobody waits for it.
    pub blocking: bool,
    /// The block that it runs, for messages.
    pub block: Option<PinnedValue>,
    /// How often `unblock` named it. Who blocks compares.
    pub unblocks: u32,
    /// How often that was when its last hook ended; a preemption is none.
    pub unblocks_seen: u32,
    /// Whether its last `Mutex#sleep` was ended by `unblock`, and not by its time.
    pub sleep_was_ended: bool,
    /// How often it has begun to wait.
    pub waits: u32,
    /// The descriptor on which its last read or write answered EAGAIN: Ruby will wait for it next.
    pub would_block: Option<RawFd>,
    /// The socket on which it has sent, and not received since.
    pub answer_on: Option<RawFd>,
    /// It has been told to end.
    pub end_requested: bool,
    /// What the scheduler knows of that.
    pub end_request: Option<Box<EndRequest>>,
    /// Exceptions to raise, in order.
    pub pending_raises: PendingRaises,
    /// It has written, waited for an IO, or been preempted, and has not waited for anything else since; see
    /// [`super::lock_handoff`].
    pub yield_after_unlock: bool,
    /// For structured concurrency.
    pub task: TaskData,
    /// What to fetch before its turn comes.
    pub prefetch_hints: PrefetchHints,
    /// The number of its valid entry in the run queue; entries with other numbers are void.
    epoch: u32,
    /// How many hooks (nested by traps and timeouts) are under way in it.
    pub hook_depth: u32,
    /// How many of those run a block of the program's, which may be preempted (`timeout_after`).
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

    /// Whether it must not be preempted now: it is in a hook, in a critical section, or has not begun.
    pub fn is_shielded(&self) -> bool {
        self.hook_depth > self.user_block_depth || self.wait == Wait::NotStarted
    }

    /// Whether it has been killed, and has not ended yet.
    #[inline]
    pub fn is_being_killed(&self) -> bool {
        self.end_request.as_ref().is_some_and(|request| request.is_killed())
    }

    /// Whether it is in a hook that waits.
    pub fn is_waiting(&self) -> bool {
        !matches!(self.wait, Wait::Nothing | Wait::NotStarted | Wait::Preempted)
    }

    /// Whether it is to be told when all are told to end.
    pub fn is_stoppable(&self) -> bool {
        let is_told = self.end_requested || self.task.shield.holds_back(RaiseScope::End);
        !(is_told || self.blocking || self.wait == Wait::Drain)
    }

    /// Whether its record must outlast its hooks: what was sent to a root, which comes back, that it has been told to end,
    /// and a wake-up that it has not seen, must not get lost.
    pub fn must_outlive_hooks(&self) -> bool {
        let wake_up = self.unblocks != self.unblocks_seen;
        wake_up
            || self.end_request.is_some()
            || self.blocking && !(self.pending_raises.is_empty() && self.task.inbox.is_empty())
    }

    /// Returns the ticket of the new state.
    #[inline]
    fn move_to(&mut self, state: FiberState, parked: &mut Parked) -> u32 {
        let was_parked = self.is_parked();
        self.state = state;
        self.epoch = self.epoch.wrapping_add(1);
        if was_parked != self.is_parked() {
            // What it waits for changes only while it is not parked, so it is discounted where it was counted.
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

    /// It gives up its turn. Returns what it waited for until then, and the ticket for its entry in the run queue.
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

    /// A hook of it has ended. Unless it leaves wake-ups, those that have come until now are not for the next one.
    #[inline(always)]
    pub fn leave_hook(&mut self, keeps_wake_ups: bool) {
        self.hook_depth -= 1;
        if !keeps_wake_ups {
            self.unblocks_seen = self.unblocks;
        }
    }

    /// It has the turn, unless it is lost.
    #[inline]
    fn set_running(&mut self, parked: &mut Parked) {
        if self.state != FiberState::Lost {
            self.move_to(FiberState::Running, parked);
        }
        if self.wait == Wait::Raiser {
            self.wait = Wait::Nothing;
        }
    }

    /// Whether it has given its turn away within a hook.
    pub fn is_parked(&self) -> bool {
        matches!(self.state, FiberState::Waiting | FiberState::Runnable)
    }
}

/// A record takes so many cache lines, wherever it begins.
const LINES_OF_RECORD: usize = size_of::<Record>() / LINE + 1;

/// All fibers that the scheduler knows.
#[derive(Default)]
pub struct Fibers {
    records: Slab<Record>,
    by_fiber: FxHashMap<PinnedValue, FiberKey>,
    next_serial: u32,
    parked: Parked,
}

/// A fiber whose turn has come.
#[derive(Debug, Clone, Copy)]
pub struct Claimed {
    /// The fiber.
    pub fiber: PinnedValue,
    /// Its key.
    pub key: FiberKey,
    /// It has begun, and its record goes when it ends: then it need not be asked whether it is alive, which means to
    /// fetch it into the cache.
    pub is_started: bool,
}

/// How many fibers are parked.
#[derive(Default)]
struct Parked {
    /// Those that the scheduler has to see to their ends before it may close.
    awaited: usize,
    /// Those that wait for the end of all others, and the root for them.
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

// Not a method, for those who change the counts at the same time.
#[inline(always)]
fn record_mut(records: &mut Slab<Record>, key: FiberKey) -> Option<&mut Record> {
    records.get_mut(key.index()).filter(|record| record.key == key)
}

impl Fibers {
    /// Takes a fiber into the books, as `Running`.
    pub fn insert(
        &mut self,
        fiber: PinnedValue,
        managed: bool,
        blocking: bool,
        block: Option<PinnedValue>,
    ) -> FiberKey {
        self.next_serial = self.next_serial.wrapping_add(1);
        let place = self.records.vacant_entry();
        let index = u32::try_from(place.key()).expect("four thousand million fibers do not fit into memory");
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

    /// Forgets a fiber.
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

    /// The key of a fiber, if it is in the books.
    pub fn find(&self, fiber: PinnedValue) -> Option<FiberKey> {
        self.by_fiber.get(&fiber).copied()
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Has the record itself fetched into the cache.
    pub fn prefetch(&self, key: FiberKey) {
        if let Some(record) = self.records.get(key.index()) {
            prefetch(std::ptr::from_ref(record).addr(), LINES_OF_RECORD);
        }
    }

    /// All records.
    pub fn iter(&self) -> impl Iterator<Item = (FiberKey, &Record)> {
        self.records.iter().map(|(_, record)| (record.key, record))
    }

    /// Moves a fiber to another state. Returns the ticket for its entry in the run queue; all earlier ones are void.
    pub fn set_state(&mut self, key: FiberKey, state: FiberState) -> u32 {
        let record = record_mut(&mut self.records, key);
        record.map_or(0, |record| record.move_to(state, &mut self.parked))
    }

    /// The fiber gives up its turn by itself. Returns what it waited for until then, and the ticket for its entry in the
    /// run queue.
    pub fn requeue(&mut self, key: FiberKey, wait: Wait) -> Option<(Wait, u32)> {
        record_mut(&mut self.records, key).map(|record| record.requeue(wait, &mut self.parked))
    }

    /// The fiber has the turn, unless it is lost. Returns it if it is in the books.
    pub fn set_running(&mut self, key: FiberKey) -> Option<PinnedValue> {
        let record = record_mut(&mut self.records, key)?;
        record.set_running(&mut self.parked);
        Some(record.fiber)
    }

    /// The fiber has the turn, if its entry with this ticket is still valid.
    pub fn claim(&mut self, key: FiberKey, epoch: u32) -> Option<Claimed> {
        let record = record_mut(&mut self.records, key)?;
        if record.epoch != epoch || record.state != FiberState::Runnable {
            return None;
        }
        let is_started = record.managed && record.wait != Wait::NotStarted;
        record.set_running(&mut self.parked);
        Some(Claimed { fiber: record.fiber, key, is_started })
    }

    /// How many fibers must come to their end before this one, which waits for that, may go on. A blocking fiber, as the
    /// root is, waits for those as well that wait for all others themselves.
    pub fn awaited_by(&self, key: FiberKey) -> usize {
        let blocking = self.get(key).is_none_or(|record| record.blocking);
        if blocking { self.parked.awaited + self.parked.draining } else { self.parked.awaited }
    }

    /// Whether a fiber, and no blocking one, waits for the end of all others.
    pub fn is_draining(&self) -> bool {
        self.parked.draining > 0
    }

    /// Those that wait for the end of all others, and for whom there is none left.
    pub fn finished_drainers(&self) -> Vec<FiberKey> {
        if self.parked.awaited > 0 {
            return Vec::new();
        }
        let drains = |record: &Record| record.wait == Wait::Drain && record.state == FiberState::Waiting;
        self.iter().filter(|(key, record)| drains(record) && self.awaited_by(*key) == 0).map(|(key, _)| key).collect()
    }

    /// Whether a blocking fiber has given its turn away: then that one, or one that it resumed, answers for interrupts.
    pub fn has_parked_blocking(&self) -> bool {
        self.parked.blocking > 0
    }

    /// The same of a fiber that is not ours, and was not resumed by one of ours: then the root has resumed it.
    pub fn has_parked_unmanaged(&self) -> bool {
        self.iter().any(|(_, record)| record.is_parked() && !record.managed && record.resumed_by.is_none())
    }
}
