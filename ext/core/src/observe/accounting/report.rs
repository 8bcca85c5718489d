//! What several schedulers have counted by name in the last minutes, together.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::Accounting;
use super::ages::Ages;
use super::names::{Done, OTHER, SPAN, SPANS, UNNAMED};
use super::times::{KINDS, Times};

/// The name under which something is counted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Title {
    /// The fibers that have no name.
    Unnamed,
    /// All names beyond the limit.
    Other,
    /// This one.
    Named(Rc<str>),
}

/// What fibers have waited for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// An event of this kind.
    Kind(usize),
    /// What they said.
    Label(Rc<str>),
}

/// A name's part. Times are in nanoseconds.
#[derive(Debug, Clone, Default)]
pub struct Row {
    /// How many fibers have the name now.
    pub running: u64,
    /// How many have lost it, or ended.
    pub finished: u64,
    /// The ages of these, and of those that have it now.
    pub ages: Ages,
    /// They ran.
    pub ran: u64,
    /// They waited for their turn.
    pub runnable: u64,
    /// They waited for events.
    pub waited: BTreeMap<Subject, u64>,
    /// They were preempted.
    pub preemptions: u64,
}

/// A fiber that was late: its name, and the names that ran meanwhile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LateRow {
    /// How long ago it ran at last.
    pub ago: u64,
    /// Its name.
    pub title: Title,
    /// How long it had waited for its turn.
    pub waited: u64,
    /// Which names ran meanwhile, and for how long.
    pub causes: Vec<(Title, u64)>,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Report {
    window: u64,
    /// For how long it was counted within the window.
    pub counted: u64,
    /// The window, by name.
    pub rows: BTreeMap<Title, Row>,
    /// Since the counting began, by name.
    pub totals: BTreeMap<Title, Row>,
    /// The spans in which anything was counted, by number, each with the time since its beginning.
    pub spans: BTreeMap<u64, (u64, BTreeMap<Title, Row>)>,
    /// Those that were late, the last one first.
    pub late: Vec<LateRow>,
}

impl Report {
    /// Of the last `window`. The present span counts, and as many earlier ones as fit.
    pub fn new(window: Duration) -> Self {
        let longest = SPAN * SPANS as u64;
        let window = u64::try_from(window.as_nanos()).unwrap_or(longest).min(longest);
        Report { window, ..Report::default() }
    }

    /// Adds what a scheduler has counted.
    pub fn add(&mut self, accounting: &mut Accounting, now: Instant) {
        let (present, progress) = accounting.bring_up_to_date(now);
        let progress = nanoseconds(progress);
        let earlier = self.window.saturating_sub(progress) / SPAN;
        let counted = progress + earlier * SPAN;
        self.counted = self.counted.max(counted.min(nanoseconds(accounting.elapsed(now))));
        let labels: Vec<Rc<str>> = accounting.labels().to_vec();
        let add = |rows: &mut BTreeMap<Title, Row>, title: &Title, done: &Done| {
            rows.entry(title.clone()).or_default().add(done, &labels);
        };
        for (number, name) in accounting.names() {
            let title = title_of(accounting, number);
            add(&mut self.totals, &title, &name.total);
            for span in (present + 1).saturating_sub(SPANS as u64)..=present {
                let Some(done) = name.in_span(span, present).filter(|done| !done.is_empty()) else { continue };
                let ago = progress + (present - span) * SPAN;
                add(&mut self.spans.entry(span).or_insert_with(|| (ago, BTreeMap::new())).1, &title, done);
                if present - span <= earlier {
                    add(&mut self.rows, &title, done);
                }
            }
            if name.running > 0 {
                let row = self.rows.entry(title).or_default();
                row.running += u64::from(name.running);
                accounting.present_ages(number, now).for_each(|age| row.ages.record(age));
            }
        }
        for (late, ago) in accounting.late(now) {
            let causes = late.causes.iter().map(|(number, ran)| (title_of(accounting, *number), *ran)).collect();
            let title = title_of(accounting, late.name);
            self.late.push(LateRow { ago: nanoseconds(ago), title, waited: late.waited, causes });
        }
        self.late.sort_by_key(|late| late.ago);
    }
}

impl Row {
    fn add(&mut self, done: &Done, labels: &[Rc<str>]) {
        let Times { ran, runnable, waited, preemptions } = done.times;
        self.ran += ran;
        self.runnable += runnable;
        self.preemptions += preemptions;
        if let Some(ages) = &done.ages {
            self.finished += ages.count();
            self.ages.add(ages);
        }
        for (subject, time) in subjects(&waited, labels) {
            *self.waited.entry(subject).or_default() += time;
        }
    }
}

/// What the times of a fiber's waits mean.
pub fn subjects<'a>(waited: &'a [u64], labels: &'a [Rc<str>]) -> impl Iterator<Item = (Subject, u64)> + 'a {
    waited.iter().enumerate().filter(|(_, time)| **time > 0).map(|(index, time)| {
        let label = index.checked_sub(KINDS).and_then(|index| labels.get(index));
        (label.map_or(Subject::Kind(index), |label| Subject::Label(Rc::clone(label))), *time)
    })
}

fn title_of(accounting: &Accounting, number: usize) -> Title {
    match &accounting.name_of(number).text {
        _ if number == UNNAMED => Title::Unnamed,
        _ if number == OTHER => Title::Other,
        Some(text) => Title::Named(Rc::clone(text)),
        None => Title::Other,
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
