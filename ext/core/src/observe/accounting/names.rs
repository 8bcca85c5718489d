//! What is counted by name, for a bounded number of names.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::times::Times;
use crate::observe::histogram::Histogram;

/// The number of the fibers that have no name.
pub const UNNAMED: usize = 0;
/// The number of the name 'other', which is also that of names for which there is no place.
pub const OTHER: usize = 1;
/// How many names are told apart, with those two.
pub const LIMIT: usize = 102;
/// A name that had no fiber for so long, in nanoseconds, gives its place to another one.
pub const IDLE: u64 = 300_000_000_000;

/// A name, and what is counted under it. Nothing of it ever decreases while it has its place.
#[derive(Debug, Clone, Default)]
pub struct Name {
    /// The text. `None` for [`UNNAMED`].
    pub text: Option<Rc<str>>,
    /// Since when it has its place.
    pub begun: u64,
    /// How many fibers have it.
    fibers: usize,
    /// When the last fiber lost it.
    idle_since: u64,
    /// What the time of its fibers went to.
    pub times: Times,
    /// For how long fibers had the name that have lost it, or have ended.
    pub ages: Histogram,
}

/// All names.
#[derive(Debug)]
pub struct Names {
    names: Vec<Name>,
    numbers: FxHashMap<Rc<str>, usize>,
}

impl Default for Names {
    fn default() -> Self {
        let mut names = Names { names: vec![Name::default()], numbers: FxHashMap::default() };
        names.number("other", 0);
        names
    }
}

impl Names {
    /// The number of the name. When there are [`LIMIT`] names, a further one takes the place of the name that had no
    /// fiber for longest, or is [`OTHER`].
    pub fn number(&mut self, text: &str, now: u64) -> usize {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = if self.names.len() < LIMIT {
            self.names.push(Name::default());
            self.names.len() - 1
        } else if let Some(number) = self.idle(now) {
            self.move_to_other(number);
            number
        } else {
            return OTHER;
        };
        let text: Rc<str> = text.into();
        self.names[number] = Name { text: Some(Rc::clone(&text)), begun: now, idle_since: now, ..Name::default() };
        self.numbers.insert(text, number);
        number
    }

    /// The name that had no fiber for longest, if that is [`IDLE`] or more.
    fn idle(&self, now: u64) -> Option<usize> {
        let unused = (OTHER + 1..self.names.len()).filter(|number| self.names[*number].fibers == 0);
        let longest = unused.min_by_key(|number| self.names[*number].idle_since)?;
        (now.saturating_sub(self.names[longest].idle_since) >= IDLE).then_some(longest)
    }

    /// Forgets the name, but not what it has counted: a sum over all names never decreases.
    fn move_to_other(&mut self, number: usize) {
        let name = std::mem::take(&mut self.names[number]);
        self.numbers.retain(|_, each| *each != number);
        let other = &mut self.names[OTHER];
        other.times.add(&name.times);
        other.ages.add(&name.ages);
    }

    /// Another fiber has the name.
    pub fn taken(&mut self, number: usize) {
        self.names[number].fibers += 1;
    }

    /// A fiber does not have the name any more.
    pub fn lost(&mut self, number: usize, now: u64) {
        let name = &mut self.names[number];
        name.fibers -= 1;
        name.idle_since = now;
    }

    /// The name with this number.
    #[inline]
    pub fn get_mut(&mut self, number: usize) -> &mut Name {
        &mut self.names[number]
    }

    /// All names, by their numbers.
    pub fn all(&self) -> &[Name] {
        &self.names
    }
}
