//! The scheduler's state: which fiber runs, which fibers are runnable, and all events that make a fiber runnable.

pub mod accounts;
mod clock;
mod closings;
mod counters;
pub mod ending;
mod exploration;
pub mod fibers;
mod limits;
mod lock_holders;
mod look_ahead;
mod observers;
pub mod operations;
mod raises;
mod raising;
mod scopes;
mod slices;
pub mod tracing;
mod wait_resources;
mod waits;

use std::collections::BTreeMap;

use heddle_core::explore::exploration::Exploration;
use heddle_core::observe::timing::SliceTiming;
use heddle_core::queue::budget::Budget;
use heddle_core::queue::timers::Timers;
use magnus::gc::Marker;

use self::clock::Clock;
pub use self::clock::Others;
use self::closings::Closings;
pub use self::closings::{Interrupted, Signal, User};
use self::counters::Counters;
use self::ending::Endings;
use self::fibers::Fibers;
pub use self::fibers::Requeue;
use self::limits::Limits;
use self::lock_holders::LockHolders;
use self::look_ahead::LookAhead;
use self::observers::{Event, Observers};
pub use self::operations::{OperationEnd, Operations};
use self::raises::Raises;
pub use self::raising::Pending;
use self::scopes::Scopes;
use self::wait_resources::WaitResources;
pub use self::wait_resources::{OwnedDescriptor, Selection};
use super::raise::PendingRaise;
use super::record::{FiberKey, FiberState};
use super::wait::Wait;
use crate::ruby::value::PinnedValue;

/// What happens when a timer expires.
#[derive(Debug, Clone, Copy)]
pub enum TimerAction {
    /// Wakes the fiber that set the timer: its wait has timed out, or an exception is to be raised again.
    Wake(FiberKey),
    /// The limit of a block (`timeout_after`) has passed: an exception is pending.
    Deadline {
        /// The fiber that runs the block.
        fiber: FiberKey,
        /// What to raise in it.
        pending_raise: PendingRaise,
    },
    /// The grace period of this fiber is over: it was asked to end, and may not have ended.
    Grace(FiberKey),
}

impl TimerAction {
    fn fiber(&self) -> FiberKey {
        match self {
            TimerAction::Wake(fiber) | TimerAction::Grace(fiber) | TimerAction::Deadline { fiber, .. } => *fiber,
        }
    }
}

/// The state of a scheduler. No method calls Ruby, so a borrow of it never lives across a switch.
#[derive(Default)]
pub struct State {
    /// All fibers that the scheduler knows, which of them runs, and which are to run.
    pub fibers: Fibers,
    pub timers: Timers<TimerAction>,
    pub budget: Budget,
    pub operations: Operations,
    pub lock_holders: LockHolders,
    pub counters: Counters,
    /// Timers that have expired, while they are handled. The memory is kept for the next time.
    expired: Vec<TimerAction>,
    pub raises: Raises,
    pub endings: Endings,
    pub closings: Closings,
    /// See [`State::set_forking_fiber`].
    forking_fiber: Option<FiberKey>,
    scopes: Scopes,
    pub limits: Limits,
    pub look_ahead: LookAhead,
    /// What the waits of fibers own.
    pub resources: WaitResources,
    /// What is told of each change of what a fiber does, if anything is.
    observers: Option<Box<Observers>>,
    pub clock: Clock,
    /// What chooses the schedule, if a test does.
    pub exploration: Option<Box<Exploration>>,
}

impl State {
    /// Whether this fiber, which gets control back from another one that was picked, has been picked since.
    ///
    /// A fiber that is picked is made `Running`, and stays that until it runs, unless it is lost. So its state needs
    /// no look-up.
    #[inline]
    pub fn is_picked(&self, key: FiberKey) -> bool {
        self.fibers.is_chosen(key) && !self.is_lost(key)
    }

    /// Makes the fiber the current one, whether or not it was picked.
    pub fn set_current(&mut self, key: FiberKey) {
        self.note(Event::Continued(key));
        self.fibers.set_current(key);
    }

    /// Called when an unmanaged fiber leaves its outermost hook. Its record is removed, unless the record must outlive
    /// the hook. The fiber that resumed it becomes the current one again.
    pub fn unregister(&mut self, key: FiberKey) {
        self.fibers.return_to_resumer(key);
        if !self.fibers.get(key).is_some_and(|record| record.must_outlive_hooks()) {
            self.remove(key);
        }
        if self.observers.is_some()
            && let Some((_, resumer)) = self.fibers.current()
            && self.fibers.is_current(resumer)
        {
            self.note(Event::Continued(resumer));
        }
    }

    /// What was pending in a fiber has been raised. If its record has outlived its hooks only for that, it is removed.
    pub fn release_record(&mut self, key: FiberKey) {
        if self.fibers.get(key).is_some_and(|record| record.hook_depth == 0 && !record.managed) {
            self.unregister(key);
        }
    }

    /// Removes a fiber's record. Returns the fiber.
    pub fn remove(&mut self, key: FiberKey) -> Option<PinnedValue> {
        self.note(Event::Gone(key));
        self.fibers.remove(key)
    }

    /// Makes a fiber runnable, at the end of the run queue.
    #[inline]
    pub fn enqueue(&mut self, key: FiberKey) {
        if self.fibers.enqueue(key) {
            self.note(Event::Woken(key));
        }
    }

    /// Running → runnable: the fiber yields. Returns what it waited for until then.
    #[inline(always)]
    pub fn requeue(&mut self, key: FiberKey, position: Requeue) -> Option<Wait> {
        if matches!(position, Requeue::Preempted(_)) {
            self.note(Event::Preempted(key));
        }
        self.fibers.requeue(key, position, self.exploration.is_some())
    }

    /// Whether this running fiber handles the thread's interrupts. They belong to the root. If the root is parked, or
    /// has resumed a fiber that is parked, no other fiber handles them. Otherwise the running fiber does: it is the
    /// root, a fiber that the root has resumed, or a fiber that the program switches by itself.
    ///
    /// In a forked child they belong to the fiber that forked: an exception that leaves its block ends the process.
    pub fn handles_interrupts(&self, key: Option<FiberKey>) -> bool {
        if let Some((_, forking_fiber)) = self.forking_fiber() {
            let is_parked = self.fibers.get(forking_fiber).is_some_and(|record| record.is_parked());
            return key == Some(forking_fiber) || !is_parked;
        }
        let record = key.and_then(|key| self.fibers.get(key));
        let is_root = record.is_some_and(|record| record.blocking && !record.managed);
        let is_managed = record.is_some_and(|record| record.managed);
        is_root || !(self.fibers.has_parked_blocking() || is_managed && self.fibers.has_parked_unmanaged())
    }

    /// This process is a forked child, and `survivor` the fiber that forked.
    pub fn set_forking_fiber(&mut self, survivor: Option<FiberKey>) {
        self.forking_fiber = survivor;
    }

    /// The fiber that forked, until it has ended. `None` if it is blocking: then Ruby itself falls back to it.
    pub fn forking_fiber(&self) -> Option<(PinnedValue, FiberKey)> {
        let record = self.fibers.get(self.forking_fiber?).filter(|record| !record.blocking)?;
        Some((record.fiber, self.forking_fiber?))
    }

    /// All counts start at zero again: this process is a forked child.
    pub fn reset_counts(&mut self) {
        self.counters = Counters::default();
        self.operations.reset_counts();
        self.budget.reset_counts();
        self.timing_mut().into_iter().for_each(|timing| *timing = SliceTiming::default());
        self.reset_accounts();
    }

    /// Marks all Ruby objects that the state refers to.
    pub fn mark(&self, marker: &Marker) {
        self.fibers.mark(marker);
        for action in self.timers.iter() {
            if let TimerAction::Deadline { pending_raise, .. } = action {
                pending_raise.mark(marker);
            }
        }
        self.raises.mark(marker);
        self.endings.mark(marker);
        self.closings.mark(marker);
    }

    /// How many fibers are in this state.
    pub fn count_in(&self, state: FiberState) -> usize {
        self.fibers.iter().filter(|(_, record)| record.state() == state).count()
    }

    /// How many fibers wait for which kind of event, by its name.
    pub fn waiting_by_kind(&self) -> BTreeMap<&'static str, usize> {
        let mut kinds = BTreeMap::new();
        for (_, record) in self.fibers.iter().filter(|(_, record)| record.state() == FiberState::Waiting) {
            *kinds.entry(record.wait.name()).or_insert(0) += 1;
        }
        kinds
    }

    /// How many fibers wait for which kind of event, for `inspect`.
    pub fn summary(&self) -> String {
        let kinds = self.waiting_by_kind();
        let runnable = self.count_in(FiberState::Runnable);
        let waiting: usize = kinds.values().sum();
        let detail: Vec<String> = kinds.into_iter().map(|(kind, count)| format!("{kind}: {count}")).collect();
        let detail = if detail.is_empty() { String::new() } else { format!(" ({})", detail.join(", ")) };
        format!("runnable={runnable} waiting={waiting}{detail}")
    }
}
