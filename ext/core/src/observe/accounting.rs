//! What fibers spend their time on, for each fiber and for each name.
//!
//! A fiber runs, waits for its turn, or waits for an event. Each change of that is reported here with its time, and
//! what has passed since the last one is added to the fiber's account and to its name's. These are totals, whose sum
//! over all names never decreases: a reader that wants those of the last minute subtracts two of them. All memory is
//! bounded but for the accounts, of which there is one for each fiber.

mod group;
mod lateness;
mod names;
#[cfg(test)]
mod tests;
mod times;

use std::rc::Rc;
use std::time::{Duration, Instant};

pub use self::lateness::Late;
use self::lateness::Lateness;
pub use self::names::Name;
use self::names::{Names, UNNAMED};
pub use self::times::{Activity, LABELS, Times, WAIT_KINDS};
use super::histogram::Histogram;

/// What is known about a fiber. Times are in nanoseconds since the counting began.
#[derive(Debug)]
struct Account {
    fiber: u64,
    activity: Activity,
    /// Since when it is in the activity, or has its name. Its time is counted until then.
    since: u64,
    begun: u64,
    times: Times,
    name: usize,
    named_at: u64,
    /// What its time went to since it has the name.
    named: Times,
    /// What it says that it waits for.
    label: Option<usize>,
    was_preempted: bool,
}

/// A fiber's times, and for how long they were counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statement {
    /// For so long, in nanoseconds.
    pub age: u64,
    /// What that time went to.
    pub times: Times,
}

/// See the module. Fibers are named by numbers, whose lower halves are small and differ among the fibers that exist.
#[derive(Debug)]
pub struct Accounting {
    begun: Instant,
    accounts: Vec<Option<Box<Account>>>,
    names: Names,
    labels: Vec<Rc<str>>,
    lateness: Lateness,
}

impl Accounting {
    /// Counts from `now` on.
    pub fn new(now: Instant) -> Self {
        Accounting {
            begun: now,
            accounts: Vec::new(),
            names: Names::default(),
            labels: Vec::new(),
            lateness: Lateness::default(),
        }
    }

    /// Whether the fiber runs.
    pub fn is_running(&self, fiber: u64) -> bool {
        self.find(fiber).is_some_and(|account| account.activity == Activity::Running)
    }

    /// The fiber begins to do something else. Before its first report it is unknown.
    pub fn enter(&mut self, fiber: u64, activity: Activity, now: Instant) {
        let now = self.at(now);
        let account = Account::of(fiber, &mut self.accounts, &mut self.names, activity, now);
        let (before, since) = (account.activity, account.since);
        if activity != before {
            account.charge(now, &mut self.names, &mut self.lateness);
            account.activity = activity;
        }
        if activity == Activity::Running {
            if before == Activity::Runnable && !account.was_preempted {
                self.lateness.waited(account.name, since, now);
            }
            account.was_preempted = false;
        }
    }

    /// The fiber, which runs, is preempted. Its next report says that it is runnable.
    pub fn preempted(&mut self, fiber: u64) {
        let Some(account) = find_mut(&mut self.accounts, fiber) else { return };
        account.was_preempted = true;
        account.totals(&mut self.names).into_iter().for_each(|times| times.preemptions += 1);
    }

    /// The fiber gets a name, or loses it.
    pub fn name(&mut self, fiber: u64, name: Option<&str>, now: Instant) {
        let now = self.at(now);
        let number = name.map_or(UNNAMED, |name| self.names.number(&group::of(name), now));
        let account = Account::of(fiber, &mut self.accounts, &mut self.names, Activity::Running, now);
        let since = account.since;
        account.charge(now, &mut self.names, &mut self.lateness);
        if account.name == UNNAMED {
            self.lateness.named(number, since);
        } else {
            let age = now.saturating_sub(account.named_at);
            self.names.get_mut(account.name).ages.record(Duration::from_nanos(age));
        }
        self.names.lost(account.name, now);
        self.names.taken(number);
        (account.name, account.named_at, account.named) = (number, now, Times::default());
    }

    /// From now on the fiber says that it waits for this, or does not any more. The text is treated as a name is. Texts
    /// beyond [`LABELS`] count as none.
    pub fn label(&mut self, fiber: u64, text: Option<&str>) {
        let label = text.and_then(|text| self.label_number(&group::of(text)));
        if let Some(account) = find_mut(&mut self.accounts, fiber) {
            account.label = label;
        }
    }

    fn label_number(&mut self, text: &str) -> Option<usize> {
        self.labels.iter().position(|known| **known == *text).or_else(|| {
            (self.labels.len() < LABELS).then(|| {
                self.labels.push(text.into());
                self.labels.len() - 1
            })
        })
    }

    /// The texts, by their numbers.
    pub fn labels(&self) -> &[Rc<str>] {
        &self.labels
    }

    /// The fiber has ended.
    pub fn end(&mut self, fiber: u64, now: Instant) {
        if self.find(fiber).is_some() {
            self.name(fiber, None, now);
            self.accounts[index_of(fiber)] = None;
            self.names.lost(UNNAMED, self.at(now));
        }
    }

    /// The fibers do not exist any more; what was counted by name stays.
    pub fn forget_fibers(&mut self, now: Instant) {
        let now = self.at(now);
        for mut account in self.accounts.drain(..).flatten() {
            account.charge(now, &mut self.names, &mut self.lateness);
            self.names.lost(account.name, now);
        }
    }

    /// What the fiber has done since it is known, and since it has its name.
    pub fn statement(&self, fiber: u64, now: Instant) -> Option<(Statement, Option<Statement>)> {
        let (now, account) = (self.at(now), self.find(fiber)?);
        let statement =
            |since: u64, times| Statement { age: now.saturating_sub(since), times: account.with_present(times, now) };
        let named = (account.name != UNNAMED).then(|| statement(account.named_at, account.named));
        Some((statement(account.begun, account.times), named))
    }

    /// What was counted under each name, by its number, and the ages of the fibers that have it now.
    pub fn totals(&self, now: Instant) -> Vec<(Name, Histogram)> {
        let mut totals: Vec<_> = self.names.all().iter().map(|name| (name.clone(), Histogram::default())).collect();
        let now = self.at(now);
        for account in self.accounts.iter().flatten() {
            let (name, present) = &mut totals[account.name];
            name.times = account.with_present(name.times, now);
            present.record(Duration::from_nanos(now.saturating_sub(account.named_at)));
        }
        totals
    }

    /// How long it has counted.
    pub fn elapsed(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.begun)
    }

    /// Those that were late in the last seconds, each with the nanoseconds since then; the last one first.
    pub fn late(&self, now: Instant) -> impl Iterator<Item = (&Late, u64)> {
        let now = self.at(now);
        self.lateness.late(now).map(move |late| (late, now.saturating_sub(late.at)))
    }

    /// A slice that began before the counting did counts from then on.
    fn at(&self, now: Instant) -> u64 {
        u64::try_from(self.elapsed(now).as_nanos()).unwrap_or(u64::MAX)
    }

    fn find(&self, fiber: u64) -> Option<&Account> {
        self.accounts.get(index_of(fiber))?.as_deref().filter(|account| account.fiber == fiber)
    }
}

fn find_mut(accounts: &mut [Option<Box<Account>>], fiber: u64) -> Option<&mut Account> {
    accounts.get_mut(index_of(fiber))?.as_deref_mut().filter(|account| account.fiber == fiber)
}

fn index_of(fiber: u64) -> usize {
    fiber as u32 as usize
}

impl Account {
    /// The fiber's account. If it has none, it begins now, in this activity.
    fn of<'a>(
        fiber: u64,
        accounts: &'a mut Vec<Option<Box<Self>>>,
        names: &mut Names,
        activity: Activity,
        now: u64,
    ) -> &'a mut Self {
        let index = index_of(fiber);
        if index >= accounts.len() {
            accounts.resize_with(index + 1, || None);
        }
        let place = &mut accounts[index];
        // Of a fiber that has vanished without an end, the place is taken by another one.
        if let Some(vanished) = place.take_if(|account| account.fiber != fiber) {
            names.lost(vanished.name, now);
        }
        place.get_or_insert_with(|| {
            names.taken(UNNAMED);
            Account::new(fiber, activity, now)
        })
    }

    fn new(fiber: u64, activity: Activity, now: u64) -> Box<Self> {
        Box::new(Account {
            fiber,
            activity,
            since: now,
            begun: now,
            times: Times::default(),
            name: UNNAMED,
            named_at: now,
            named: Times::default(),
            label: None,
            was_preempted: false,
        })
    }

    /// Where its time is counted: in all, since it has its name, and for its name.
    fn totals<'a>(&'a mut self, names: &'a mut Names) -> [&'a mut Times; 3] {
        [&mut self.times, &mut self.named, &mut names.get_mut(self.name).times]
    }

    /// Counts the time that has passed. A clock that steps back takes no time away.
    fn charge(&mut self, now: u64, names: &mut Names, lateness: &mut Lateness) {
        let (activity, label, spent) = (self.activity, self.label, now.saturating_sub(self.since));
        self.totals(names).into_iter().for_each(|times| *times.of(activity, label) += spent);
        if activity == Activity::Running {
            lateness.ran(self.name, self.since, now);
        }
        self.since = self.since.max(now);
    }

    /// The times with what is not counted yet.
    fn with_present(&self, mut times: Times, now: u64) -> Times {
        *times.of(self.activity, self.label) += now.saturating_sub(self.since);
        times
    }
}
