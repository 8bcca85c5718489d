//! What is counted by name, for a bounded number of names.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::times::Times;
use crate::observe::histogram::Histogram;

/// The number of the fibers that have no name.
pub const UNNAMED: usize = 0;
/// The number of the name 'other', which is also that of all names beyond [`LIMIT`].
pub const OTHER: usize = 1;
/// How many names are told apart, with those two.
pub const LIMIT: usize = 102;

/// A name, and what is counted under it. Nothing of it ever decreases.
#[derive(Debug, Clone, Default)]
pub struct Name {
    /// The text. `None` for [`UNNAMED`].
    pub text: Option<Rc<str>>,
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
        names.number("other");
        names
    }
}

impl Names {
    /// The number of the name. When there are [`LIMIT`] names, each further one is [`OTHER`].
    pub fn number(&mut self, text: &str) -> usize {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.names.len();
        if number == LIMIT {
            return OTHER;
        }
        let text: Rc<str> = text.into();
        self.names.push(Name { text: Some(Rc::clone(&text)), ..Name::default() });
        self.numbers.insert(text, number);
        number
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
