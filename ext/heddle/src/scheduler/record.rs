//! What the scheduler knows about a fiber, and the state that the fiber is in.

use std::os::fd::RawFd;
use std::time::Instant;

use heddle_core::queue::end_request::EndRequest;
use magnus::gc::Marker;

use super::ended_stacks::Begun;
pub use super::fiber_key::FiberKey;
use super::pending_raises::PendingRaises;
use super::raise::RaiseScope;
use super::task_data::TaskData;
use super::wait::Wait;
use crate::ruby::value::PinnedValue;

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

/// What the scheduler knows about a fiber.
pub struct Record {
    pub(super) key: FiberKey,
    /// The Ruby fiber. Marked and pinned as long as the record exists.
    pub fiber: PinnedValue,
    /// See [`FiberState`]. Only [`Fibers`](super::fibers::Fibers) changes it, which keeps the counts of parked fibers.
    pub(super) state: FiberState,
    /// Since when it is in that state; see [`Parked::polled_at`].
    pub(super) since: Instant,
    /// Since when it waits for its turn, to the nanosecond, while that is timed, and it was not preempted. In real time,
    /// and not by the timers' clock as `since`.
    pub runnable_since: Option<Instant>,
    /// What it waits for, if it waits.
    pub wait: Wait,
    /// The scheduler has made this fiber, so its record lasts until the fiber ends. Other fibers have one only while
    /// they are in a hook.
    pub managed: bool,
    /// Whether it may be preempted.
    pub preemptible: bool,
    /// For an unmanaged fiber: the fiber that was current when this one was registered, and so has resumed it.
    pub resumed_by: Option<FiberKey>,
    /// The fiber that has entered a hook last of those that it has resumed, and that those have resumed. It may have
    /// yielded since.
    pub generator: Option<FiberKey>,
    /// The fiber whose account its time goes to, if that is counted: it is itself, or the one that has resumed it.
    pub account: FiberKey,
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
    /// It has called `Mutex#sleep`, and has perhaps not locked the Mutex again.
    pub may_lock_again: bool,
    /// How many times it has begun to wait.
    pub waits: u32,
    /// The descriptor on which its last read or write returned EAGAIN: Ruby will wait for it next.
    pub would_block: Option<RawFd>,
    /// The socket on which it has sent, and not received since: the peer's answer is expected there.
    pub answer_on: Option<RawFd>,
    /// `Fiber#kill` has been called on it: Ruby kills it again each time that it gets control, in its `ensure` clauses,
    /// too.
    pub killed: bool,
    /// `Fiber#kill` has stopped it: a second kill does nothing.
    pub stopped_by_kill: bool,
    /// It has been asked to end, or must not be asked any more.
    pub end_requested: bool,
    /// The grace period of that request.
    pub end_request: Option<Box<EndRequest>>,
    /// Exceptions to raise, in order.
    pub pending_raises: PendingRaises,
    /// See [`State::take_unwinding`](super::state::State::take_unwinding).
    pub may_unwind: bool,
    /// The fiber yields when it releases a lock: it has written, waited for an IO, or been preempted, and has not
    /// waited for anything else since. See [`super::lock_handoff`].
    pub yield_after_unlock: bool,
    /// What structured concurrency stores.
    pub task: TaskData,
    /// When and where it has begun, if it is managed.
    pub begun: Begun,
    /// An address near the end of its C stack when it was switched from; see `state/look_ahead.rs`.
    pub left_at: usize,
    /// Its entry in the run queue is valid if it has this epoch; entries with other epochs are ignored.
    pub(super) epoch: u32,
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
        self.wait.mark(marker);
        self.pending_raises.iter().for_each(|pending_raise| pending_raise.mark(marker));
        self.task.mark(marker);
    }

    /// See [`FiberState`].
    pub fn state(&self) -> FiberState {
        self.state
    }

    /// Since when it is in that state, to the resolution of [`Parked::polled_at`].
    pub fn since(&self) -> Instant {
        self.since
    }

    /// A number that no earlier or later state of any fiber of the scheduler has.
    pub fn state_number(&self) -> u64 {
        self.key.number() & !u64::from(u32::MAX) | u64::from(self.epoch)
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

    /// Whether `Fiber#kill` stops it: it waits or was preempted, so the scheduler can raise in it when it runs next. A
    /// fiber that is not managed can be raised into where it was preempted, if it yields to ticks.
    pub fn stops_instead_of_being_killed(&self, is_yielding: bool) -> bool {
        let is_parked = matches!(self.state, FiberState::Waiting | FiberState::Runnable);
        // A shield holds back a stop, and not a kill.
        if self.task.shield.holds_back(RaiseScope::End) {
            return false;
        }
        match self.wait {
            Wait::NotStarted | Wait::Nothing | Wait::Raiser | Wait::Drain => false,
            Wait::Preempted => is_parked && (self.managed || is_yielding),
            _ => is_parked && self.managed,
        }
    }

    /// Whether it is in a hook that waits.
    pub fn is_waiting(&self) -> bool {
        !matches!(self.wait, Wait::Nothing | Wait::NotStarted | Wait::Preempted)
    }

    /// Whether it waits for the end of all others.
    pub fn is_draining(&self) -> bool {
        self.wait == Wait::Drain && self.state == FiberState::Waiting
    }

    /// Whether it is asked to end when all fibers are.
    pub fn is_stoppable(&self) -> bool {
        self.has_grace() && !self.task.shield.holds_back(RaiseScope::End)
    }

    /// Whether its grace period begins when all fibers are asked to end, even if a shield holds that back.
    pub fn has_grace(&self) -> bool {
        let is_exempt = self.end_requested || self.task.shield.holds_back(RaiseScope::Kill);
        !(is_exempt || self.blocking || self.wait == Wait::Drain)
    }

    /// Whether its record must outlive its hooks. What must not get lost is a wake-up that the fiber has not seen, a
    /// request to end, an exception of `Fiber#raise` that the fiber masks, and what was sent to a root, which comes
    /// back.
    pub fn must_outlive_hooks(&self) -> bool {
        let wake_up = self.unblocks != self.unblocks_seen;
        wake_up
            || self.end_request.is_some()
            || self.pending_raises.is_unraised(RaiseScope::Fiber)
            || self.blocking && (!self.pending_raises.is_empty() || self.task.has_posted())
    }

    /// Whether its record has outlived its hooks: what the fiber does now is not known, or it has ended.
    pub fn has_left_hooks(&self) -> bool {
        !self.managed && !self.blocking && self.hook_depth == 0
    }

    /// Returns the epoch of the new state.
    #[inline(always)]
    pub(super) fn move_to(&mut self, state: FiberState, parked: &mut Parked) -> u32 {
        let was_parked = self.is_parked();
        self.state = state;
        self.since = parked.polled_at;
        self.epoch = self.epoch.wrapping_add(1);
        if was_parked != self.is_parked() {
            // `wait` changes only while the fiber is not parked, so the same count is decremented that was
            // incremented.
            let count = parked.kind(self.blocking, self.wait);
            *count = if was_parked { *count - 1 } else { *count + 1 };
        }
        self.epoch
    }

    /// It has started. Returns its key if it was spun: the code of such a fiber counts as being in a hook, so it is
    /// neither preempted nor interrupted, except in the part that it calls the program's. It also notifies its
    /// observers itself.
    pub fn begin_block(&mut self, begun: Begun) -> Option<FiberKey> {
        self.wait = Wait::Nothing;
        self.begun = begun;
        self.task.take_exit_observer().map(|_| {
            self.hook_depth += 1;
            self.key
        })
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
    pub(super) fn requeue(&mut self, wait: Wait, parked: &mut Parked) -> (Wait, u32) {
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
    pub(super) fn set_running(&mut self, parked: &mut Parked) {
        if self.state != FiberState::Lost {
            self.move_to(FiberState::Running, parked);
        }
        if matches!(self.wait, Wait::Raiser) {
            self.wait = Wait::Nothing;
        }
    }

    /// Whether its entry in the run queue with this epoch is valid.
    #[inline(always)]
    pub fn is_claimable(&self, epoch: u32) -> bool {
        self.epoch == epoch && self.state == FiberState::Runnable
    }

    /// Whether it has parked: the scheduler has switched from it to another fiber.
    pub fn is_parked(&self) -> bool {
        matches!(self.state, FiberState::Waiting | FiberState::Runnable)
    }
}

/// How many fibers are parked, and the time that a change of a fiber's state is given.
pub struct Parked {
    /// Fibers that must end before the scheduler may close.
    pub awaited: usize,
    /// Fibers that wait for the end of all others. The root waits for them.
    pub draining: usize,
    /// Blocking fibers.
    pub blocking: usize,
    /// When timers and I/O were last polled. A fiber's state begins at this time, as a read of the clock for each
    /// switch would cost more than the switch's bookkeeping.
    pub polled_at: Instant,
}

impl Default for Parked {
    fn default() -> Self {
        Parked { awaited: 0, draining: 0, blocking: 0, polled_at: Instant::now() }
    }
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
