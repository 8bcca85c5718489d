//! What fibers spend their time on, for each fiber and for each name.
//!
//! A fiber runs, waits for its turn, or waits for an event. Each change of that is reported here with its time, and
//! what has passed since the last one is added to the fiber's account and to its name's. All memory is bounded but for
//! the accounts, of which there is one for each fiber.

mod ages;
mod group;
mod lateness;
mod names;
mod report;
#[cfg(test)]
mod tests;
mod times;

use std::rc::Rc;
use std::time::{Duration, Instant};

pub use self::ages::Ages;
pub use self::lateness::Late;
use self::lateness::Lateness;
use self::names::Names;
pub use self::names::{Done, Name, OTHER, SPAN, SPANS, UNNAMED};
pub use self::report::{LateRow, Report, Row, Subject, Title, subjects};
pub use self::times::{KINDS, LABELS, Phase, Times};

/// What is known about a fiber. Times are in nanoseconds since the epoch.
#[derive(Debug)]
struct Account {
    fiber: u64,
    phase: Phase,
    entered: u64,
    /// Until when its time is charged.
    charged: u64,
    begun: u64,
    times: Times,
    name: usize,
    /// Since when it has the name, and its times by then.
    named_since: u64,
    before_name: Times,
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
    epoch: Instant,
    begun: Instant,
    accounts: Vec<Option<Box<Account>>>,
    names: Names,
    labels: Vec<Rc<str>>,
    lateness: Lateness,
    running: Option<u64>,
    /// When the present span ends.
    span_ends: u64,
}

impl Accounting {
    /// Counts from `now` on. Spans of time begin at the `epoch`: those of all schedulers are the same.
    pub fn new(epoch: Instant, now: Instant) -> Self {
        let span = now.saturating_duration_since(epoch).as_nanos() / u128::from(SPAN);
        let span = u64::try_from(span).unwrap_or(0);
        Accounting {
            epoch,
            begun: now,
            accounts: Vec::new(),
            names: Names::beginning_with(span),
            labels: Vec::new(),
            lateness: Lateness::default(),
            running: None,
            span_ends: (span + 1) * SPAN,
        }
    }

    /// The fiber that runs, if one does.
    pub fn running(&self) -> Option<u64> {
        self.running
    }

    /// The fiber begins to do something else. Before its first report it is unknown.
    pub fn enter(&mut self, fiber: u64, phase: Phase, now: Instant) {
        let now = self.read(now);
        let account = self.account(fiber, phase, now);
        let (before, entered, ran_since) = (account.phase, account.entered, account.charged);
        let was_preempted = account.was_preempted;
        let (number, label, spent) = account.charge(now);
        account.enter(phase, now);
        self.charge(number, before, label, spent);
        match before {
            Phase::Running => self.lateness.ran(number, ran_since, now),
            Phase::Runnable if phase == Phase::Running && !was_preempted => {
                self.lateness.waited(number, entered, now);
            }
            _ => {}
        }
        if phase == Phase::Running {
            self.running = Some(fiber);
        } else if self.running == Some(fiber) {
            self.running = None;
        }
    }

    /// The fiber, which runs, is preempted. Its next report says that it is runnable.
    pub fn preempted(&mut self, fiber: u64) {
        let Some(account) = self.find_mut(fiber) else { return };
        account.times.preemptions += 1;
        account.was_preempted = true;
        let number = account.name;
        self.names.times(number).into_iter().for_each(|times| times.preemptions += 1);
    }

    /// The fiber gets a name, or loses it.
    pub fn name(&mut self, fiber: u64, name: Option<&str>, now: Instant) {
        let now = self.read(now);
        let number = name.map_or(UNNAMED, |name| self.names.number(&group::of(name)));
        let account = self.account(fiber, Phase::Running, now);
        let (phase, entered, ran_since) = (account.phase, account.entered, account.charged);
        let (old, label, spent) = account.charge(now);
        let age = account.rename(number, now);
        self.charge(old, phase, label, spent);
        if phase == Phase::Running {
            self.lateness.ran(old, ran_since, now);
            if old == UNNAMED {
                self.lateness.named(old, number, entered);
            }
        }
        self.names.dropped(old, age);
        self.names.taken(number);
    }

    /// From now on the fiber says what it waits for, or does not any more. A number that [`Accounting::label_number`]
    /// has not returned counts as nothing. Returns what it said before.
    pub fn label(&mut self, fiber: u64, label: Option<usize>) -> Option<usize> {
        let label = label.filter(|label| *label < self.labels.len());
        self.find_mut(fiber).and_then(|account| std::mem::replace(&mut account.label, label))
    }

    /// The number of such a text, which is treated as a name is; `None` if there are too many.
    pub fn label_number(&mut self, text: &str) -> Option<usize> {
        let text = group::of(text);
        self.labels.iter().position(|known| **known == *text).or_else(|| {
            (self.labels.len() < LABELS).then(|| {
                self.labels.push((&*text).into());
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
        if self.find_mut(fiber).is_none() {
            return;
        }
        self.name(fiber, None, now);
        self.names.dropped(UNNAMED, None);
        self.accounts[index_of(fiber)] = None;
        if self.running == Some(fiber) {
            self.running = None;
        }
    }

    /// The fibers do not exist any more; what was counted by name stays.
    pub fn forget_fibers(&mut self, now: Instant) {
        let now = self.read(now);
        self.settle(now);
        self.accounts.clear();
        self.names.forget_fibers();
        self.running = None;
    }

    /// What the fiber has done since it is known, and since it has its name.
    pub fn statement(&self, fiber: u64, now: Instant) -> Option<(Statement, Option<Statement>)> {
        let now = self.at(now);
        let account = self.accounts.get(index_of(fiber))?.as_deref().filter(|account| account.fiber == fiber)?;
        let mut times = account.times;
        *times.of(account.phase, account.label) += now.saturating_sub(account.charged);
        let statement = |since: u64, times| Statement { age: now.saturating_sub(since), times };
        let named = || statement(account.named_since, times.since(&account.before_name));
        Some((statement(account.begun, times), (account.name != UNNAMED).then(named)))
    }

    /// Brings the accounts of all names up to date. Returns the number of the present span, and how far that has come.
    pub fn bring_up_to_date(&mut self, now: Instant) -> (u64, Duration) {
        let now = self.read(now);
        self.settle(now);
        (self.names.span(), Duration::from_nanos(now.saturating_sub(self.span_ends - SPAN)))
    }

    /// How long it has counted.
    pub fn elapsed(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.begun)
    }

    /// All names, with their numbers.
    pub fn names(&self) -> impl Iterator<Item = (usize, &Name)> {
        self.names.iter()
    }

    /// The name with this number.
    pub fn name_of(&self, number: usize) -> &Name {
        self.names.get(number)
    }

    /// The ages of the fibers that have the name now, in nanoseconds.
    pub fn present_ages(&self, number: usize, now: Instant) -> impl Iterator<Item = u64> {
        let now = self.at(now);
        let accounts = self.accounts.iter().flatten().filter(move |account| account.name == number);
        accounts.map(move |account| now.saturating_sub(account.named_since))
    }

    /// Those that were late in the last seconds, each with the time since then; the last one first.
    pub fn late(&self, now: Instant) -> impl Iterator<Item = (&Late, Duration)> {
        let now = self.at(now);
        self.lateness.late(now).map(move |late| (late, Duration::from_nanos(now.saturating_sub(late.at))))
    }

    /// A slice that began before the counting did counts from then on.
    fn at(&self, now: Instant) -> u64 {
        u64::try_from(now.max(self.begun).saturating_duration_since(self.epoch).as_nanos()).unwrap_or(u64::MAX)
    }

    /// The time. Begins the span that it is in.
    #[inline]
    fn read(&mut self, now: Instant) -> u64 {
        let now = self.at(now);
        if now >= self.span_ends {
            self.begin_spans(now);
        }
        now
    }

    /// Each span gets its part of what lasts for several. Of a long pause, the last spans are enough.
    #[cold]
    fn begin_spans(&mut self, now: u64) {
        let last = now / SPAN;
        let first = (self.names.span() + 1).max(last.saturating_sub(SPANS as u64));
        for span in first..=last {
            self.settle(span * SPAN);
            self.names.begin_span(span);
        }
        self.span_ends = (last + 1).saturating_mul(SPAN);
    }

    /// Adds what all fibers have done until `now` to their accounts.
    fn settle(&mut self, now: u64) {
        for index in 0..self.accounts.len() {
            if let Some(account) = &mut self.accounts[index] {
                let phase = account.phase;
                let ran_since = account.charged;
                let (number, label, spent) = account.charge(now);
                if phase == Phase::Running {
                    self.lateness.ran(number, ran_since, now);
                }
                self.charge(number, phase, label, spent);
            }
        }
    }

    fn charge(&mut self, name: usize, phase: Phase, label: Option<usize>, spent: u64) {
        self.names.times(name).into_iter().for_each(|times| *times.of(phase, label) += spent);
    }

    fn find_mut(&mut self, fiber: u64) -> Option<&mut Account> {
        let account = self.accounts.get_mut(index_of(fiber))?.as_deref_mut()?;
        (account.fiber == fiber).then_some(account)
    }

    /// The fiber's account. If it has none, it begins now, in this phase.
    fn account(&mut self, fiber: u64, phase: Phase, now: u64) -> &mut Account {
        let index = index_of(fiber);
        if index >= self.accounts.len() {
            self.accounts.resize_with(index + 1, || None);
        }
        let is_known = self.accounts[index].as_ref().is_some_and(|account| account.fiber == fiber);
        if !is_known {
            // Of a fiber that has vanished without an end, the place is taken by another one.
            if let Some(vanished) = self.accounts[index].take() {
                self.names.dropped(vanished.name, None);
            }
            self.names.taken(UNNAMED);
        }
        let new = || Box::new(Account::new(fiber, phase, now));
        self.accounts[index].get_or_insert_with(new)
    }
}

impl Account {
    fn new(fiber: u64, phase: Phase, now: u64) -> Self {
        Account {
            fiber,
            phase,
            entered: now,
            charged: now,
            begun: now,
            times: Times::default(),
            name: UNNAMED,
            named_since: now,
            before_name: Times::default(),
            label: None,
            was_preempted: false,
        }
    }

    /// Adds the time that has passed. Returns the name and the label to which it is charged, too, and that time.
    fn charge(&mut self, now: u64) -> (usize, Option<usize>, u64) {
        // A clock that steps back takes no time away.
        let spent = now.saturating_sub(self.charged);
        *self.times.of(self.phase, self.label) += spent;
        self.charged = self.charged.max(now);
        (self.name, self.label, spent)
    }

    fn enter(&mut self, phase: Phase, now: u64) {
        if phase == Phase::Running {
            self.was_preempted = false;
        }
        if phase != self.phase {
            self.entered = now;
        }
        self.phase = phase;
    }

    /// Returns the age under the previous name, if it had one.
    fn rename(&mut self, name: usize, now: u64) -> Option<u64> {
        let age = (self.name != UNNAMED).then(|| now.saturating_sub(self.named_since));
        (self.name, self.named_since, self.before_name) = (name, now, self.times);
        age
    }
}

fn index_of(fiber: u64) -> usize {
    fiber as u32 as usize
}
