//! What fibers spend their time on, while that is counted: always with `stats: :detailed`, or while a page is open.

use std::rc::Rc;
use std::sync::OnceLock;
use std::time::Instant;

use heddle_core::observe::accounting::{Accounting, Phase, Report, Statement};

use super::State;
use crate::scheduler::fibers::Fibers;
use crate::scheduler::record::{FiberKey, FiberState, Record};
use crate::scheduler::wait::Wait;

/// The kinds of waits, for users, by the numbers that [`kind_of`] returns.
pub const KINDS: [&str; heddle_core::observe::accounting::KINDS] =
    ["sleep", "block", "io", "process", "address", "suspend", "close", "resume", "raise"];

fn kind_of(wait: Wait) -> usize {
    match wait {
        Wait::Sleep => 0,
        Wait::Block(_) => 1,
        Wait::Ready(..) | Wait::Select | Wait::Transfer(..) => 2,
        Wait::Process(_) => 3,
        Wait::Address(_) => 4,
        Wait::Suspended => 5,
        Wait::Drain => 6,
        Wait::Nothing | Wait::NotStarted | Wait::Yielded | Wait::Preempted => 7,
        Wait::Raiser => 8,
    }
}

fn phase_of(record: &Record) -> Phase {
    match record.state() {
        FiberState::Runnable => Phase::Runnable,
        FiberState::Waiting => Phase::Waiting(kind_of(record.wait)),
        // It does not run, so it has resumed another fiber.
        FiberState::Running | FiberState::Lost => Phase::Waiting(kind_of(Wait::Nothing)),
    }
}

/// Spans of time begin at the same times in all schedulers.
fn epoch() -> Instant {
    static EPOCH: OnceLock<Instant> = OnceLock::new();
    *EPOCH.get_or_init(Instant::now)
}

/// See the module.
#[derive(Default)]
pub struct Accounts {
    counting: Option<Box<Counting>>,
}

struct Counting {
    accounting: Accounting,
    /// When it ends by itself.
    until: Option<Instant>,
    /// Whether slices are timed for this alone.
    times_slices: bool,
}

impl Accounts {
    /// Whether anything is counted.
    #[inline]
    pub fn is_counting(&self) -> bool {
        self.counting.is_some()
    }

    /// The fiber, which waited, is runnable. `enqueued` is when it was put into the run queue.
    #[inline]
    pub fn woken(&mut self, account: FiberKey, enqueued: impl FnOnce() -> Option<Instant>) {
        if self.counting.is_some() {
            self.enter(account, Phase::Runnable, enqueued().unwrap_or_else(Instant::now));
        }
    }

    #[cold]
    fn enter(&mut self, account: FiberKey, phase: Phase, now: Instant) {
        if let Some(counting) = &mut self.counting {
            counting.accounting.enter(account.number(), phase, now);
        }
    }
}

/// The fiber to whose account this one's time goes: a fiber that the program has resumed counts as the one that has
/// resumed it, as long as that exists.
fn account_of(fibers: &Fibers, key: FiberKey) -> FiberKey {
    let account = fibers.get(key).map_or(key, |record| record.account);
    if account == key || fibers.get(account).is_some() { account } else { key }
}

impl State {
    /// Counts from now on, until then or for ever. `here` says whether the scheduler's thread is the current one.
    /// Returns whether it has not counted before.
    pub fn count_times(&mut self, until: Option<Instant>, here: bool) -> bool {
        if let Some(counting) = &mut self.accounts.counting {
            counting.until = counting.until.zip(until).map(|(before, until)| before.max(until));
            return false;
        }
        let times_slices = self.queue.timing().is_none();
        if times_slices {
            self.queue.set_timed(true);
        }
        self.is_observed = true;
        let now = Instant::now();
        let mut accounting = Accounting::new(epoch(), now);
        for (key, record) in self.fibers.iter().filter(|(_, record)| record.state() != FiberState::Lost) {
            if record.account == key {
                accounting.enter(key.number(), phase_of(record), now);
            }
        }
        if let Some((_, key)) = self.current
            && here
            && self.is_current(key)
        {
            accounting.enter(account_of(&self.fibers, key).number(), Phase::Running, now);
        }
        self.accounts.counting = Some(Box::new(Counting { accounting, until, times_slices }));
        true
    }

    /// Whether times are counted.
    pub fn is_counting_times(&self) -> bool {
        self.accounts.is_counting()
    }

    /// Slices are timed for other reasons, too.
    pub(super) fn keep_timing(&mut self) {
        if let Some(counting) = &mut self.accounts.counting {
            counting.times_slices = false;
        }
    }

    /// Counts nothing from now on, and forgets what was counted.
    fn end_accounts(&mut self) {
        let Some(counting) = self.accounts.counting.take() else { return };
        if counting.times_slices {
            self.queue.set_timed(false);
        }
        self.note_observers();
    }

    /// The scheduler is closed.
    pub fn close_accounts(&mut self) {
        match &mut self.accounts.counting {
            Some(counting) if counting.until.is_none() => counting.accounting.forget_fibers(Instant::now()),
            _ => self.end_accounts(),
        }
    }

    /// This process is a forked child, which counts anew.
    pub(super) fn reset_accounts(&mut self) {
        match &mut self.accounts.counting {
            Some(counting) if counting.until.is_none() => {
                counting.accounting = Accounting::new(epoch(), Instant::now());
            }
            _ => self.end_accounts(),
        }
    }

    /// `next`, which was dequeued, replaces the current fiber.
    pub(super) fn account_switch(&mut self, next: FiberKey, now: Instant) {
        let Some(counting) = &mut self.accounts.counting else { return };
        let next = account_of(&self.fibers, next);
        if let Some((_, left)) = self.current {
            let account = account_of(&self.fibers, left);
            if account != next
                && counting.accounting.running() == Some(account.number())
                && let Some(record) = self.fibers.get(left)
            {
                counting.accounting.enter(account.number(), phase_of(record), now);
            }
        }
        counting.accounting.enter(next.number(), Phase::Running, now);
    }

    /// `next` becomes the current fiber, whether or not it was dequeued.
    #[cold]
    pub(super) fn account_current(&mut self, next: FiberKey) {
        let Some(counting) = &self.accounts.counting else { return };
        if counting.accounting.running() != Some(account_of(&self.fibers, next).number()) {
            let now = self.slice_began().unwrap_or_else(Instant::now);
            self.account_switch(next, now);
        }
    }

    /// No fiber runs until the next one is dequeued: the thread polls.
    pub(super) fn account_leave(&mut self) {
        let Some(counting) = &mut self.accounts.counting else { return };
        let now = Instant::now();
        if counting.until.is_some_and(|until| until < now) {
            return self.end_accounts();
        }
        if let Some((_, left)) = self.current
            && let Some(record) = self.fibers.get(left)
        {
            let account = account_of(&self.fibers, left);
            if counting.accounting.running() == Some(account.number()) {
                counting.accounting.enter(account.number(), phase_of(record), now);
            }
        }
    }

    /// The fiber is preempted.
    pub(super) fn account_preempted(&mut self, key: FiberKey) {
        if let Some(counting) = &mut self.accounts.counting {
            counting.accounting.preempted(account_of(&self.fibers, key).number());
        }
    }

    /// The fiber's record is gone.
    #[inline]
    pub(super) fn account_end(&mut self, key: FiberKey) {
        if let Some(counting) = &mut self.accounts.counting {
            counting.accounting.end(key.number(), Instant::now());
        }
    }

    /// The fiber gets a name, or loses it.
    pub fn account_name(&mut self, key: FiberKey, name: Option<&str>) {
        if let Some(counting) = &mut self.accounts.counting {
            counting.accounting.name(account_of(&self.fibers, key).number(), name, Instant::now());
        }
    }

    /// From now on the fiber says that it waits for this, or does not any more. Returns what it said before.
    pub fn account_label(&mut self, key: FiberKey, label: Option<&str>) -> Option<Rc<str>> {
        let accounting = &mut self.accounts.counting.as_mut()?.accounting;
        let label = label.and_then(|label| accounting.label_number(label));
        let before = accounting.label(account_of(&self.fibers, key).number(), label)?;
        accounting.labels().get(before).cloned()
    }

    /// What the fiber has done since it is known, and since it has its name; nothing if that is not counted.
    pub fn statement(&self, key: FiberKey, now: Instant) -> Option<(Statement, Option<Statement>)> {
        self.accounts.counting.as_ref()?.accounting.statement(account_of(&self.fibers, key).number(), now)
    }

    /// What fibers say that they wait for, by number.
    pub fn labels(&self) -> Vec<Rc<str>> {
        self.accounts.counting.as_ref().map_or_else(Vec::new, |counting| counting.accounting.labels().to_vec())
    }

    /// Adds what was counted to a report.
    pub fn add_to(&mut self, report: &mut Report) {
        if let Some(counting) = &mut self.accounts.counting {
            report.add(&mut counting.accounting, Instant::now());
        }
    }
}
