//! What fibers spend their time on, while that is counted: always with `stats: :detailed`, or while a page is open.

use std::time::Instant;

use heddle_core::observe::accounting::{Accounting, Activity, Statement};

use super::State;
use crate::scheduler::fibers::Fibers;
use crate::scheduler::record::{FiberKey, FiberState, Record};
use crate::scheduler::wait::Wait;

fn activity_of(record: &Record) -> Activity {
    match record.state() {
        FiberState::Runnable => Activity::Runnable,
        FiberState::Waiting => Activity::Waiting(record.wait.counted()),
        // It does not run, so it has resumed another fiber.
        FiberState::Running | FiberState::Lost => Activity::Waiting(Wait::Nothing.counted()),
    }
}

/// See the module.
pub struct Accounts {
    accounting: Accounting,
    /// When it ends by itself.
    until: Option<Instant>,
    /// Whether slices are timed for this alone.
    times_slices: bool,
}

/// The fiber, which waited, is runnable. `enqueued` is when it was put into the run queue.
#[inline]
pub(super) fn note_woken(
    accounts: &mut Option<Box<Accounts>>,
    account: FiberKey,
    enqueued: impl FnOnce() -> Option<Instant>,
) {
    if let Some(accounts) = accounts {
        accounts.enter(account, Activity::Runnable, enqueued().unwrap_or_else(Instant::now));
    }
}

impl Accounts {
    #[cold]
    fn enter(&mut self, account: FiberKey, activity: Activity, now: Instant) {
        self.accounting.enter(account.number(), activity, now);
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
        if let Some(accounts) = &mut self.accounts {
            accounts.until = accounts.until.zip(until).map(|(before, until)| before.max(until));
            return false;
        }
        let times_slices = self.queue.timing().is_none();
        if times_slices {
            self.queue.set_timed(true);
        }
        self.note_observers();
        let now = Instant::now();
        let mut accounting = Accounting::new(now);
        for (key, record) in self.fibers.iter().filter(|(_, record)| record.state() != FiberState::Lost) {
            if record.account == key {
                accounting.enter(key.number(), activity_of(record), now);
            }
        }
        if let Some((_, key)) = self.current
            && here
            && self.is_current(key)
        {
            accounting.enter(account_of(&self.fibers, key).number(), Activity::Running, now);
        }
        self.accounts = Some(Box::new(Accounts { accounting, until, times_slices }));
        true
    }

    /// What is counted, if times are.
    pub fn accounting(&self) -> Option<&Accounting> {
        self.accounts.as_ref().map(|accounts| &accounts.accounting)
    }

    /// As [`State::accounting`], with the number there of the fiber.
    pub fn accounting_of(&mut self, key: FiberKey) -> Option<(&mut Accounting, u64)> {
        let accounts = self.accounts.as_mut()?;
        Some((&mut accounts.accounting, account_of(&self.fibers, key).number()))
    }

    /// What the fiber has done since it is known, and since it has its name; nothing if that is not counted.
    pub fn statement(&self, key: FiberKey, now: Instant) -> Option<(Statement, Option<Statement>)> {
        self.accounting()?.statement(account_of(&self.fibers, key).number(), now)
    }

    /// Whether times are counted until the scheduler is gone, not for a page.
    pub fn always_counts_times(&self) -> bool {
        self.accounts.as_ref().is_some_and(|accounts| accounts.until.is_none())
    }

    /// Slices are timed for other reasons, too.
    pub(super) fn keep_timing(&mut self) {
        if let Some(accounts) = &mut self.accounts {
            accounts.times_slices = false;
        }
    }

    /// Counts nothing from now on, and forgets what was counted.
    fn end_accounts(&mut self) {
        let Some(accounts) = self.accounts.take() else { return };
        if accounts.times_slices {
            self.queue.set_timed(false);
        }
        self.note_observers();
    }

    /// The scheduler is closed.
    pub fn close_accounts(&mut self) {
        self.end_or(|accounting| accounting.forget_fibers(Instant::now()));
    }

    /// This process is a forked child, which counts anew.
    pub(super) fn reset_accounts(&mut self) {
        self.end_or(|accounting| *accounting = Accounting::new(Instant::now()));
    }

    /// Ends the counting for a page; changes that which never ends.
    fn end_or(&mut self, change: impl FnOnce(&mut Accounting)) {
        match &mut self.accounts {
            Some(accounts) if accounts.until.is_none() => change(&mut accounts.accounting),
            _ => self.end_accounts(),
        }
    }

    /// The current fiber stops running, unless the account `next` is its own.
    fn account_left(&mut self, next: Option<FiberKey>, now: Instant) {
        let Some(accounts) = &mut self.accounts else { return };
        let Some(record) = self.current.and_then(|(_, left)| self.fibers.get(left)) else { return };
        let account = account_of(&self.fibers, record.key);
        if next != Some(account) && accounts.accounting.is_running(account.number()) {
            accounts.enter(account, activity_of(record), now);
        }
    }

    /// `next`, which was dequeued, replaces the current fiber.
    pub(super) fn account_switch(&mut self, next: FiberKey, now: Instant) {
        let next = account_of(&self.fibers, next);
        self.account_left(Some(next), now);
        if let Some(accounts) = &mut self.accounts {
            accounts.enter(next, Activity::Running, now);
        }
    }

    /// `next` becomes the current fiber, whether or not it was dequeued.
    #[cold]
    pub(super) fn account_current(&mut self, next: FiberKey) {
        if self.accounting_of(next).is_some_and(|(accounting, account)| !accounting.is_running(account)) {
            let now = self.slice_began().unwrap_or_else(Instant::now);
            self.account_switch(next, now);
        }
    }

    /// No fiber runs until the next one is dequeued: the thread polls.
    pub(super) fn account_leave(&mut self) {
        let Some(accounts) = &self.accounts else { return };
        let now = Instant::now();
        if accounts.until.is_some_and(|until| until < now) {
            return self.end_accounts();
        }
        self.account_left(None, now);
    }

    /// The fiber is preempted.
    pub(super) fn account_preempted(&mut self, key: FiberKey) {
        if let Some((accounting, account)) = self.accounting_of(key) {
            accounting.preempted(account);
        }
    }

    /// The fiber's record is gone.
    #[inline]
    pub(super) fn account_end(&mut self, key: FiberKey) {
        if let Some(accounts) = &mut self.accounts {
            accounts.accounting.end(key.number(), Instant::now());
        }
    }
}
