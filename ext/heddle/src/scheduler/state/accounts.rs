//! What fibers spend their time on, while that is counted: always with `stats: :detailed`, or while a page is open.

use std::time::Instant;

use heddle_core::observe::accounting::{Accounting, Activity, Statement};

use super::State;
use crate::scheduler::record::{FiberKey, FiberState, Record};
use crate::scheduler::state::fibers::Fibers;
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
    pub(super) until: Option<Instant>,
    /// Whether slices are timed for this alone.
    pub(super) times_slices: bool,
}

/// The fiber to whose account this one's time goes: a fiber that the program has resumed counts as the one that has
/// resumed it, as long as that exists.
fn account_of(fibers: &Fibers, key: FiberKey) -> FiberKey {
    let account = fibers.get(key).map_or(key, |record| record.account);
    if account == key || fibers.get(account).is_some() { account } else { key }
}

impl Accounts {
    fn enter(&mut self, account: FiberKey, activity: Activity, now: Instant) {
        self.accounting.enter(account.number(), activity, now);
    }

    /// A fiber that has this account, and has waited, is runnable.
    pub(super) fn woken(&mut self, account: FiberKey, now: Instant) {
        self.enter(account, Activity::Runnable, now);
    }

    /// The fiber `left` stops running, unless the account `next` is its own.
    pub(super) fn left(&mut self, fibers: &Fibers, left: &Record, next: Option<FiberKey>, now: Instant) {
        let account = account_of(fibers, left.key);
        if next != Some(account) && self.accounting.is_running(account.number()) {
            self.enter(account, activity_of(left), now);
        }
    }

    /// `next` runs in place of the fiber `left`.
    pub(super) fn switch(&mut self, fibers: &Fibers, left: Option<&Record>, next: FiberKey, now: Instant) {
        let next = account_of(fibers, next);
        left.inspect(|left| self.left(fibers, left, Some(next), now));
        self.enter(next, Activity::Running, now);
    }

    /// The fiber is preempted.
    pub(super) fn preempted(&mut self, fibers: &Fibers, key: FiberKey) {
        self.accounting.preempted(account_of(fibers, key).number());
    }

    /// The fiber's record goes.
    pub(super) fn end(&mut self, key: FiberKey) {
        self.accounting.end(key.number(), Instant::now());
    }
}

impl State {
    /// Counts from now on, until then or for ever. `here` says whether the scheduler's thread is the current one.
    /// Returns whether it has not counted before.
    pub fn count_times(&mut self, until: Option<Instant>, here: bool) -> bool {
        if let Some(accounts) = self.accounts_mut() {
            accounts.until = accounts.until.zip(until).map(|(before, until)| before.max(until));
            return false;
        }
        let times_slices = self.begin_timing();
        let now = Instant::now();
        let mut accounting = Accounting::new(now);
        for (key, record) in self.fibers.iter().filter(|(_, record)| record.state() != FiberState::Lost) {
            if record.account == key {
                accounting.enter(key.number(), activity_of(record), now);
            }
        }
        if let Some((_, key)) = self.fibers.current()
            && here
            && self.fibers.is_current(key)
        {
            accounting.enter(account_of(&self.fibers, key).number(), Activity::Running, now);
        }
        self.observers_mut().accounts = Some(Accounts { accounting, until, times_slices });
        true
    }

    fn accounts(&self) -> Option<&Accounts> {
        self.observers.as_ref()?.accounts.as_ref()
    }

    fn accounts_mut(&mut self) -> Option<&mut Accounts> {
        self.observers.as_mut()?.accounts.as_mut()
    }

    /// What is counted, if times are.
    pub fn accounting(&self) -> Option<&Accounting> {
        self.accounts().map(|accounts| &accounts.accounting)
    }

    /// As [`State::accounting`], with the number there of the fiber.
    pub fn accounting_of(&mut self, key: FiberKey) -> Option<(&mut Accounting, u64)> {
        let account = account_of(&self.fibers, key).number();
        Some((&mut self.accounts_mut()?.accounting, account))
    }

    /// What the fiber has done since it is known, and since it has its name; nothing if that is not counted.
    pub fn statement(&self, key: FiberKey, now: Instant) -> Option<(Statement, Option<Statement>)> {
        self.accounting()?.statement(account_of(&self.fibers, key).number(), now)
    }

    /// Whether times are counted until the scheduler is gone, not for a page.
    pub fn always_counts_times(&self) -> bool {
        self.accounts().is_some_and(|accounts| accounts.until.is_none())
    }

    /// Slices are timed for other reasons, too.
    pub(super) fn keep_timing(&mut self) {
        if let Some(accounts) = self.accounts_mut() {
            accounts.times_slices = false;
        }
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
        match self.accounts_mut() {
            Some(accounts) if accounts.until.is_none() => change(&mut accounts.accounting),
            Some(_) => {
                self.observers_mut().end_accounts();
                self.release_observers();
            }
            None => {}
        }
    }
}
