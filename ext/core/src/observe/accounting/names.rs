//! What is counted by name: a bounded number of names, and for each of them the last minutes.

use std::collections::VecDeque;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::ages::Ages;
use super::times::Times;

/// The number of the fibers that have no name.
pub const UNNAMED: usize = 0;
/// The number of all names beyond [`LIMIT`].
pub const OTHER: usize = 1;
/// How many names are told apart, with those two.
pub const LIMIT: usize = 102;
/// The length of a span, in nanoseconds.
pub const SPAN: u64 = 10_000_000_000;
/// How many spans are kept, with the present one: those of the last five minutes.
pub const SPANS: usize = 30;

/// What the fibers of a name have done within a span of time, or since the beginning.
#[derive(Debug, Clone, Default)]
pub struct Done {
    /// What their time went to.
    pub times: Times,
    /// The ages at which fibers lost the name, or ended.
    pub ages: Option<Ages>,
}

impl Done {
    /// Whether nothing was done.
    pub fn is_empty(&self) -> bool {
        self.ages.is_none() && self.times.is_zero()
    }

    /// Adds what was done otherwise.
    pub fn add(&mut self, other: &Done) {
        self.times.add(&other.times);
        if let Some(ages) = &other.ages {
            self.ages.get_or_insert_default().add(ages);
        }
    }
}

/// A name, and what is counted under it.
#[derive(Debug, Default)]
pub struct Name {
    /// The text. `None` for [`UNNAMED`] and [`OTHER`].
    pub text: Option<Rc<str>>,
    /// How many fibers have it.
    pub running: u32,
    /// Since the beginning.
    pub total: Done,
    /// In the present span.
    present: Done,
    /// Earlier spans in which there was anything to count, by their numbers.
    spans: VecDeque<(u64, Box<Done>)>,
}

impl Name {
    fn is_idle(&self) -> bool {
        self.running == 0 && self.spans.is_empty() && self.present.is_empty()
    }

    /// What was done in the span with this number.
    pub fn in_span(&self, span: u64, present: u64) -> Option<&Done> {
        if span == present {
            return Some(&self.present);
        }
        self.spans.iter().find(|(number, _)| *number == span).map(|(_, done)| &**done)
    }
}

/// All names.
#[derive(Debug)]
pub struct Names {
    names: Vec<Name>,
    numbers: FxHashMap<Rc<str>, usize>,
    /// The number of the present span.
    span: u64,
}

impl Names {
    /// The present span has this number.
    pub fn beginning_with(span: u64) -> Self {
        Names { names: vec![Name::default(), Name::default()], numbers: FxHashMap::default(), span }
    }

    /// The number of the name. If there are too many, it takes the place of one that no fiber had in the last minutes,
    /// or else is one of the others.
    pub fn number(&mut self, text: &str) -> usize {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = if self.names.len() < LIMIT {
            self.names.push(Name::default());
            self.names.len() - 1
        } else if let Some(idle) = (OTHER + 1..LIMIT).find(|number| self.names[*number].is_idle()) {
            let forgotten = std::mem::take(&mut self.names[idle]);
            self.names[OTHER].total.add(&forgotten.total);
            self.numbers.retain(|_, number| *number != idle);
            idle
        } else {
            return OTHER;
        };
        let text: Rc<str> = text.into();
        self.names[number].text = Some(Rc::clone(&text));
        self.numbers.insert(text, number);
        number
    }

    /// Another fiber has the name.
    pub fn taken(&mut self, number: usize) {
        self.names[number].running += 1;
    }

    /// A fiber does not have the name any more, and has had it for so long.
    pub fn dropped(&mut self, number: usize, age: Option<u64>) {
        let name = &mut self.names[number];
        name.running = name.running.saturating_sub(1);
        if let Some(age) = age {
            name.present.ages.get_or_insert_default().record(age);
            name.total.ages.get_or_insert_default().record(age);
        }
    }

    /// What the fibers with this name have done, in the present span and since the beginning.
    #[inline]
    pub fn times(&mut self, number: usize) -> [&mut Times; 2] {
        let name = &mut self.names[number];
        [&mut name.present.times, &mut name.total.times]
    }

    /// The name with this number.
    pub fn get(&self, number: usize) -> &Name {
        &self.names[number]
    }

    /// All names, with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &Name)> {
        self.names.iter().enumerate()
    }

    /// The number of the present span.
    pub fn span(&self) -> u64 {
        self.span
    }

    /// The next span begins, with this number.
    pub fn begin_span(&mut self, span: u64) {
        for name in &mut self.names {
            let done = std::mem::take(&mut name.present);
            if !done.is_empty() {
                name.spans.push_back((self.span, Box::new(done)));
            }
            while name.spans.front().is_some_and(|(number, _)| number + SPANS as u64 <= span) {
                name.spans.pop_front();
            }
        }
        self.span = span;
    }

    /// No fiber has any name.
    pub fn forget_fibers(&mut self) {
        self.names.iter_mut().for_each(|name| name.running = 0);
    }
}
